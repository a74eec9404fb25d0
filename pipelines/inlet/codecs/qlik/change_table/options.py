"""The options of a source of Qlik's change tables and load files."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from inlet.codecs.qlik import dfm, load_time
from inlet.fields import charset


class Options(BaseModel):
    """A source's `options`."""

    model_config = ConfigDict(extra="forbid")
    suffix: str = Field("__ct", min_length=1, description="how folders of change tables end, in any case")
    prefix: str = Field("header__", min_length=1, description="how header columns begin, in any case")
    format: Literal["auto", "delimited", "json"] = Field(
        "auto",
        description="what files of text are; `auto`: by their names (.json, any other), Parquet is transport `rows`",
    )
    delimiter: str = Field(",", min_length=1, description="between two cells; in hex too: 0x01")
    record_delimiter: str = Field("\n", min_length=1, description="after each record; in hex too: 0x0D0A")
    quote: str = Field('"', max_length=4, description="around texts; empty for none; in hex too")
    escape: str = Field(
        "", max_length=4, description="before a quote within quotes; empty: such a quote is written twice; in hex too"
    )
    null_text: str = Field("", description="the cell, not in quotes, that stands for SQL NULL")
    quoted_null: Literal["auto", "text", "null"] = Field(
        "auto",
        description="what null_text in quotes is: `text`; SQL `null`; `auto`: a reject, for nothing public says which",
    )
    header_row: Literal["auto", "none", "names", "typed"] = Field(
        "auto", description="the first record: column names, or names and types (NAME:TYPE); `auto`: by what it says"
    )
    header_columns: list[str] = Field(
        [],
        description="the header columns of change tables whose files have no header row, in order; the columns of the "
        "contract follow. Without it Qlik's default ones, where the first record fits them",
    )
    code_page: str = Field(
        "AL32UTF8", description="character set of the files, one that has ASCII, as Oracle or MySQL names it"
    )
    last_record: Literal["ended", "whole"] = Field(
        "ended",
        description="whether a last record without record delimiter is taken: `ended`, no, for it looks as a file does "
        "that was cut off; `whole`, yes",
    )
    mask_form: Literal["auto", "hex", "base64", "binary"] = Field(
        "auto", description="how change_mask is written; `auto`: settled by fit over the file, `binary` in Parquet"
    )
    mask_order: Literal["auto", "big", "little"] = Field(
        "auto",
        description="which byte of a mask has its first eight columns: the last one (`big`), the first one (`little`); "
        "`auto`: the last one in hex, else settled by fit",
    )
    without_mask: Literal["full", "null_means_unchanged"] | None = Field(
        None,
        description="what updates are in change tables without change_mask: rows with all values, or rows whose nulls "
        "say nothing; it has to be told there",
    )
    before_images: Literal["auto", "stored", "none"] = Field(
        "auto",
        description="whether Qlik stores before-images (rows B): then updates wait for theirs; `auto`: updates and "
        "before-images are rejected until it is told",
    )
    sidecar: str = Field(
        "none",
        min_length=1,
        description="where the .dfm of each file lies, for which it waits `settle_minutes` at most: next to it "
        "(`beside`); in the folder of its `partition`, or that of the partition itself; next to it, else with the "
        "`full_load` of its table; or the path of a metadata folder, which may have a folder for each table; `none`: "
        "files have none",
    )
    without_sidecar: Literal["wait", "last", "contract", "reject"] = Field(
        "wait",
        description="what a file does without its .dfm after `settle_minutes`: `wait` on; take the `last` one before "
        "it in that folder, by name; be read as the options and the `contract` say; or be rejected. One of the "
        "partition or the full load, where `sidecar` names these, goes before",
    )
    load_time: str | None = Field(
        None,
        description="when the full load of the LOAD files began, UTC: 14 or 16 digits; `first`: before all changes; "
        "without it the .dfm of LOAD00000001 tells it (startWriteTimestamp)",
    )
    load_lead_seconds: float = Field(
        60,
        ge=0,
        description="how long before startWriteTimestamp a full load may have read its first row: a load that begins "
        "too early does no harm, one that begins too late hides changes",
    )
    loads_end: Literal["change", "files"] = Field(
        "change",
        description="what tells that a full load has ended, once its files are there without a gap: `change`, a change "
        "of its table after its start; `files`, nothing more, where all files of a load are delivered at once",
    )
    landed_files: Literal["kept", "removed"] = Field(
        "kept",
        description="whether landed files stay until Qlik removes them by retention; `removed`: something else removes "
        "them once they are landed, so that their absence tells of no gap",
    )
    load_numbers: dict[str, int] = Field(
        {},
        description="folder of a table -> six digits in the places of its full loads, where two folders have the same "
        "checksum",
    )

    @field_validator("delimiter", "record_delimiter", "quote", "escape")
    @classmethod
    def _delimiter(cls, text: str) -> str:
        return dfm.delimiter(text)

    @field_validator("code_page")
    @classmethod
    def _known(cls, name: str) -> str:
        charset.with_ascii(name)
        return name

    @field_validator("load_time")
    @classmethod
    def _time(cls, text: str | None) -> str | None:
        return load_time.first_or_time(text)

    @field_validator("load_numbers")
    @classmethod
    def _numbers(cls, numbers: dict[str, int]) -> dict[str, int]:
        if wrong := {word: number for word, number in numbers.items() if not 0 <= number < 10**6}:
            raise ValueError(f"expected numbers from 0 to 999999, found {wrong}")
        return numbers

    @model_validator(mode="after")
    def _whole(self):
        check_dialect(self.delimiter, self.record_delimiter, self.quote, self.escape)
        return self


def check_dialect(delimiter: str, record_delimiter: str, quote: str, escape: str) -> None:
    """Raises: ValueError where delimiters, quote and escape cannot be told apart."""
    if not delimiter or not record_delimiter:
        raise ValueError("expected delimiters that are not empty")
    for name, text in (("quote", quote), ("escape", escape)):
        if len(text) > 1 or text and (text in delimiter or text in record_delimiter):
            raise ValueError(f"{name}: expected one character that is in no delimiter, or none, found {text!r}")
    if delimiter in record_delimiter or record_delimiter in delimiter:
        raise ValueError(
            f"expected delimiters of which none is in the other, found {delimiter!r}, {record_delimiter!r}"
        )
