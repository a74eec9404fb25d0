"""A source: one ordered feed, as `inlet.yml` declares it. Order is defined within a source only.

What brings its units is its *transport*; what they mean is its *codec*. Neither knows the other.
"""

import fnmatch
import json
import re
from collections import Counter
from hashlib import sha256
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from inlet.broker import Broker
from inlet.errors import ConfigError, in_words

FILE_TRANSPORTS = ("records",)  # bring a stream of bytes, whose records the codec finds
ROW_TRANSPORTS = ("rows",)  # bring rows of columnar files
BROKER_TRANSPORTS = ("kafka",)  # bring messages, and are no files
MESSAGE_TRANSPORTS = ("parquet", "avro", "lines", "json", "whole_file", *BROKER_TRANSPORTS)  # bring messages
Options = TypeVar("Options", bound=BaseModel)


def required(options: Options, place: str) -> Options:
    """The options of a codec. In: where they stand. Raises: ConfigError, which names all that have no default and are
    not given, and what to write.
    """
    remedies = getattr(options, "REQUIRED", {})
    missing = {name: remedy for name, remedy in remedies.items() if getattr(options, name) is None}
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ConfigError(f"{place}: {', '.join(missing)} {verb} missing", ". ".join(missing.values()))
    return options


class Source(BaseModel):
    """One ordered feed. `tables` maps the feed's own word for a table (topic or file, maybe a pattern of these;
    extraction id) to SCHEMA.TABLE.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    name: str = Field(pattern=r"^[A-Za-z0-9_]+$")
    codec: str
    path: str = Field(alias="from")
    transport: str = ""  # what brings its units, said in `from:`; where nothing is, the codec's first (config.load)
    broker: Broker | None = None  # said in `from:`, where the transport is one of BROKER_TRANSPORTS
    lookups: str | None = Field(default=None, pattern=r"\{name\}")  # said in `from:`; see bronze/lookups.py
    tables: dict[str, str] = {}  # {1: SHOP.ORDERS} says the same as {"1": SHOP.ORDERS}
    capture: list[str] = []  # patterns of SCHEMA.TABLE that are wanted; none: all that have a contract
    ignore: list[
        str
    ] = []  # ... that are not; records of other tables than the wanted are counted, and rejected no more
    options: dict[str, Any] = {}
    look_back_batches: int = Field(
        default=50,
        ge=0,
        description="batches in which a change that is sent again at another place is known, where the codec can tell",
    )
    part_wait_minutes: float | None = Field(
        default=None,
        gt=0,
        description="how long a record of a change of several may wait for the others before it is rejected "
        "(`part_missing`); the others, when they come, bring it back. None: it waits",
    )
    header: bool = Field(
        default=True,
        description="whether silver.changes keeps what the feed's own header says of a change (column `header`)",
    )
    # how long nothing is written to a file until it is taken for whole: its last record that is unfinished; all of one
    # whose end cannot be told (compressed, `avro`, `whole_file`). 0: files come whole, for instance by renaming
    settle_minutes: float = Field(default=60, ge=0)
    # how long, by the source's own times, the public views wait for a transaction that lacks events; 0: not at all
    open_transaction_minutes: float = 60
    publish_at: Literal["transaction", "checkpoint"] = Field(
        default="transaction",
        description="where the public views may show the source: behind each whole transaction, or only at checkpoints "
        "of the feed at which no transaction is open",
    )

    @model_validator(mode="before")
    @classmethod
    def _from(cls, fields):
        if not isinstance(fields, dict) or not isinstance(fields.get("from"), dict):
            for name in ("transport", "lookups", "broker"):
                if isinstance(fields, dict) and name in fields:
                    raise ValueError(f"{name} belongs into from: {{transport: ..., path: ..., lookups: ...}}")
            return fields
        given = fields["from"]
        if given.get("transport") in BROKER_TRANSPORTS:
            told = {name: value for name, value in given.items() if name not in ("transport", "lookups")}
            words = fields.get("tables")
            if not told.get("topics") and isinstance(words, dict):
                told["topics"] = list(map(str, words))
            return (
                fields
                | {"from": f"{given['transport']}://{told.get('servers')}", "broker": told}
                | {name: given[name] for name in ("transport", "lookups") if name in given}
            )
        if not {"transport", "path"} <= set(given) <= {"transport", "path", "lookups"}:
            given_names = ", ".join(map(str, given)) or "nothing"
            raise ValueError(f"from: expected transport and path, maybe lookups, found {given_names}")
        return fields | {"from": given["path"]} | {name: given[name] for name in given if name != "path"}

    @field_validator("tables", mode="before")
    @classmethod
    def _words(cls, tables):
        if not isinstance(tables, dict):
            return tables
        words = [str(word) if type(word) is int else word for word in tables]
        if twice := {str(word) for word, num in Counter(words).items() if num > 1}:
            raise ValueError(f"{', '.join(sorted(twice))} stands there as a number and as text")
        return dict(zip(words, tables.values()))

    def table_of(self, word: str) -> str | None:
        """SCHEMA.TABLE of the feed's own word for a table, or of the first pattern that it matches. Each `*` of such a
        target is what the pattern's `*` in its place stands for, so that one line maps all names of three parts.

        >>> source = Source(name="s", codec="c", **{"from": "f"}, tables={"PDB1.HR.*": "HR.*", "shop-*": "SHOP.ORDERS"})
        >>> source.table_of("PDB1.HR.JOBS"), source.table_of("shop-7"), source.table_of("PDB2.HR.JOBS")
        ('HR.JOBS', 'SHOP.ORDERS', None)
        """
        if word in self.tables:
            return self.tables[word]
        for pattern, table in self.tables.items():
            if "*" not in table and fnmatch.fnmatchcase(word, pattern):
                return table
            if "*" in table and (match := re.fullmatch("(.*)".join(map(re.escape, pattern.split("*"))), word)):
                for text in match.groups():
                    table = table.replace("*", text, 1)
                return table
        return None

    @field_validator("lookups")
    @classmethod
    def _without_secret(cls, lookups: str | None) -> str | None:
        """What stands between user and host is a secret, and is not shown."""
        user = re.match(r"[^/]*://([^/]*)@", lookups or "")
        if user and not re.fullmatch(r"([^:]*:)?\$\{\w+\}", user[1]):
            raise ValueError("a password is a secret: write ${NAME}, and set NAME in the environment")
        return lookups

    @field_validator("broker")
    @classmethod
    def _topics(cls, broker: Broker | None) -> Broker | None:
        if broker and not broker.topics:
            raise ValueError("topics is missing: name the topics, or patterns of these")
        return broker

    @field_validator("tables")
    @classmethod
    def _targets(cls, tables: dict[str, str]) -> dict[str, str]:
        for word, table in tables.items():
            if "*" in table and word.count("*") != table.count("*"):
                raise ValueError(f"{word} and {table} have not as many *")
        return tables

    @property
    def mapping(self) -> str:
        """Tells `tables` from what it was before."""
        return sha256(json.dumps(self.tables).encode()).hexdigest()[:16]

    def wants(self, table: str) -> bool:
        """Is a SCHEMA.TABLE wanted?"""

        def among(patterns: list[str]) -> bool:
            return any(fnmatch.fnmatchcase(table, pattern) for pattern in patterns)

        return (not self.capture or among(self.capture)) and not among(self.ignore)

    def options_as(self, model: type[Options]) -> Options:
        """The codec's own options. In: their model. Raises: ConfigError, which names those that there are."""
        try:
            return model(**self.options)
        except ValidationError as error:
            raise ConfigError(
                f"sources.{self.name}.options: {in_words(error.errors(), model.model_fields)}",
                f"{self.codec} knows {', '.join(model.model_fields)}",
            ) from error

    @property
    def bytes_an_offset(self) -> int:
        """How many bytes lie between two places of bronze.files; about so many between two offsets of a broker."""
        return 1_000 if self.broker else 1

    @property
    def brings_messages(self) -> bool:
        return self.transport in MESSAGE_TRANSPORTS
