"""The table contract: one captured table, one YAML file in pipelines/tables/.

    table: SHOP.ORDERS            # schema and table as the source names them
    name: orders                  # name of its gold tables: orders__current, orders__history, ...
    key: [ORDER_ID]               # left out: a table without a key, which has a log alone
    columns:                      # in the source's order: a column's place here is its ordinal in every mask
      - {name: ORDER_ID, type: bigint, nullable: false}
      - {name: AMOUNT, type: "decimal(9,2)", source_type: "DECIMAL(9,2)"}
      - {name: REMARK, type: string, charset: JA16SJIS}      # of its text, where its source's is another one

When the source changes the table, `version` grows by one and the column list of before moves under `earlier`, with the
place up to which it was in force, so that changes from before stay readable:

    version: 2
    columns:
      - {name: ORDER_ID, type: bigint, nullable: false}
      - {name: TOTAL, type: "decimal(11,2)", formerly: [AMOUNT]}      # was renamed
      - {name: CHANNEL, type: string}                                 # was added
      - {name: REMARK, type: string, dropped: true}                   # is gone; gold keeps what it held
                                     # a column that was dropped and is added again starts as null in every row
    earlier:
      - version: 1
        until: "2026-03-01 12:00:00"                                  # UTC, or the first change_seq of the next version
        table: SHOP.ORDER                                             # where the table itself was renamed
        columns: [...]                                                # as they were
"""

import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from itertools import count

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from inlet.change import LEN_SEQ
from inlet.table_column import TableColumn

LEN_NAME, NUM_NAMED = 40, 5  # of new columns, in a sentence

OURS = (  # columns of ours that stand beside the table's own in gold and in the views over it
    "source",
    "valid_from_seq",
    "valid_to_seq",
    "valid_from",
    "valid_to",
    "is_complete",
    "not_supplied",
    "conflict",
    "operation",
    "key_changed",
    "change_timestamp",
    "transaction_id",
    "transaction_event_counter",
    "transaction_last_event",
    "unit_id",
    "unit_offset",
    "batch_id",
    "is_pending",
    "is_held",  # of the live view
    "_is_last",
    "_through_batch_id",
    "_through_change_seq",  # of the fold
)
UNMAPPED = re.compile(r"[\w#$@]+")  # names that Delta takes as they are; others it maps


class Earlier(BaseModel):
    """A column list that was in force for changes before `until`. `table` and `key` where they were others."""

    model_config = ConfigDict(extra="forbid")
    version: int
    until: str
    table: str | None = None
    key: list[str] | None = None
    columns: list[TableColumn] = Field(min_length=1)

    @field_validator("until", mode="before")
    @classmethod
    def _until(cls, until) -> str:
        """A UTC time, or the beginning of a change_seq -> the beginning of a change_seq."""
        if re.fullmatch(r"[0-9]{14,35}", str(until)):
            return str(until)
        try:
            at = until if isinstance(until, datetime) else datetime.fromisoformat(str(until))
        except ValueError:
            raise ValueError(
                f"expected a UTC time like 2026-03-01 12:00:00, or a change_seq, found {until!r}"
            ) from None
        at = at.astimezone(UTC) if at.tzinfo else at
        return f"{at:%Y%m%d%H%M%S}{at.microsecond // 10_000:02d}"


