"""The tokens of a GoldenGate trail: framing, record header, GGS tokens, DDL text, file header; goldengate.md, chapters
1, 2, 5, 7 and 8. Knows nothing of inlet. `order` is "<" or ">", as of `struct`.
"""

import datetime
import struct
from collections.abc import Iterable

JULIAN = 210_866_760_000_000_000  # microseconds from the Julian epoch to 1970 (2.3)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
FIELD_COMP, TAIL_IS_INDEX, UNIFIED = 0x04, 0x08, 0x40  # bits of Partition (2.4)
FIRST, MIDDLE, LAST, ONLY = range(4)  # TransInD (2.4)
DDR, TDR, TDR_REFERENCE = 1, 2, 3  # OrigNode of a metadata record (6)
SIGNATURE = b"GG\r\nTL\n\r"
UNKNOWN_VERSION = ("UNKNOWNVERSION", "UNKNOWNVERSIONCOMPAT", "N")  # of a DDL token (7, S2)
HEADER = {  # GHDR's fields (2.1), and what they are where nothing else is said
    "hdr_ind": "E",
    "partition": FIELD_COMP,
    "undo_flag": 0,
    "before_after": "A",
    "rec_length": 0,
    "io_type": 0,
    "orig_node": 0xFF,
    "io_time": None,
    "audit_pos": 0,
    "audit_rba": 0,
    "trans_ind": ONLY,
    "format_type": "R",
    "syskey_len": 0,
    "incomplete": 0,
    "continued": 0,
    "rec_count": 1,
}


def token(token_id: str, payload: bytes, order: str, info: int = 0) -> bytes:
    """Id, info, length of the payload, payload (1.1)."""
    return token_id.encode("latin-1") + struct.pack(order + "BH", info, len(payload)) + payload


def framed(token_id: str, payload: bytes, order: str, infos: tuple[int, int]) -> bytes:
    """A record: `F` or `G`, its tokens, `Z`; both ends have the length of the whole (1.1)."""
    length = len(payload) + 8
    first, last = (struct.pack(order + "BH", info, length) for info in infos)
    return token_id.encode("ascii") + first + payload + b"Z" + last


def julian(at: datetime.datetime | int | None) -> int:
    """Julian microseconds of a time in UTC, or of microseconds since 1970; 0 is absent (2.3)."""
    if at is None:
        return 0
    if isinstance(at, int):
        return at + JULIAN
    return (at - EPOCH) // datetime.timedelta(microseconds=1) + JULIAN


def ghdr(fields: dict, tail: bytes, order: str) -> bytes:
    """The payload of an `H` token: 34 bytes and the tail (2.1). `audit_rba` of a metadata record is two indexes."""
    said = HEADER | fields
    if said.keys() != HEADER.keys():
        raise ValueError(f"no such header field: {sorted(said.keys() - HEADER.keys())}")
    rba = said["audit_rba"]
    return (
        struct.pack("cBBc", *(f.encode() if isinstance(f, str) else f for f in list(said.values())[:4]))
        + struct.pack(order + "HBB", said["rec_length"], said["io_type"], said["orig_node"])
        + struct.pack(order + "Qq", julian(said["io_time"]), said["audit_pos"])
        + (struct.pack(order + "HH", *rba) if isinstance(rba, tuple) else struct.pack(order + "I", rba))
        + struct.pack("BcBBBB", said["trans_ind"], said["format_type"].encode(), *list(said.values())[12:])
        + tail
    )


def ggs_payload(token_id: str, value) -> bytes:
    """The payload of a GGS token (7): R a rowid, D owner, object, version, compatible version and flag; others a text.
    Bytes stay as they are.
    """
    if isinstance(value, bytes):
        return value
    if token_id == "R":
        return value.encode("ascii") + b"\0\1"
    if token_id == "D":
        return "\0".join(value).encode("utf-8")
    return value.encode("utf-8")


def ggs_tokens(tokens: Iterable[tuple], order: str) -> bytes:
    """The payload of a `T` token. An empty ORATAG has info 1 (1.4)."""
    payloads = [(token_id, ggs_payload(token_id, value)) for token_id, value in tokens]
    return b"".join(token(i, data, order, 1 if i == "t" and not data else 0) for i, data in payloads)


def ddl_text(items: Iterable[tuple[str, str]], statement: str | None = None) -> bytes:
    """The D area of a DDL record: `,key='value',` each, then `C1=` and the statement (8). How a quote within a value is
    written is unknown, so none may have one. ASSUMED: a comma before `C1=`.
    """
    items = list(items)
    if any("'" in value for _, value in items):
        raise ValueError("the escaping of quotes is unknown")
    text = "".join(f",{key}='{value}'," for key, value in items)
    return (text + ("" if statement is None else f",C1={statement}")).encode("utf-8")


def counted(text: str, order: str) -> bytes:
    """VARCHAR of the file header: u16 length and bytes (5)."""
    data = text.encode("utf-8")
    return struct.pack(order + "H", len(data)) + data


def trail_info(facts: dict, order: str) -> bytes:
    """Group TrailInfo (5): signature, compatibility, charset, creation, URI, URIs of before, file name, number.

    In: compatibility, created_at, uri; maybe uri_history, file_name, seqno, and `more`, tokens by id with their bytes.
    """
    history = b"".join(token("5", counted(uri, order), order) for uri in facts.get("uri_history", ()))
    tokens = [
        ("0", SIGNATURE),
        ("1", struct.pack(order + "H", facts["compatibility"])),
        ("2", struct.pack(order + "i", 0x20000000)),
        ("3", struct.pack(order + "Q", julian(facts["created_at"]))),
        ("4", counted(facts["uri"], order)),
        ("5", history if "uri_history" in facts else None),
        ("6", counted(facts["file_name"], order) if "file_name" in facts else None),
        ("8", struct.pack(order + "I", facts["seqno"]) if "seqno" in facts else None),
        *facts.get("more", ()),
    ]
    return b"".join(token(token_id, data, order) for token_id, data in tokens if data is not None)


def file_header(facts: dict, order: str, groups: Iterable[tuple[str, Iterable[tuple[str, bytes]]]] = ()) -> bytes:
    """The `F` record: TrailInfo, then `groups`, tokens by id of the group (5). Its Z has info 0 (1.2, S11)."""
    others = (
        token(group, b"".join(token(token_id, data, order) for token_id, data in tokens), order)
        for group, tokens in groups
    )
    return framed("F", token("0", trail_info(facts, order), order) + b"".join(others), order, (0, 0))
