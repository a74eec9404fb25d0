"""The sidecar of a data file (.dfm): what Qlik says of a file that it has written, as JSON.

Members     [documented] taskInfo {name, sourceEndpoint, sourceEndpointType, sourceEndpointUser, replicationServer,
            operation}, fileInfo {name, extension, location, startWriteTimestamp, endWriteTimestamp,
            firstTransactionTimestamp, lastTransactionTimestamp, content, recordCount, errorCount}, formatInfo {format,
            options}, dataInfo {sourceSchema, sourceTable, targetSchema, targetTable, tableVersion, columns}, customInfo
            [sample seen] columns {ordinal, name, type, length, precision, scale, primaryKeyPos}; dfmVersion. Unknown
            members are ignored; a known one in other case is refused, because it would be read as missing
Required    fileInfo.name, formatInfo.format, dataInfo.tableVersion; ordinal, name and type of each column. Any other
            member may be missing, null or "", which mean the same [inferred from a captured sidecar with empty texts]
File        name + "." + extension [sample seen: a compressed file has name `X.csv` and extension `gz`; documented: any
            other name has no extension]. ASSUMED: a name that ends in the extension has it already
Content     `data` or `changes`, in any case [documented]. A captured sidecar of changes has `data`, so this member does
            not decide whether the file has header columns
Format      `delimited`, `json` or `parquet`, in any case. Hadoop sequence files are refused by name
Options     of delimited: fieldDelimiter, recordDelimiter, nullValue, quoteChar, escapeChar. Delimiters, quote and
            escape may be hex, as `0x01` [documented], two digits a byte. ASSUMED: a nullValue is never hex; hex is of
            ASCII; and \\n, \\r and \\t in letters mean what they do elsewhere. Options of other formats are not read
Columns     in order of their ordinals, which begin with the first header column. Ordinals, names and places in the key
            occur once; ASSUMED: ordinals may have gaps. The place in the key is `primaryKeyPos` [sample seen] or
            `primaryKeyPosition` [documented of metadata messages]; 0 is none
Times       ISO 8601, UTC [documented], 2016-08-02T10:05:04.802; T or a blank, maybe Z or an offset

Rejects     those of fields/json_exact.py; wrong_shape, unsupported_record, contradiction
"""

import datetime
import posixpath
import re
from typing import NamedTuple

from inlet.codecs.qlik import members
from inlet.codecs.qlik.members import Refused, shown
from inlet.fields import json_exact
from inlet.fields.json_exact import Number
from inlet.fields.wrong import Wrong

BESIDE, PARTITION, FULL_LOAD = "beside", "partition", "full_load"  # where a sidecar may lie; else it is a folder's path
SUFFIX = ".dfm"
DELIMITED, JSON, PARQUET = FORMATS = ("delimited", "json", "parquet")
CONTENTS = ("", "data", "changes")
FIRST_LOADS = ("LOAD00000001.dfm", "LOAD00001.dfm")  # 8 digits, in old versions 5 [documented]
GZIP = re.compile(r"\.gz$", re.IGNORECASE)
MAX_ORDINAL = 99_999
BOM = b"\xef\xbb\xbf"
INTEGER = re.compile(r"-?[0-9]{1,18}")
HEX = re.compile(r"0[xX]((?:[0-9A-Fa-f]{2})+)")
LETTERS = {"\\n": "\n", "\\r": "\r", "\\t": "\t", "\\r\\n": "\r\n"}
TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
TASK_INFO = ("name", "sourceEndpoint", "sourceEndpointType", "sourceEndpointUser", "replicationServer", "operation")
FILE_TIMES = ("startWriteTimestamp", "endWriteTimestamp", "firstTransactionTimestamp", "lastTransactionTimestamp")
FILE_INFO = ("name", "extension", "location", *FILE_TIMES, "content", "recordCount", "errorCount")
OPTIONS = {  # in a sidecar -> here
    "fieldDelimiter": "delimiter",
    "recordDelimiter": "record_delimiter",
    "nullValue": "null",
    "quoteChar": "quote",
    "escapeChar": "escape",
}
DATA_INFO = ("sourceSchema", "sourceTable", "targetSchema", "targetTable", "tableVersion", "columns")
KEY_POSITIONS = ("primaryKeyPos", "primaryKeyPosition")
COLUMN = ("ordinal", "name", "type", "length", "precision", "scale", *KEY_POSITIONS)


