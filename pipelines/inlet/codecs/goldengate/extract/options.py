"""The options of a source of Extract's text files: what FORMATASCII, FORMATSQL, FORMATXML (OUTPUTFORMAT) were told."""

import re
from functools import cache
from typing import Literal

from pydantic import Field, field_validator, model_validator

from inlet.codecs.goldengate.operations.options import ImageOptions
from inlet.fields import charset
from inlet.fields.charset import Charset

FILE_NAME = r"[A-Za-z]{2}(?P<ordinal>\d{6}(?:\d{3})?)(?:\.\w+)*"
TAB = "TAB"


@cache
def encoded(text: str, name: str) -> bytes:
    """Some characters in a set. Raises: ValueError where it has not all of them."""
    return b"".join(charset.encoded(char, charset.with_ascii(name)) for char in text)


class Options(ImageOptions):
    """A source's `options`. Nothing is found out by looking at a file: Extract's options take fields away."""

    format: Literal["text", "sql", "xml"] = Field(
        "text", description="FORMATASCII (OUTPUTFORMAT TEXT), FORMATSQL or FORMATXML"
    )
    file_name: str = Field(
        FILE_NAME,
        description="pattern of a whole file name: group ordinal, up to 9 digits; optional group time (14 or 16 "
        "digits), which comes before it in the order. The default is that of a trail: two letters and a number",
    )
    charset: str = Field(
        "AL32UTF8",
        description="character set of the files, one that has ASCII, as Oracle, MySQL or PostgreSQL names it: that of "
        "Extract's system, or UTF-8 by ENCODING",
    )
    delimiter: str = Field(
        ",",
        min_length=1,
        description="DELIMITER: behind each field of text; TAB for a tabulator, which older releases and NonStop "
        "write where nothing is said",
    )
    column_names: bool = Field(
        True, description="NAMES or NONAMES: whether names of columns stand before values, in text"
    )
    compressed_updates: Literal["numbers", "names"] = Field(
        "numbers",
        description="what stands before the values of V without column_names: the column's number, or its name, as "
        "NonStop writes them",
    )
    name_mark: str = Field(
        "=", min_length=1, description="what stands between a name and its value, in text; it may be the delimiter"
    )
    first_column: Literal[0, 1] = Field(
        0, description="the number of the first column, where numbers of columns stand before values (V and NONAMES)"
    )
    placeholders: bool = Field(
        False, description="PLACEHOLDERS: whether an empty field stands for a column that was not supplied, in text"
    )
    null_is_space: bool = Field(
        False, description="NULLISSPACE: whether an empty field stands for SQL NULL, in place of NULL, in text"
    )
    empty_element: Literal["auto", "null", "text"] = Field(
        "auto",
        description='a column without text and without status="null", in XML: `null`, SQL NULL; `text`, an empty text; '
        "`auto`: a reject, for nothing public says which",
    )
    transactions: bool = Field(
        True, description="TRANSTMTS or NOTRANSTMTS: whether records B and C stand around each transaction"
    )
    operation_indicator: bool = Field(True, description="OP or NOOP: whether I, D, U or V stand before a row of text")
    image_indicator: bool = Field(True, description="IND or NOIND: whether B or A stand before a row of text")
    table: str | None = Field(
        None, description="the table of all rows, in text whose rows do not name it (NOHDRFIELDS: only columns)"
    )
    rows_are: Literal["INSERT"] | None = Field(
        None, description="what rows without an operation indicator are: INSERT, those of an initial load"
    )

    @field_validator("charset")
    @classmethod
    def _known(cls, name: str) -> str:
        charset.with_ascii(name)
        return name

    @property
    def set(self) -> Charset:
        return charset.with_ascii(self.charset)

    @field_validator("delimiter", "name_mark")
    @classmethod
    def _tabulator(cls, text: str) -> str:
        return "\t" if text == TAB else text

    @field_validator("file_name")
    @classmethod
    def _pattern(cls, text: str) -> str:
        try:
            groups = re.compile(text).groupindex
        except re.error as error:
            raise ValueError(f"expected a regular expression, found {text!r}: {error}") from None
        if "ordinal" not in groups and "time" not in groups:
            raise ValueError(f"expected a group ordinal or time, found {text!r}")
        return text

    @model_validator(mode="after")
    def _whole(self):
        if not self.operation_indicator and self.rows_are is None:
            raise ValueError("operation_indicator: false needs rows_are, for nothing tells what a row is then")
        if self.delimiter in "'\r\n":
            raise ValueError(f"expected a delimiter that is no quote and no line end, found {self.delimiter!r}")
        encoded(self.delimiter, self.charset)
        return self
