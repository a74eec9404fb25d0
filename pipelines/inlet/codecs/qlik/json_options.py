"""The options of a source of Qlik's JSON messages."""

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from inlet.codecs.qlik import full_load

SECTION = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*/?)?")
NAMED = "as Qlik's message format names it: `{}/` is an object of that name, `{}_` begins the name of each member"


class Options(full_load.Options):
    """A source's `options`."""

    data_section: str | None = Field(
        None,
        description=f"where a message has its data, {NAMED.format('data', 'data')}, empty text is for names without a "
        "beginning. Without it, the names of the contract's columns tell it where only one reading fits",
    )
    before_section: str | None = Field(
        None, description="where a message has the row of before, the same way: `beforeData/`, `beforeData_`"
    )
    headers_section: str | None = Field(
        None, description="where a message has Qlik's headers, the same way: `headers/`, `headers_`"
    )
    legacy_null: Literal["auto", "null", "text"] = Field(
        "auto",
        description="what the text NULL of a text column is in messages of version 5 and before: SQL `null`, the "
        "`text`; `auto`: a reject, for the message does not say which",
    )
    tombstones: Literal["ignore", "delete"] = Field(
        "ignore",
        description="what a message without a value is: `ignore`, counted as control event `tombstone`; `delete`, a "
        "delete of the row that its key names, placed by the broker's time and the offset. Choose `delete` only where "
        "Qlik writes deletes as tombstones (deleteAsTombstone)",
    )
    tombstone_key: Literal["auto", "text", "json"] = Field(
        "auto",
        description="how the message key of a tombstone is written: `text`, the value of a key of one column; `json`; "
        "`auto`: by its form, a reject where both readings fit and differ",
    )

    task_name: str | None = Field(
        None,
        description="the Qlik task of the source, where topics `attrep_*` have rows of other tasks, too: those are "
        "counted alone. Without it all rows are taken, and statuses of several tasks end no full load",
    )
    whole_task: bool = Field(
        True,
        description="whether the source reads all topics of its task, so that `inlet status` holds the records that "
        "attrep_history counts against those that were landed",
    )

    @field_validator("data_section", "before_section", "headers_section")
    @classmethod
    def _section(cls, name: str | None) -> str | None:
        if name is not None and not SECTION.fullmatch(name):
            raise ValueError(f"expected letters, digits and _, maybe a / at the end, or nothing, found {name!r}")
        return name

    @model_validator(mode="after")
    def _apart(self):
        told = [name for name in (self.data_section, self.before_section, self.headers_section) if name]
        if len(set(told)) < len(told) or self.data_section == self.before_section == "":
            raise ValueError("data_section, before_section and headers_section: expected names that differ")
        return self