class Column(NamedTuple):
    name: str
    ordinal: int
    type: str
    length: int = 0
    precision: int = 0
    scale: int = 0
    key_position: int = 0  # 0: not in the key


class Sidecar(NamedTuple):
    file: str  # the data file's name, as it lies there
    format: str  # delimited, json, parquet
    delimiter: str  # this and the next four: of delimited, "" where unknown
    record_delimiter: str
    null: str
    quote: str
    escape: str
    schema: str  # of the source, "" where unknown
    table: str
    target_table: str
    version: int
    columns: tuple[Column, ...]  # by ordinal, header columns among them
    content: str  # data, changes, or ""
    num_records: int | None
    num_errors: int
    task: str
    written_at: str  # when writing began; times are as the sidecar has them
    first_at: str = ""  # of the first transaction in the file
    last_at: str = ""  # of the last one


def read(data: bytes) -> Sidecar:
    """What a sidecar says. Raises: Wrong."""
    data = b" " * len(BOM) + data[len(BOM) :] if data.startswith(BOM) else data
    whole = json_exact.parse(data)
    try:
        return _sidecar(whole)
    except Refused as no:
        raise Wrong(no.kind, json_exact.offset(data, no.path), no.expected, no.found) from None


def companions(path: str, where: str, suffix: str = "__ct") -> list[str] | None:
    """The paths where the sidecar of a data file may lie, nearest first; None for a sidecar. In: where it is looked
    for: next to the file (`beside`); in its `partition`'s folder, or for the whole partition next to that; next to the
    file, else with the `full_load` of its table; or in a folder of that path, which may have one for the table. What is
    added to a table's name for its changes.

    >>> companions("lake/S.T__ct/20260101-101112333.csv.gz", "beside")
    ['lake/S.T__ct/20260101-101112333.dfm']
    >>> companions("lake/S.T__ct/P/1.csv", "full_load")
    ['lake/S.T__ct/P/1.dfm', 'lake/S.T/LOAD00000001.dfm', 'lake/S.T/LOAD00001.dfm']
    >>> companions("lake/S.T__ct/P/1.parquet", "metadata")
    ['metadata/S.T__ct/P/1.dfm', 'metadata/S.T__ct/1.dfm', 'metadata/1.dfm']
    """
    folder, name = posixpath.split(path)
    if name.lower().endswith(SUFFIX):
        return None
    own = posixpath.splitext(GZIP.sub("", name))[0] + SUFFIX
    of_table, partition = _folders(folder, suffix)
    if where == BESIDE:
        found = [(folder, own)]
    elif where == PARTITION:
        whole = [(folder, partition + SUFFIX), (of_table, partition + SUFFIX)] if partition else []
        found = [(folder, own), *whole, (of_table, own)]
    elif where == FULL_LOAD:
        load = of_table[: -len(suffix)] if suffix and of_table.lower().endswith(suffix.lower()) else of_table
        found = [(folder, own), *((load, first) for first in FIRST_LOADS)]
    else:
        table = posixpath.join(where, posixpath.basename(of_table))
        found = [(posixpath.join(table, partition), own), (table, own), (where, own)]
    return list(dict.fromkeys(posixpath.join(*one) for one in found))


def delimiter(text: str) -> str:
    """A delimiter, quote or escape as it occurs in a file, of how it is written: hex, a \\t in letters, or itself.

    >>> [ord(one) for text in ("0x01", "0x0D0A", "\\t", ",") for one in delimiter(text)], delimiter("0x1")
    ([1, 13, 10, 9, 44], '0x1')
    """
    match = HEX.fullmatch(text)
    return bytes.fromhex(match[1]).decode("latin-1") if match else LETTERS.get(text, text)


def _folders(folder: str, suffix: str) -> tuple[str, str]:
    """The folder of the table, and the partition's name below it, if any. Only changes have partitions."""
    above, name = posixpath.split(folder)
    is_partition = not name.lower().endswith(suffix.lower()) and above.lower().endswith(suffix.lower())
    return (above, name) if suffix and is_partition else (folder, "")


