"""One column of a table contract."""

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

SIMPLE_TYPES = (
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
)
DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
PLACE = re.compile(r" AT ([0-9]{1,9}):([0-9]{1,9})")  # first byte of a column in a record, and end


class TableColumn(BaseModel):
    """One column. `type` is the Spark SQL type in gold; `source_type` is the vendor's, for layouts of binary
    records, maybe with the column's place in them, ` AT 0:12`; `charset` is the character set of its text, where that
    is not its source's. Codecs check both.
    """

    model_config = ConfigDict(extra="forbid")
    name: str
    type: str
    nullable: bool = True
    source_type: str | None = None
    charset: str | None = None
    encoding: Literal["hex"] | None = None  # how text carries a binary column
    formerly: list[str] = []  # its names in earlier versions
    dropped: bool = False  # gone at the source; gold keeps what it held
    description: str = ""

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if not name or "\0" in name:
            raise ValueError(f"expected the name that the source has for it, found {name!r}")
        return name

    @field_validator("type")
    @classmethod
    def _type(cls, type_: str) -> str:
        type_ = type_.lower().replace(" ", "")
        decimal = DECIMAL.fullmatch(type_)
        if type_ in SIMPLE_TYPES or decimal and 1 <= int(decimal[1]) <= 38 and int(decimal[2]) <= int(decimal[1]):
            return type_
        raise ValueError(f"expected one of {', '.join(SIMPLE_TYPES)}, decimal(p,s) with p up to 38; found {type_!r}")

    @property
    def vendor_type(self) -> str:
        """Its source_type without its place in a record; empty where there is none."""
        return without_place(self.source_type or "")

    @property
    def gold_name(self) -> str:
        """Its name in gold."""
        return self.name.lower()


def without_place(source_type: str) -> str:
    """A vendor's type without the place in a record.

    >>> without_place("ASCII_V(20) AT 12:38"), without_place("ASCII_V(20)")
    ('ASCII_V(20)', 'ASCII_V(20)')
    """
    return PLACE.sub("", source_type)
