"""The table contract: one captured table, one YAML file in pipelines/tables/.

    table: SHOP.ORDERS            # schema and table as the source names them
    name: orders                  # name of its gold tables: orders__current, orders__history, ...
    key: [ORDER_ID]
    columns:                      # in the source's order: a column's place here is its ordinal in every mask
      - {name: ORDER_ID, type: bigint, nullable: false}
      - {name: AMOUNT, type: "decimal(9,2)", source_type: "DECIMAL(9,2)"}
"""

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

SIMPLE_TYPES = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date",
                "timestamp", "timestamp_ntz")
DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED = {                   # columns that gold adds beside the table's own
    "source", "change_seq", "valid_from_seq", "valid_to_seq", "valid_from", "valid_to", "operation", "change_oper",
    "transaction_id", "transaction_event_counter", "transaction_last_event", "change_timestamp", "table_version",
    "before", "after", "changed", "not_supplied", "key_changed", "is_complete", "conflict", "load_id", "batch_id", "unit_id", "unit_offset",
    "_kind", "_is_last", "_is_rewritten", "_through_batch_id", "_through_change_seq",       # of the fold
}


class TableColumn(BaseModel):
    """One column. `type` is the Spark SQL type in gold; `source_type` is the vendor's, for layouts of binary records."""

    model_config = ConfigDict(extra="forbid")
    name: str
    type: str
    nullable: bool = True
    source_type: str | None = None
    encoding: Literal["hex"] | None = None          # how text carries a binary column
    description: str = ""

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if not NAME.fullmatch(name):
            raise ValueError(f"expected a name of letters, digits and _, found {name!r}")
        if name.lower() in RESERVED:
            raise ValueError(f"{name!r} is the name of a column that gold adds itself")
        return name

    @field_validator("type")
    @classmethod
    def _type(cls, type_: str) -> str:
        type_ = type_.lower().replace(" ", "")
        decimal = DECIMAL.fullmatch(type_)
        if type_ in SIMPLE_TYPES or decimal and 1 <= int(decimal[1]) <= 38 and int(decimal[2]) <= int(decimal[1]):
            return type_
        raise ValueError(f"expected one of {', '.join(SIMPLE_TYPES)}, decimal(p,s) with p up to 38; found {type_!r}")


class Table(BaseModel):
    """One captured table. `sources` empty means: whatever source carries it."""

    model_config = ConfigDict(extra="forbid")
    table: str
    name: str
    key: list[str] = Field(min_length=1)
    columns: list[TableColumn] = Field(min_length=1)
    sources: list[str] = []
    version: int = 1
    description: str = ""

    @model_validator(mode="after")
    def _whole(self):
        if self.table.count(".") != 1:
            raise ValueError(f"table: expected SCHEMA.TABLE, found {self.table!r}")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name) or "__" in self.name:
            raise ValueError(f"name: expected lower-case letters, digits and single _, found {self.name!r}")
        names = [c.name.lower() for c in self.columns]
        twice = {n for n in names if names.count(n) > 1}
        if twice:
            raise ValueError(f"columns: {', '.join(sorted(twice))} stands there twice")
        for column in self.key:
            if column not in self.column_names:
                raise ValueError(f"key: {column!r} is not among the columns")
        return self

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
