"""The options of a source of GoldenGate's delimited text: what the properties of its formatter say."""

import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, field_validator, model_validator

from inlet.codecs.goldengate.operations.options import OperationOptions, Role
from inlet.fields import charset

CDATA = re.compile(r"CDATA\[(.*)\]", re.DOTALL)
ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
LETTERS = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
OWN = tuple(role for role in get_args(Role) if role not in ("before", "after"))


def written(text: str) -> str:
    r"""The characters that a property of the formatter stands for.

    >>> written("CDATA[ ; ]"), written(r"\x01"), written(r"CDATA[\u0001]"), written("|")
    (' ; ', '\x01', '\x01', '|')
    """
    cdata = CDATA.fullmatch(text)

    def character(match: re.Match) -> str:
        if match[3] and match[3] not in LETTERS:
            raise ValueError(
                f"expected \\n, \\r, \\t, \\\\, \\x and two or \\u and four hex digits, found {match[0]!r}"
            )
        return LETTERS[match[3]] if match[3] else chr(int(match[1] or match[2], 16))

    return ESCAPE.sub(character, cdata[1] if cdata else text)


Written = Annotated[str, AfterValidator(written)]


class Options(OperationOptions):
    r"""A source's `options`. Texts may be written as the formatter's properties are: CDATA[...], \n, \x01, \u0001."""

    metadata_fields: list[str] = Field(
        ["op_type", "table", "op_ts", "current_ts", "pos", "tokens"],
        description="the metadata fields before the columns, in their order: table, op_type, op_ts, current_ts, pos, "
        "primary_keys, tokens, xid, seqno, rba; any other name is one of the message's own, which `header` keeps",
    )
    charset: str = Field(
        "AL32UTF8", description="character set of the messages (encoding), one that has ASCII; `UTF-8`, `WE8MSWIN1252`"
    )
    model: Literal["row", "operation"] = Field(
        "row",
        description="a value for each column (delimitedtext, delimitedtext_row), or two, before and after "
        "(delimitedtext_op)",
    )
    include_meta_column_names: bool = Field(
        False, description="whether each metadata field follows one with its name (includeMetaColumnNames)"
    )
    include_column_names: bool = Field(
        False, description="whether the values of each column follow a field with its name (includeColumnNames)"
    )
    field_delimiter: Written = Field("\x01", min_length=1, description="between fields (fieldDelimiter)")
    line_delimiter: Written = Field("\n", min_length=1, description="behind each record (lineDelimiter)")
    null_text: Written = Field("NULL", description="what stands for SQL NULL (nullValueRepresentation)")
    missing_text: Written = Field(
        "", description="what stands for a column that was not supplied (missingValueRepresentation)"
    )
    empty_means: Literal["auto", "missing", "text"] = Field(
        "auto",
        description="an empty field of a text column, where missing_text is empty too: `missing`, not supplied, since "
        "the source has no empty texts (Oracle Database); `text`, an empty text, since nothing is missing; `auto`: the "
        "one where texts are quoted, else a reject in an after-image",
    )
    quote: str | None = Field(
        None,
        min_length=1,
        max_length=1,
        description="the character around texts (wrapStringsInQuotes); within them it is written twice",
    )
    key_value_delimiter: Written = Field("=", min_length=1, description="between a token and its value")
    key_value_pair_delimiter: Written = Field(",", min_length=1, description="between tokens")

    @field_validator("charset")
    @classmethod
    def _known(cls, name: str) -> str:
        charset.with_ascii(name)
        return name

    @field_validator("metadata_fields")
    @classmethod
    def _each_once(cls, fields: list[str]) -> list[str]:
        if twice := {name for name in fields if fields.count(name) > 1}:
            raise ValueError(f"{', '.join(sorted(twice))} stands there twice")
        return fields

    @model_validator(mode="after")
    def _whole(self):
        self.header_members = [*self.header_members, *(name for name in self.metadata_fields if name not in OWN)]
        for mark in (self.line_delimiter, self.quote or ""):
            if mark and (mark in self.field_delimiter or self.field_delimiter in mark):
                raise ValueError(f"field_delimiter {self.field_delimiter!r} and {mark!r} cannot be told apart")
        return self