class Table(BaseModel):
    """One captured table. `sources` empty means: whatever source carries it."""

    model_config = ConfigDict(extra="forbid")
    table: str
    name: str
    key: list[str] = []  # empty: it has a log, and no current or history
    columns: list[TableColumn] = Field(min_length=1)
    sources: list[str] = []
    version: int = 1
    description: str = ""
    earlier: list[Earlier] = []

    @model_validator(mode="after")
    def _whole(self):
        for table in self.names:
            if table.count(".") != 1:
                raise ValueError(f"table: expected SCHEMA.TABLE, found {table!r}")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name) or "__" in self.name:
            raise ValueError(f"name: expected lower-case letters, digits and single _, found {self.name!r}")
        _check_columns("", self.columns, self.key)
        if any(c.dropped for c in self._key_columns):
            raise ValueError("key: a column of the key cannot be dropped; name the key that the table has now")
        for before, after in zip(self.earlier, [*self.earlier[1:], None]):
            if before.version >= (after or self).version or after and before.until >= after.until:
                raise ValueError(
                    f"earlier: version {before.version} is not before version {(after or self).version}: each ends "
                    "where the next begins"
                )
            _check_columns(f"earlier version {before.version}: ", before.columns, before.key or [])
            if any(c.dropped or c.formerly for c in before.columns):
                raise ValueError(
                    f"earlier version {before.version}: columns are told as they were then, without `dropped` and "
                    "`formerly`"
                )
        for version in self.versions[:-1]:
            taken: dict[str, str] = {}
            places = {c.name.lower(): n for n, c in enumerate(version.columns)}
            for column in self.columns:
                meant = {places.get(n.lower()) for n in (column.name, *column.formerly)}
                known = [version.columns[n].name for n in sorted(meant - {None})]
                if len(known) > 1:
                    raise ValueError(
                        f"earlier version {version.version}: {' and '.join(known)} are both there, so which was "
                        f"{column.name} cannot be told"
                    )
                if known and taken.setdefault(known[0], column.name) != column.name:
                    raise ValueError(
                        f"earlier version {version.version}: {known[0]} cannot have been both "
                        f"{taken[known[0]]} and {column.name}"
                    )
            names = set(version.column_names)
            for column in version.key:
                if column not in names:
                    raise ValueError(
                        f"earlier version {version.version}: has no column {column} of the key; say its own `key`, "
                        "or `formerly` where it was renamed"
                    )
        return self

    @property
    def names(self) -> list[str]:
        """Every SCHEMA.TABLE that it went by, the present one first."""
        return list(dict.fromkeys([self.table, *(e.table for e in reversed(self.earlier) if e.table)]))

    @cached_property
    def versions(self) -> list["Table"]:
        """The table as it was in each version, oldest first; the last is in force now."""
        own = {"earlier": [], "columns": [c for c in self.columns if not c.dropped]}
        then = [
            {"version": e.version, "columns": e.columns, "key": e.key or self._key_in(e.columns)} for e in self.earlier
        ]
        return [self.model_copy(update=own | earlier) for earlier in [*then, {}]]

    def at(self, change_seq: str) -> "Table":
        """The version in force at a place in the order, or at the time it begins with."""
        return next(
            (version for version, e in zip(self.versions, self.earlier) if change_seq < e.until), self.versions[-1]
        )

    def new_columns(self, names: Iterable[str]) -> list[str]:
        """Which columns that a record names this version does not have."""
        columns = set(self.column_names)
        return [name for name in names if name not in columns]

    def lacks(self, new: list[str], what: str) -> str:
        """As a sentence. In: names of new columns, at least one; what has them."""
        named = ", ".join(name[:LEN_NAME] for name in new[:NUM_NAMED])
        more = f" and {len(new) - NUM_NAMED} more" if len(new) > NUM_NAMED else ""
        text = f"{what} has {named}{more}, which version {self.version} of the contract does not have"
        near = _by_lower_name(self.columns).get(new[0].lower())
        return f"{text}; it has {near.name}" if near else text

    def columns_in(self, version: "Table") -> dict[str, TableColumn | None]:
        """Gold's name of each of its columns -> what the column was in a version; None where that had no such
        column.
        """
        existing = _by_lower_name(version.columns)
        return {
            c.gold_name: None if c.dropped and version.version == self.version else _found(c, existing)
            for c in self.columns
        }

    def _key_in(self, columns: list[TableColumn]) -> list[str]:
        existing = _by_lower_name(columns)
        return [(_found(c, existing) or c).name for c in self._key_columns]

    @property
    def _key_columns(self) -> list[TableColumn]:
        own = {c.name: c for c in self.columns}
        return [own[name] for name in self.key]

    @property
    def added_again(self) -> dict[str, list[str]]:
        """The columns that a version has, the one before it lacks and an earlier one had: {the first place at which
        such a version is in force: names of the columns in gold}. A row has no value of such a column there. Columns of
        the key are left out: without one a row would be another one.
        """
        found: dict[str, list[str]] = {}
        columns = [self.columns_in(version) for version in self.versions]
        for name in [one for one in columns[0] if one not in self.gold_key]:
            has = [of_version[name] is not None for of_version in columns]
            for n in range(2, len(has)):
                if has[n] and not has[n - 1] and any(has[: n - 1]):
                    found.setdefault(self.earlier[n - 1].until.ljust(LEN_SEQ, "0"), []).append(name)
        return dict(sorted(found.items()))

    @property
    def ours(self) -> dict[str, str]:
        """What columns of ours are called in its gold, where it has columns of their names itself: with `_` in front,
        or as many as that takes.
        """
        return ours_beside({c.gold_name for c in self.columns})

    def our(self, name: str) -> str:
        """What a column of ours is called in its gold."""
        return self.ours.get(name, name)

    @property
    def without_key(self) -> str:
        """What a table without a key has, as one sentence; empty with a key."""
        return (
            ""
            if self.key
            else f"{self.table} has no key, so it has a log, {self.name}__before_after, and no current rows or history"
        )

    @property
    def gold_key(self) -> list[str]:
        return [c.gold_name for c in self._key_columns]

    @property
    def column_mapping(self) -> str | None:
        """Delta's mode of column mapping that its columns need: Parquet does not take every name."""
        return None if all(UNMAPPED.fullmatch(c.name) for c in self.columns) else "name"

    @property
    def schema_name(self) -> str:
        return self.table.split(".")[0]

    @property
    def table_name(self) -> str:
        return self.table.split(".")[1]

    @property
    def column_names(self) -> list[str]:
        return [c.name for c in self.columns]

    def column(self, name: str) -> TableColumn:
        """The column of that exact name. Raises: KeyError."""
        return next(c for c in self.columns if c.name == name) if name in self.column_names else self._no(name)

    def _no(self, name: str):
        raise KeyError(f"{self.table} has no column {name}")