def _sidecar(whole: dict) -> Sidecar:
    members.check_names(whole, ("taskInfo", "fileInfo", "formatInfo", "dataInfo", "customInfo", "dfmVersion"), ())
    task, file, form, data = (
        _object(whole, name, (), known, is_needed)
        for name, known, is_needed in (
            ("taskInfo", TASK_INFO, False),
            ("fileInfo", FILE_INFO, True),
            ("formatInfo", ("format", "options"), True),
            ("dataInfo", DATA_INFO, True),
        )
    )
    about = {name: _text(task, name, ("taskInfo",)) for name in TASK_INFO}
    if about["operation"] not in ("", "dataProduced"):
        raise Refused("wrong_shape", ("taskInfo", "operation"), "dataProduced", shown(about["operation"]))
    _text(file, "location", ("fileInfo",))
    content = _text(file, "content", ("fileInfo",)).lower()
    if content not in CONTENTS:
        raise Refused("wrong_shape", ("fileInfo", "content"), "data or changes", shown(file["content"]))
    times = {name: _time(file, name) for name in FILE_TIMES}
    num_records = file.get("recordCount")
    source = {name: _text(data, name, ("dataInfo",)) for name in DATA_INFO[:4]}
    format_ = _format(form)
    return Sidecar(
        file=_file(file),
        format=format_,
        **_options(form, format_),
        schema=source["sourceSchema"],
        table=source["sourceTable"],
        target_table=source["targetTable"],
        version=_integer(data, "tableVersion", ("dataInfo",), is_needed=True),
        columns=_columns(data),
        content=content,
        num_records=None if num_records is None else _integer(file, "recordCount", ("fileInfo",)),
        num_errors=_integer(file, "errorCount", ("fileInfo",)),
        task=about["name"],
        written_at=times["startWriteTimestamp"],
        first_at=times["firstTransactionTimestamp"],
        last_at=times["lastTransactionTimestamp"],
    )


def _file(file: dict) -> str:
    """The data file's name on disk."""
    at = ("fileInfo",)
    name, extension = _text(file, "name", at, is_needed=True), _text(file, "extension", at).removeprefix(".")
    for member, text in (("name", name), ("extension", extension)):
        if re.search(r"[/\\\0]", text) or text in (".", ".."):
            raise Refused("wrong_shape", (*at, member), "the name of a file, without a folder", shown(text))
    return name if not extension or name.lower().endswith(f".{extension.lower()}") else f"{name}.{extension}"


def _format(form: dict) -> str:
    """delimited, json or parquet."""
    word = _text(form, "format", ("formatInfo",), is_needed=True)
    if "sequence" in word.lower():
        expected = "delimited, json or parquet: Hadoop sequence files are not read, switch the task to another format"
        raise Refused("unsupported_record", ("formatInfo", "format"), expected, shown(word))
    if word.lower() not in FORMATS:
        raise Refused("wrong_shape", ("formatInfo", "format"), "delimited, json or parquet", shown(word))
    return word.lower()


def _options(form: dict, format_: str) -> dict[str, str]:
    """Field and record delimiter, null text, quote and escape, by their members of a Sidecar."""
    if format_ != DELIMITED:
        return dict.fromkeys(OPTIONS.values(), "")
    at = ("formatInfo", "options")
    options = _object(form, "options", at[:1], (*OPTIONS,), is_needed=False)
    found = {n: _text(options, n, at) if n == "nullValue" else delimiter(_text(options, n, at)) for n in OPTIONS}
    for name, text in found.items():
        if name in ("quoteChar", "escapeChar") and len(text) > 1:
            raise Refused("wrong_shape", (*at, name), "one character, or none", shown(options[name]))
        if name != "nullValue" and text != options.get(name) and not text.isascii():
            raise Refused(
                "wrong_shape", (*at, name), "hex digits of ASCII, or the character itself", shown(options[name])
            )
    if found["fieldDelimiter"] and found["fieldDelimiter"] == found["recordDelimiter"]:
        raise Refused("contradiction", (*at, "recordDelimiter"), "another one than fieldDelimiter", "the same")
    return {member: found[name] for name, member in OPTIONS.items()}


