"""Rows -> the bytes of a Linkexpress group extract: a second, plain reading of the format, to test the codec against.

Written from docs/formats/linkexpress_group.md alone; imports nothing of inlet.

    layouts = {1: [("ID", "INTEGER"), ("NAME", "VARCHAR(10)")]}        # 0 is the layout of a full extract's rows
    encode_file([("insert", 1, {"ID": 1, "NAME": "a"}), ("commit",)], True, "big", "cp932", layouts)
"""

import datetime
import re
import struct
from decimal import Decimal

OPERATIONS = {"row": 0, "insert": 1, "update": 2, "delete": 3}
ALIASES = {
    "CHARACTER": "CHAR",
    "CHARACTER VARYING": "VARCHAR",
    "NATIONAL CHARACTER": "NCHAR",
    "NATIONAL CHARACTER VARYING": "NVARCHAR",
    "DEC": "DECIMAL",
    "INT": "INTEGER",
}
ASCII_IN_EBCDIC = {  # printable ASCII that all EBCDIC sets here share
    " ": 0x40,
    ".": 0x4B,
    "<": 0x4C,
    "(": 0x4D,
    "+": 0x4E,
    "&": 0x50,
    "*": 0x5C,
    ")": 0x5D,
    ";": 0x5E,
    "-": 0x60,
    "/": 0x61,
    ",": 0x6B,
    "%": 0x6C,
    "_": 0x6D,
    ">": 0x6E,
    "?": 0x6F,
    "`": 0x79,
    ":": 0x7A,
    "#": 0x7B,
    "@": 0x7C,
    "'": 0x7D,
    "=": 0x7E,
    '"': 0x7F,
    **{c: 0xF0 + i for i, c in enumerate("0123456789")},
    **{c: 0xC1 + i for i, c in enumerate("ABCDEFGHI")},
    **{c: 0xD1 + i for i, c in enumerate("JKLMNOPQR")},
    **{c: 0xE2 + i for i, c in enumerate("STUVWXYZ")},
}
KANA = {
    **{c: 0x41 + i for i, c in enumerate("｡｢｣､･ｦｧｨｩ")},
    **{c: 0x51 + i for i, c in enumerate("ｪｫｬｭｮｯ")},
    "ｰ": 0x58,
    **{c: 0x81 + i for i, c in enumerate("ｱｲｳｴｵｶｷｸｹｺ")},
    **{c: 0x8C + i for i, c in enumerate("ｻｼｽｾ")},
    **{c: 0x90 + i for i, c in enumerate("ｿﾀﾁﾂﾃﾄﾅﾆﾇﾈﾉ")},
    **{c: 0x9D + i for i, c in enumerate("ﾊﾋﾌ")},
    **{c: 0xA2 + i for i, c in enumerate("ﾍﾎﾏﾐﾑﾒﾓﾔﾕ")},
    **{c: 0xAC + i for i, c in enumerate("ﾖﾗﾘﾙ")},
    **{c: 0xBA + i for i, c in enumerate("ﾚﾛﾜﾝﾞﾟ")},
    "!": 0x5A,
    "\\": 0x5B,
    "$": 0xE0,
    "£": 0x4A,
    "|": 0x4F,
    "¬": 0x5F,
    "{": 0xC0,
    "}": 0xD0,
    "~": 0xA1,
}
LOWER = {
    **{c: 0x81 + i for i, c in enumerate("abcdefghi")},
    **{c: 0x91 + i for i, c in enumerate("jklmnopqr")},
    **{c: 0xA2 + i for i, c in enumerate("stuvwxyz")},
    "[": 0x4A,
    "!": 0x4F,
    "]": 0x5A,
    "$": 0x5B,
    "^": 0x5F,
    "\\": 0xE0,
    "{": 0xC0,
    "}": 0xD0,
    "~": 0xA1,
}
EBCDIC = {"ebcdic_kana": {**ASCII_IN_EBCDIC, **KANA}, "ebcdic_ascii": {**ASCII_IN_EBCDIC, **LOWER}}
CODECS = {"euc_jp_0212": "euc_jp", "u90": "euc_jp", "jis8": "cp932"}  # of Python, where the set has another name


def encode_file(
    records, null_areas: bool, byte_order: str, charset: str, layouts: dict, logtype: str = "normal", **knobs
) -> bytes:
    """All records, one behind the other. Knobs: null_var_body, numeric_sign (separate, trailing, overpunch),
    float_form, gaiji (code in hex -> the character that the site has there).
    """
    how = {
        "null_areas": null_areas,
        "order": ">" if byte_order == "big" else "<",
        "charset": charset,
        "logtype": logtype,
        "null_var_body": "len0",
        "numeric_sign": "separate",
        "float_form": "hex" if charset.startswith("ebcdic") else "ieee",
        **knobs,
    }
    how["codes"] = _codes(how.get("gaiji"), charset, byte_order)
    items = {id_: [(name, *_type(type_)) for name, type_ in columns] for id_, columns in layouts.items()}
    return b"".join(_record(record, items, how) for record in records)


