"""The options of a source of extracts that extraction definitions tell, for `inlet import`.

Keywords  LOGTYPE logtype, DIFFTYPE difftype, NULLIND null_areas, OUTCODE charset. A source by table has them in the
          definitions of its tables; one by group in that of the group (GRPNAME), for a member's own do not count
Facts     [documented] keywords, what LOGTYPE, DIFFTYPE and NULLIND may be, that a group's count for its members
          [unknown] the words of BYTESWAP, and most of OUTCODE: what they mean, a note asks
Source    docs/formats/linkexpress_group.md, linkexpress_table.md
"""

from inlet.codecs.linkexpress.options import CommonOptions, given
from inlet.codecs.results import Setting, Settings
from inlet.errors import ConfigError
from inlet.fields.charset import ALIASES
from inlet.source import Source

OPTIONS = {  # keyword -> option, and its values by the keyword's
    "LOGTYPE": ("logtype", {"NORMAL": "normal", "LITTLE": "little"}),
    "DIFFTYPE": ("difftype", {"OPEN": "open", "JNL": "journal"}),
    "NULLIND": ("null_areas", {"YES": "yes", "NO": "no"}),
}
CHARSETS = {"GS_KANA": "gs_kana", "GS_ASCII": "gs_ascii", "SJIS": "cp932", "EUC": "euc_jp"}  # ASSUMED: SJIS, EUC
BY_GROUP, BY_TABLE = "linkexpress_group", "linkexpress_table"
NOTES = {
    BY_GROUP: "no definition tells the ids of a group: map them, tables: {'1': SCHEMA.TABLE}; full extracts name their "
    "table in the file's name",
    BY_TABLE: "the file's name tells the table, TABLE_YYYYMMDDHHmmSS; words that are not its name are mapped, "
    "tables: {WORD: SCHEMA.TABLE}",
}


def settings(definitions: list[tuple[str, dict[str, str]]], source: Source) -> Settings:
    """What definitions tell of their source. In: of each its file and its keywords, REPNAME or GRPNAME among them.
    Raises: ConfigError where a word is none of its keyword's, or two definitions say two things.
    """
    found, options = Settings({}, {}, "", [] if source.tables else [NOTES[source.codec]]), given(source)
    named = "GRPNAME" if source.codec == BY_GROUP else "REPNAME"
    words: dict[str, tuple[str, str]] = {}  # keyword -> its word, and where it stands
    for file, one in definitions:
        for keyword in (*OPTIONS, "OUTCODE", "BYTESWAP") if named in one else ():
            if word := one.get(keyword, "").upper():
                place = f"{file}: {keyword} of {one[named]}"
                other, there = words.setdefault(keyword, (word, place))
                if other != word:
                    raise ConfigError(f"{place} is {word}, {there} is {other}", "Make a source of each")
    for keyword, (word, place) in words.items():
        if keyword == "OUTCODE":
            of_charset(word, place, options, found)
        elif keyword == "BYTESWAP":
            if options.byte_order == "auto":
                found.notes.append(f"{place} is {word}: where files fit both ways, byte_order has to be told")
        else:
            name, values = OPTIONS[keyword]
            if word not in values:
                raise ConfigError(f"{place}: expected {' or '.join(values)}, found {word}", "Give it as registered")
            if name in type(options).model_fields:
                found.options[name] = Setting(values[word], place)
    if words.get("DIFFTYPE", ("",))[0] == "JNL":
        found.options.pop("null_areas", None)  # the journal form has them in any case
    return found


def of_charset(word: str, place: str, options: CommonOptions, found: Settings) -> None:
    """What an output code says of the option charset. In: the settings so far, which get it, or a note."""
    charset = CHARSETS.get(word.upper())
    if charset and not (options.charset and _is_same_set(charset, options.charset)):
        found.options["charset"] = Setting(charset, place)
    elif word and not charset and not options.charset:
        found.notes.append(f"{place} {word}: say which charset that is")


def _is_same_set(one: str, other: str) -> bool:
    """Is a source's charset one that a word of OUTCODE means?"""
    if one == "euc_jp" and other in ("euc_jp_0212", "u90"):
        return True
    return ALIASES.get(one, one) == ALIASES.get(other, other)