def _columns(data: dict) -> tuple[Column, ...]:
    at = ("dataInfo", "columns")
    given = data.get("columns")
    if not isinstance(given, list) or not given:
        raise Refused("wrong_shape", at, "a list of columns", "none" if given in (None, []) else shown(given))
    found = []
    taken: dict[str, set] = {"ordinal": set(), "name": set(), "primaryKeyPos": set()}
    for place, one in enumerate(given):
        if not isinstance(one, dict):
            raise Refused("wrong_shape", (*at, place), "an object", shown(one))
        members.check_names(one, COLUMN, (*at, place))
        found.append(column := column_of(one, (*at, place)))
        for member, value in zip(taken, (column.ordinal, column.name, column.key_position)):
            if value and value in taken[member]:
                raise Refused("contradiction", (*at, place, member), f"{member} {str(value)[:40]} once", "it twice")
            taken[member].add(value)
    return tuple(sorted(found, key=lambda column: column.ordinal))


def column_of(one: dict, at: tuple) -> Column:
    """A column as sidecars and metadata messages give it. Raises: Refused."""
    name, type_ = (_text(one, member, at, is_needed=True) for member in ("name", "type"))
    ordinal = _integer(one, "ordinal", at, is_needed=True)
    if not 1 <= ordinal <= MAX_ORDINAL:
        raise Refused("wrong_shape", (*at, "ordinal"), f"an ordinal from 1 to {MAX_ORDINAL}", shown(one["ordinal"]))
    length, precision, scale = (
        _integer(one, member, at, can_be_negative=True) for member in ("length", "precision", "scale")
    )
    positions = {_integer(one, member, at) for member in KEY_POSITIONS if one.get(member) is not None}
    if len(positions) > 1:
        raise Refused(
            "contradiction", (*at, KEY_POSITIONS[1]), f"what {KEY_POSITIONS[0]} says", shown(one[KEY_POSITIONS[1]])
        )
    return Column(name, ordinal, type_, length, precision, scale, *positions)


def _object(given: dict, name: str, at: tuple, known: tuple[str, ...], is_needed: bool) -> dict:
    value = given.get(name)
    if value is None and not is_needed:
        return {}
    if not isinstance(value, dict):
        raise Refused("wrong_shape", (*at, name), "an object", "none" if value is None else shown(value))
    members.check_names(value, known, (*at, name))
    return value


def _text(given: dict, name: str, at: tuple, is_needed: bool = False) -> str:
    """A text, "" where there is none."""
    value = given.get(name)
    if value is None and not is_needed:
        return ""
    if not isinstance(value, str) or isinstance(value, Number) or is_needed and not value:
        raise Refused("wrong_shape", (*at, name), "text", "none" if value in (None, "") else shown(value))
    return value


def _integer(given: dict, name: str, at: tuple, is_needed: bool = False, can_be_negative: bool = False) -> int:
    """A whole number, 0 where there is none."""
    value = given.get(name)
    if value is None and not is_needed:
        return 0
    if not isinstance(value, Number) or not INTEGER.fullmatch(value) or value[0] == "-" and not can_be_negative:
        raise Refused("wrong_shape", (*at, name), "a whole number", "none" if value is None else shown(value))
    return int(value)


def _time(file: dict, name: str) -> str:
    """A time as it is written, "" where there is none."""
    text = _text(file, name, ("fileInfo",))
    if text and not _is_time(text):
        raise Refused("wrong_shape", ("fileInfo", name), "a time like 2016-08-02T10:05:04.802", shown(text))
    return text


def _is_time(text: str) -> bool:
    match = TIME.fullmatch(text)
    try:
        return bool(match and utc(match))
    except (ValueError, OverflowError):  # no such day, or none in UTC
        return False


def utc(time: re.Match) -> datetime.datetime:
    """The second of a time. In: a match of TIME."""
    return datetime.datetime.fromisoformat(time[1] + (time[3] or "Z")).astimezone(datetime.UTC)
