"""Write GoldenGate's other messages, Avro, delimited text and XML, and Extract's text files. Knows nothing of inlet,
and of Avro only what its specification says.

A change is a dict: operation, seqno, rba, before, after (dicts of Python values).
"""

import json
from xml.sax.saxutils import escape

LETTERS = {"INSERT": "I", "UPDATE": "U", "UPSERT": "UPSERT", "DELETE": "D", "TRUNCATE": "T"}
OP_TS, CURRENT_TS = "2026-01-02 03:04:05.000000", "2026-01-02T03:04:06.000001"
TEXTS = ("table", "op_type", "op_ts", "current_ts", "pos")


def _own(change: dict, table: str) -> list[str]:
    pos = f"{change['seqno']:010d}{change['rba']:010d}"
    return [table, LETTERS[change["operation"]], OP_TS, CURRENT_TS, pos]


def avro_schema(table: str, columns: dict[str, str], has_flags: bool) -> str:
    """The operation model's schema. In: Avro type by column; whether columns have a companion `_isMissing`."""
    schema, _, name = table.rpartition(".")
    fields: list[dict] = []
    for column, type_ in columns.items():
        fields.append({"name": column, "type": ["null", type_], "default": None})
        fields += [{"name": f"{column}_isMissing", "type": "boolean"}] if has_flags else []
    images = [
        {"name": "before", "type": ["null", {"type": "record", "name": "columns", "fields": fields}], "default": None},
        {"name": "after", "type": ["null", "columns"], "default": None},
    ]
    own = [{"name": member, "type": "string"} for member in TEXTS]
    return json.dumps({"type": "record", "name": name, "namespace": schema, "fields": own + images})


def avro(change: dict, table: str, columns: dict[str, str], has_flags: bool) -> bytes:
    """A bare datum of that schema."""
    datum = b"".join(map(_string, _own(change, table)))
    for name in ("before", "after"):
        image = change.get(name)
        datum += _long(image is not None)
        for column, type_ in columns.items() if image is not None else ():
            value = image.get(column)
            datum += _long(value is not None)
            if value is not None:
                datum += {"string": _string, "long": _long}[type_](value)
            datum += bytes([column not in image]) if has_flags else b""
    return datum


def _long(number: int) -> bytes:
    """Zigzag, seven bits a byte, the least first."""
    left, data = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        data.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*data, left])


def _string(text: str) -> bytes:
    return _long(len(text.encode())) + text.encode()


def delimited(change: dict, table: str, columns: list[str], delimiter: str) -> str:
    """A line of delimited text, texts in quotes."""
    own = _own(change, table)
    row = change.get("after") or change.get("before") or {}
    values = [_delimited(row[column]) if column in row else "" for column in columns]
    return delimiter.join([own[1], own[0], *own[2:], "R=AAA", *values]) + "\n"


def _delimited(value) -> str:
    if value is None:
        return "NULL"
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else str(value)


def xml(change: dict, table: str, columns: list[str]) -> str:
    """An element `operation`."""
    own = dict(zip(("table", "type", "ts", "current_ts", "pos"), _own(change, table)))
    attributes = "".join(f" {name}='{escape(value)}'" for name, value in own.items())
    text = f"<operation{attributes} numCols='{len(columns)}'>\n"
    for n, column in enumerate(columns):
        images = "".join(_image(name, column, change.get(name)) for name in ("before", "after"))
        text += f" <col name='{column}' index='{n}'>\n{images} </col>\n"
    return text + "</operation>"


def _image(name: str, column: str, image: dict | None) -> str:
    if image is None or column not in image:
        return f"   <{name} missing='true'/>\n"
    if image[column] is None:
        return f"   <{name} isNull='true'/>\n"
    return f"   <{name}><![CDATA[{image[column]}]]></{name}>\n"


def extract(transactions: list[list[dict]], table: str) -> str:
    """FORMATASCII with names: transactions of changes."""
    text = ""
    for n, changes in enumerate(transactions):
        text += f"B,2026-01-02:03:04:05.000000,8,{1000 + n},\n"
        for change in changes:
            for mark, image in (("B", change.get("before")), ("A", change.get("after"))):
                if image is not None:
                    values = "".join(f"{column}={_literal(value)}," for column, value in image.items())
                    text += f"{LETTERS[change['operation']]},{mark},{table},{values}\n"
        text += "C,\n"
    return text


def _literal(value) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