def encode_table_file(
    records,
    layout: str,
    null_areas: bool,
    byte_order: str,
    charset: str,
    columns: list,
    logtype: str = "normal",
    **knobs,
) -> bytes:
    """An extract of one table: ("row" | "insert" | "update" | "delete", row) or ("empty",). In: layout open | journal,
    in which the latter has null areas and no logtype little.
    """
    how = {
        "null_areas": null_areas or layout == "journal",
        "order": ">" if byte_order == "big" else "<",
        "charset": charset,
        "logtype": "normal" if layout == "journal" else logtype,
        "null_var_body": "len0",
        "numeric_sign": "separate",
        "float_form": "hex" if charset.startswith("ebcdic") else "ieee",
        **knobs,
    }
    how["codes"] = _codes(how.get("gaiji"), charset, byte_order)
    items, order = [(name, *_type(type_)) for name, type_ in columns], how["order"]
    data = bytearray()
    for word, *row in records:
        code = struct.pack(order + "H", 0xFFFF if word == "empty" else OPERATIONS[word])
        body = code + b"".join(_item(row[0][name], type_, sizes, how) for name, type_, sizes in items if row)
        if layout == "journal":
            body = struct.pack(order + "HH", len(items) + 1, 0) + body
        if layout == "journal" or how["logtype"] == "little":
            body = struct.pack(order + "I", len(body) + 4) + body
        data += body
    return bytes(data)


def encode_text(text: str, charset: str, byte_order: str = "big", gaiji: dict | None = None) -> bytes:
    """The data of a VARCHAR; of jef, those of an NVARCHAR."""
    how = {
        "charset": charset,
        "order": ">" if byte_order == "big" else "<",
        "codes": _codes(gaiji, charset, byte_order),
    }
    return b"".join(_pair(char, how) for char in text) if charset == "jef" else _text(text, how)


def _codes(gaiji: dict | None, charset: str, byte_order: str) -> dict[str, bytes]:
    """A site's characters and their bytes; a code of UTF-16 is a unit."""
    step = -1 if (charset, byte_order) == ("utf_16", "little") else 1
    return {char: bytes.fromhex(code)[::step] for code, char in (gaiji or {}).items()}


def _type(text: str):
    if text.startswith("INTERVAL"):
        return "INTERVAL", []
    name, _, numbers = text.upper().rstrip(")").partition("(")
    sizes = [int(n) for n in re.findall(r"\d+", numbers)]
    return ALIASES.get(name.strip(), name.strip()), sizes


def _record(record, items, how) -> bytes:
    word, order, null = record[0], how["order"], b"\0\0" if how["null_areas"] else b""
    if word == "commit":
        body = struct.pack(order + "H", 1) + null + struct.pack(order + "H", 0x8000)
    elif word == "empty":
        body = struct.pack(order + "HH", 2, 0) + null + b"\xff\xff"
    else:
        extraction_id, row = (0, record[1]) if word == "row" else record[1:]
        columns = items[extraction_id]
        head = struct.pack(order + "HH", len(columns) + 2, extraction_id) + null
        body = (
            head
            + struct.pack(order + "H", OPERATIONS[word])
            + b"".join(_item(row[name], type_, sizes, how) for name, type_, sizes in columns)
        )
    return struct.pack(order + "I", len(body) + 4) + body


def _item(value, type_: str, sizes, how) -> bytes:
    if value is None:
        if not how["null_areas"]:
            raise ValueError("a null needs null areas")
        return b"\xff\xff" + _null_body(type_, sizes, how)
    return (b"\0\0" if how["null_areas"] else b"") + ITEMS[type_](value, sizes, how)


def _null_body(type_: str, sizes, how) -> bytes:
    area = {"VARCHAR": (2, 1), "NVARCHAR": (2, 2), "BLOB": (8, 1), "BYTEA": (8, 1), "TEXT": (8, 1)}.get(type_)
    if area is None:
        return ITEMS[type_](ZERO[type_], sizes, how)
    full = bytes(area[0] + sizes[0] * area[1])
    if how["logtype"] == "normal":
        return full
    return {"len0": full[: area[0]], "full": full, "absent": b""}[how["null_var_body"]]


def _text(text: str, how) -> bytes:
    if how["charset"] not in EBCDIC:
        return _plain(text, how)
    table, data, in_pairs = EBCDIC[how["charset"]], bytearray(), False
    for char in text:
        if (char not in table) != in_pairs:
            in_pairs = not in_pairs
            data.append(0x28 if in_pairs else 0x29)
        data += _pair(char, how) if in_pairs else bytes([table[char]])
    return bytes(data) + (b"\x29" if in_pairs else b"")


def _plain(text: str, how) -> bytes:
    codec = CODECS.get(how["charset"], how["charset"])
    if codec == "utf_16":
        codec = "utf-16-be" if how["order"] == ">" else "utf-16-le"
    return b"".join(how["codes"].get(char) or char.encode(codec) for char in text)


