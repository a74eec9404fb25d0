"""The options of a Linkexpress source: what no manual says, and what a site chose when it made its extracts."""

from functools import cached_property
from typing import ClassVar, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from inlet.fields import site_table
from inlet.fields.charset import ALIASES, Charset, charset
from inlet.source import Source, required

FILE_NAME = (
    r"(?:(?P<table>[^\W\d]\w*(?:\.[^\W\d]\w*)?)[._-])?(?P<time>\d{14}(?:\d\d)?)"
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
    source_tz: str | None = Field(
        None,
        description="zone of the source's local times, such as Asia/Tokyo, or UTC: of those in file names, and of "
        "TJNLTIME; they become UTC. Every source has to say it, before its first file lands",
    )
    byte_order: Literal["auto", "big", "little"] = Field(
        "auto", description="of lengths, counts, codes and binary items"
    )
    charset: (
        Literal[
            "cp932",
            "sjisms",
            "euc_jp",
            "euc_jp_0212",
            "u90",
            "utf_8",
            "utf_16",
            "ascii",
            "jis8",
            "ebcdic_kana",
            "gs_kana",
            "ebcdic_ascii",
            "gs_ascii",
            "ebcdic_lower",
        ]
        | None
    ) = Field(
        None,
        description="OUTCODE of CHARACTER and VARCHAR (character_sets.md); utf_16 in the byte order of the file. Every "
        "source has to say it, because text tells no character set; ascii where it holds no other characters",
    )
    nchar_charset: Literal["auto", "cp932", "euc_jp", "jef", "utf_16"] = Field(
        "auto", description="of NCHAR and NVARCHAR; auto: the pairs of `charset`, none for utf_8, ascii and jis8"
    )
    gaiji: str = Field(
        "",
        description="a site's own characters (外字, 拡張漢字): a file of the project, or {41A1: U+4E02, F040: 髙}; "
        "each set takes the codes that it reads (character_sets.md)",
    )
    user_defined: Literal["keep", "reject"] = Field(
        "keep", description="user-defined characters that `gaiji` does not name: of the private use area, or bad_text"
    )
    charset_overrides: dict[str, str] = Field(
        {}, description="as `gaiji`, for CHARACTER alone: cells that a site changed, {4A: '['}"
    )
    nchar_overrides: dict[str, str] = Field(
        {}, description="the same for NCHAR, and for the pairs of EBCDIC: {77C9: '①'}"
    )
    jef_mapping: Literal["glyph", "modern"] = Field(
        "glyph", description="JEF kanji: shapes of 1978, or today's characters"
    )
    jef_mixed: Literal["shift", "shift_open", "single", "double"] = Field(
        "shift",
        description="EBCDIC text: kanji between shift codes; so, and they may go on to the end of items; no kanji; or "
        "nothing but kanji",
    )
    jef_pua_base: int = Field(
        0xE000, ge=0xE000, le=0x10F000, description="code point of the first user-defined JEF cell"
    )
    rtrim_char: Literal["keep", "strip"] = Field("keep", description="trailing blanks of CHARACTER and NCHAR")
    nvarchar_len_unit: Literal["characters", "bytes"] = Field("characters", description="what NVARCHAR's length counts")
    numeric_sign: Literal["auto", "separate", "overpunch"] = Field("auto", description="NUMERIC: p+1 bytes or p")
    float_form: Literal["auto", "ieee", "hex"] = Field("auto", description="REAL and DOUBLE; auto: hex for EBCDIC sets")

    FILES: ClassVar = {"gaiji": site_table.of_text}
    REQUIRED: ClassVar = {
        "source_tz": "Times of the source tell no zone: name it, such as Asia/Tokyo; or UTC, where its clock has that",
        "charset": "Text tells no character set: name that of OUTCODE, such as cp932, euc_jp, utf_8 or gs_kana; or "
        "ascii, where text holds no other characters",
    }
    _codes = field_validator("charset_overrides", "nchar_overrides", mode="before")(site_table.checked)

    @field_validator("source_tz")
    @classmethod
    def _zone(cls, name: str | None) -> str | None:
        try:
            ZoneInfo("UTC" if name is None else name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"expected the name of a time zone, such as Asia/Tokyo, found {name!r}") from None
        return name

    @field_validator("gaiji", mode="before")
    @classmethod
    def _site_table(cls, given) -> str:
        """A table's text. In: that, or codes with their characters."""
        if isinstance(given, str):
            site_table.of_text(given)
            return given
        return site_table.as_text(site_table.checked(given))

    @model_validator(mode="after")
    def _codes_are_read(self):
        if self.user_defined == "reject" and self.charset == "utf_8":
            raise ValueError("user_defined: utf_8 keeps the private use area; reject is for the other sets")
        codes = {*site_table.of_text(self.gaiji), *self.charset_overrides, *self.nchar_overrides}
        if codes and self.charset:
            sets = [set_ for set_ in (self.char_set("big"), self.nchar_set("big")) if set_]
            if left := sorted(codes.difference(*(set_.of_site for set_ in sets))):
                names = " or ".join(dict.fromkeys(set_.name for set_ in sets))
                raise ValueError(f"{', '.join(left[:5])}: no code that is read as {names}")
        return self

    @cached_property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.source_tz or "UTC")

    @property
    def is_ebcdic(self) -> bool:
        return (self.charset or "").startswith(("ebcdic_", "gs_"))

    @property
    def is_gs(self) -> bool:
        """Is the set that of OutCode GS_KANA or GS_ASCII? Their NUMERIC in journals has no sign byte [documented]."""
        return ALIASES.get(self.charset or "", self.charset) in ("ebcdic_kana", "ebcdic_ascii")

    def char_set(self, byte_order: str) -> Charset:
        """The set of CHARACTER and VARCHAR."""
        pairs = self.nchar_overrides if self.is_ebcdic else {}
        mixed = self.jef_mixed if self.is_ebcdic else "shift"
        return self._set(self.charset, byte_order, mixed, self.charset_overrides | pairs)

    def moment_set(self, byte_order: str) -> Charset:
        """The set of days, times and names of checkpoints, whose widths are those of single bytes in any set."""
        if self.charset == "utf_16":
            return self._set("ascii", byte_order, "shift", {})
        is_double = self.is_ebcdic and self.jef_mixed == "double"
        single = self.model_copy(update={"jef_mixed": "single"}) if is_double else self
        return single.char_set(byte_order)

    def nchar_set(self, byte_order: str) -> Charset | None:
        """The set of pairs that NCHAR is read in; None for none."""
        name: str | None = self.nchar_charset
        if name == "auto":
            name = "jef" if self.is_ebcdic else PAIRS_OF.get(self.charset or "")
        return self._set(name, byte_order, "double", self.nchar_overrides) if name else None

    def for_types(self) -> Self:
        """With some charset where none is given yet, for `inlet import`: types of a contract do not depend on it."""
        return self if self.charset else self.model_copy(update={"charset": "cp932"})

    def _set(self, name: str | None, byte_order: str, mixed: str, codes: dict[str, str]) -> Charset:
        if name is None:
            raise ValueError("option charset is missing")  # `required` has asked for it
        name = UTF_16[byte_order] if name == "utf_16" else name
        overrides = self.gaiji, site_table.as_text(codes)
        return charset(name, self.jef_mapping, mixed, overrides, self.jef_pua_base, self.user_defined)

    @property
    def has_hex_floats(self) -> bool:
        """Are REAL and DOUBLE base 16?"""
        return self.float_form == "hex" or self.float_form == "auto" and self.is_ebcdic


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
    interval_bytes: int | None = Field(
        None, gt=0, description="width of INTERVAL, which is kept as its bytes; none: it is not supported"
    )
    blob_header: Literal["res4len4", "len8", "len4"] = Field(
        "res4len4", description="length area of BLOB, BYTEA and TEXT"
    )
    max_record_bytes: int | None = Field(
        None, gt=0, description="longest legal record; none: the largest layout, at least the vendor's limits"
    )


class TableOptions(Options):
    """`options` of a source of extracts by table."""

    difftype: Literal["auto", "open", "journal"] = Field(
        "auto", description="DIFFTYPE: OPEN, or JNL, whose full extracts are in the open form"
    )

    @model_validator(mode="after")
    def _journal_form_has_null_areas(self):
        if (self.difftype, self.null_areas) == ("journal", "no"):
            raise ValueError("null_areas: files of a journal-form definition have them in any case; leave it out")
        return self


def options_of(source: Source) -> Options:
    """The options of a source of extracts. Raises: ConfigError where a required one is missing."""
    return required(given(source), f"sources.{source.name}.options")


def given(source: Source) -> Options:
    """The options of a source of extracts, for `inlet import`: required ones may be missing."""
    return source.options_as(TableOptions if source.codec == "linkexpress_table" else Options)


PAIRS_OF = {
    "cp932": "cp932",
    "sjisms": "cp932",
    "euc_jp": "euc_jp",
    "euc_jp_0212": "euc_jp",  # characters of three bytes are none of an area of pairs
    "u90": "euc_jp",
    "utf_16": "utf_16",
}
UTF_16 = {"big": "utf_16_be", "little": "utf_16_le"}
