"""The options of a Linkexpress source: what no manual says, and what a site chose when it made its extracts."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from inlet.fields.charset import checked_overrides
from inlet.source import Source

FILE_NAME = (
    r"(?:(?P<table>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?)[._-])?(?P<time>\d{14}(?:\d\d)?)"
    r"(?:[._-](?P<ordinal>\d{1,9}))?(?:\.\w+)*"
)


class CommonOptions(BaseModel):
    """`options` that every Linkexpress source has. What is `auto` is settled by exact fit over the first records of
    each file.
    """

    model_config = ConfigDict(extra="forbid")
    file_name: str = Field(
        FILE_NAME,
        description="pattern of a whole file name: groups time (14 or 16 digits), "
        "optional ordinal, optional table (full extracts)",
    )
    byte_order: Literal["auto", "big", "little"] = Field(
        "auto", description="of lengths, counts, codes and binary items"
    )
    charset: Literal[
        "cp932",
        "sjisms",
        "euc_jp",
        "utf_8",
        "ascii",
        "ebcdic_kana",
        "gs_kana",
        "ebcdic_ascii",
        "gs_ascii",
        "ebcdic_lower",
    ] = Field("cp932", description="OUTCODE of CHARACTER and VARCHAR")
    nchar_charset: Literal["auto", "cp932", "euc_jp", "jef", "utf_16"] = Field(
        "auto", description="of NCHAR and NVARCHAR; auto: the pairs of `charset`, none for utf_8 and ascii"
    )
    charset_overrides: dict[str, str] = Field({}, description="cells of CHARACTER that a site changed: {4A: '['}")
    nchar_overrides: dict[str, str] = Field(
        {}, description="the same for NCHAR, and for the pairs of EBCDIC: {77C9: '①'}"
    )
    jef_mapping: Literal["glyph", "modern"] = Field(
        "glyph", description="JEF kanji: shapes of 1978, or today's characters"
    )
    jef_mixed: Literal["shift", "single", "double"] = Field(
        "shift", description="EBCDIC text: kanji between shift codes, no kanji, or nothing but kanji"
    )
    jef_pua_base: int = Field(
        0xE000, ge=0xE000, le=0x10F000, description="code point of the first user-defined JEF cell"
    )
    rtrim_char: Literal["keep", "strip"] = Field("keep", description="trailing blanks of CHARACTER and NCHAR")
    nvarchar_len_unit: Literal["characters", "bytes"] = Field("characters", description="what NVARCHAR's length counts")
    numeric_sign: Literal["auto", "separate", "overpunch"] = Field("auto", description="NUMERIC: p+1 bytes or p")
    float_form: Literal["auto", "ieee", "hex"] = Field("auto", description="REAL and DOUBLE; auto: hex for EBCDIC sets")

    _overrides = field_validator("charset_overrides", "nchar_overrides", mode="before")(checked_overrides)


class Options(CommonOptions):
    """`options` of a source of extracts."""

    null_areas: Literal["auto", "yes", "no"] = Field("auto", description="NULLIND: a null indicator before every item")
    logtype: Literal["auto", "normal", "little"] = Field(
        "auto", description="LOGTYPE: variable items at defined or actual length"
    )
    timestamp_bytes: Literal[7, 8, 11] = Field(11, description="width of TIMESTAMP")
    time_bytes: Literal[3, 7] = Field(3, description="width of TIME")
    null_var_body: Literal["auto", "len0", "full", "absent"] = Field(
        "auto", description="what follows the indicator of a null variable item under logtype little"
    )
    blob_header: Literal["res4len4", "len8", "len4"] = Field("res4len4", description="length area of BLOB")
    max_record_bytes: int | None = Field(
        None, gt=0, description="longest legal record; none: the largest layout, at least the vendor's limits"
    )


class TableOptions(Options):
    """`options` of a source of extracts by table."""

    difftype: Literal["auto", "open", "journal"] = Field(
        "auto", description="DIFFTYPE: OPEN, or JNL, whose full extracts are in the open form"
    )


def options_of(source: Source) -> Options:
    """The options of a source of extracts."""
    return source.options_as(TableOptions if source.codec == "linkexpress_table" else Options)