def _pair(char: str, how) -> bytes:
    return how["codes"].get(char) or (b"\x40\x40" if char == "\u3000" else char.encode("euc_jp"))


def _pairs(text: str, how) -> bytes:
    return b"".join(_pair(char, how) for char in text) if how["charset"] in EBCDIC else _plain(text, how)


def _fit(data: bytes, size: int, filler: bytes) -> bytes:
    if len(data) > size:
        raise ValueError(f"{len(data)} bytes do not fit {size}")
    return data + filler * ((size - len(data)) // len(filler))


def _char(value, sizes, how):
    blank = b"\x40" if how["charset"] in EBCDIC else _plain(" ", how)
    return _fit(_text(value, how), sizes[0], blank)


def _nchar(value, sizes, how):
    return _fit(_pairs(value, how), 2 * sizes[0], _pairs("\u3000", how))


def _variable(data: bytes, count: int, size: int, how) -> bytes:
    area = _fit(data, size, b"?") if how["logtype"] == "normal" else data  # what lies behind the data is undefined
    return struct.pack(how["order"] + "H", count) + area


def _varchar(value, sizes, how):
    data = _text(value, how)
    return _variable(data, len(data), sizes[0], how)


def _nvarchar(value, sizes, how):
    data = _pairs(value, how)
    return _variable(data, len(data) // 2, 2 * sizes[0], how)


def _digits(value, sizes) -> tuple[bool, str]:
    scale = sizes[1] if len(sizes) > 1 else 0
    sign, digits, exponent = Decimal(value).as_tuple()
    unscaled = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return bool(sign), str(unscaled).rjust(sizes[0], "0")


def _numeric(value, sizes, how):
    minus, text = _digits(value, sizes)
    is_ebcdic = how["charset"] in EBCDIC
    data = bytes((0xF0 if is_ebcdic else 0x30) + int(c) for c in text)
    if how["numeric_sign"] == "overpunch":
        zone = (0xD0 if minus else 0xC0) if is_ebcdic else (0x50 if minus else 0x40)
        return data[:-1] + bytes([zone | data[-1] & 15])
    sign = bytes([(0x60 if minus else 0x4E) if is_ebcdic else (0x2D if minus else 0x2B)])
    return data + sign if how["numeric_sign"] == "trailing" else sign + data


def _decimal(value, sizes, how):
    minus, text = _digits(value, sizes)
    nibbles = text.rjust(sizes[0] // 2 * 2 + 1, "0") + ("D" if minus else "C")
    return bytes.fromhex(nibbles)


def _hex_float(value: float, width: int) -> bytes:
    size, exponent = abs(value), 64
    while size >= 1:
        size, exponent = size / 16, exponent + 1
    while 0 < size < 1 / 16:
        size, exponent = size * 16, exponent - 1
    fraction = int(size * 16.0 ** (2 * (width - 1)))
    return bytes([(0x80 if value < 0 else 0) | (exponent if size else 0)]) + fraction.to_bytes(width - 1, "big")


def _floating(width: int):
    def encode(value, sizes, how):
        return (
            _hex_float(value, width)
            if how["float_form"] == "hex"
            else struct.pack(how["order"] + " fd"[width // 4], value)
        )

    return encode


def _date(value, sizes, how):
    return struct.pack(how["order"] + "HBB", value.year, value.month, value.day)


def _time(value, sizes, how):
    return bytes(map(int, value.split(":")))


def _timestamp(value, sizes, how):
    return _date(value, sizes, how) + bytes([value.hour, value.minute, value.second, 0, 0, 0, 0])


def _blob(value, sizes, how):
    return (
        bytes(4)
        + struct.pack(how["order"] + "I", len(value))
        + (_fit(value, sizes[0], b"?") if how["logtype"] == "normal" else value)
    )


ITEMS = {
    "CHAR": _char,
    "VARCHAR": _varchar,
    "NCHAR": _nchar,
    "NVARCHAR": _nvarchar,
    "SMALLINT": lambda value, sizes, how: struct.pack(how["order"] + "h", value),
    "INTEGER": lambda value, sizes, how: struct.pack(how["order"] + "i", value),
    "NUMERIC": _numeric,
    "DECIMAL": _decimal,
    "REAL": _floating(4),
    "DOUBLE": _floating(8),
    "DATE": _date,
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "BLOB": _blob,
    "BYTEA": _blob,
    "TEXT": lambda value, sizes, how: _blob(_text(value, how), sizes, how),
    "INTERVAL": lambda value, sizes, how: value,
}
ZERO = {
    "INTERVAL": bytes(5),
    "CHAR": "",
    "NCHAR": "",
    "SMALLINT": 0,
    "INTEGER": 0,
    "NUMERIC": 0,
    "DECIMAL": 0,
    "REAL": 0.0,
    "DOUBLE": 0.0,
    "DATE": datetime.date(1, 1, 1),
    "TIME": "00:00:00",
    "TIMESTAMP": datetime.datetime(1, 1, 1),
}