def ours_beside(taken: set[str]) -> dict[str, str]:
    """What columns of ours are called beside columns of these names, those alone that give way."""
    return {
        name: next(longer for n in count(1) if (longer := "_" * n + name) not in taken)
        for name in sorted(taken & set(OURS))
    }


def _by_lower_name(columns: list[TableColumn]) -> dict[str, TableColumn]:
    return {c.name.lower(): c for c in columns}


def _found(column: TableColumn, existing: dict[str, TableColumn]) -> TableColumn | None:
    """The first of a column's names that exists. In: columns by their names in lower case."""
    names = (column.name, *column.formerly)
    return next((existing[n.lower()] for n in names if n.lower() in existing), None)


def _check_columns(where: str, columns: list[TableColumn], key: list[str]) -> None:
    twice = {name for name, num in Counter(c.name.lower() for c in columns).items() if num > 1}
    if twice:
        alike = [c.name for c in columns if c.name.lower() in twice]
        raise ValueError(
            f"{where}columns: "
            + (
                f"{', '.join(sorted(twice))} stands there twice"
                if len(set(alike)) == len(twice)
                else f"{' and '.join(alike)} differ only in case, which Spark does not tell apart: give one "
                "another name where the feed is made"
            )
        )
    names = {c.name for c in columns}
    for column in key:
        if column not in names:
            raise ValueError(f"{where}key: {column!r} is not among the columns")


def fingerprint(table: Table) -> str:
    """Tells a contract from what it was before."""
    return sha256(table.model_dump_json().encode()).hexdigest()[:16]


def same_columns(version: Table, columns: list[dict]) -> bool:
    """Does a definition that a feed gave say the same columns as a version of a contract: names and types, in order?"""
    return [(c.name, c.type) for c in version.columns] == [(c["name"], c["type"]) for c in columns]


def in_force(tables: dict[str, Table], change_seq: str) -> dict[str, Table]:
    """Contracts as they were in force at a place in the order."""
    return {name: table.at(change_seq) for name, table in tables.items()}


def present(names: dict[str, Table], name: str) -> str:
    """The SCHEMA.TABLE that a table goes by now. In: contracts as of `by_name`, a name of it now or before."""
    return names[name].table if name in names else name


def by_name(tables) -> dict[str, Table]:
    """Contracts by every SCHEMA.TABLE that they went by. A name of now goes before one of before."""
    return {name: t for t in tables for name in t.names} | {t.table: t for t in tables}
