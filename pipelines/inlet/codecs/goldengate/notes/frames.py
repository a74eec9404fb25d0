"""Frames of a trail for `inlet inspect`: records and their tokens, byte by byte, in plain Python.

The same rules as frame.py, which is compiled, and read without it; tests hold the two equal.
Source: docs/formats/goldengate_trail.md.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

LEN_TOKEN, LEN_GHDR = 4, 34
LEN_MIN, LEN_MAX = 3 * LEN_TOKEN + LEN_GHDR, 0xFFFF
GHDR = "H"
NAMES = {"G": "Record Header", "H": "GHDR", "D": "Data", "U": "User Tokens", "T": "GGS Tokens", "Z": "Record Trailer"}
Order = Literal["big", "little"]
ORDERS: tuple[Order, ...] = ("big", "little")


class Token(NamedTuple):
    """A token of a record: its first byte, its payload."""

    id: str
    at: int
    start: int
    end: int


class Frame(NamedTuple):
    """A record, the header record of a file, or bytes in which none begins. `fault` is (kind, place)."""

    at: int
    end: int
    kind: str  # G, F, or "" for no record
    tokens: tuple[Token, ...] = ()
    fault: tuple[str, int] | None = None

    def token(self, id_: str) -> Token | None:
        return next((token for token in self.tokens if token.id == id_), None)


def size_at(data: bytes, at: int, order: Order) -> int:
    """A length of two bytes."""
    return int.from_bytes(data[at : at + 2], order)


def header_end(data: bytes, order: Order) -> int | None:
    """Where the header record of a file ends; None where it has none by this byte order, or not the whole of it."""
    end = size_at(data, 2, order)
    trailer = data[max(end - LEN_TOKEN, 0) : end]
    is_header = data[:1] == b"F" and trailer[:1] == b"Z" and size_at(trailer, 2, order) == end
    return end if is_header else None


def frames(data: bytes, context: dict) -> Iterator[Frame]:
    """All bytes of a block, as frames that follow each other."""
    at, order = 0, context["order"]
    if not context["offset"] and context["file_order"] and data[:1] == b"F":
        at = min(size_at(data, 2, context["file_order"]), len(data))
        yield Frame(0, at, "F")
    damaged = {start: end for start, end in context.get("damaged", []) if start < end <= len(data)}
    while at < len(data):
        found = _record_or_damaged(data, at, order) if order and at not in damaged else None
        if found is None:
            end = damaged.get(at) or (order and next_record(data, at + 1, order)) or len(data)
            found = Frame(at, end, "", (), ("bad_frame", at))
        yield found
        at = found.end


def _record_or_damaged(data: bytes, at: int, order: Order) -> Frame | None:
    """The record that begins at a place; a damaged one where its tokens and either G or Z tell the same end."""
    found = record_at(data, at, order)
    if found and not found.fault:
        return found
    end = at + LEN_TOKEN
    while data[end : end + 1] in (b"H", b"D", b"U", b"T") and end + LEN_TOKEN <= len(data) and end - at < LEN_MAX:
        end += LEN_TOKEN + size_at(data, end + 2, order)
    end += LEN_TOKEN
    size = end - at
    agrees = data[end - LEN_TOKEN : end - LEN_TOKEN + 1] == b"Z" and size_at(data, end - 2, order) == size
    agrees |= data[at : at + 1] == b"G" and size_at(data, at + 2, order) == size
    if not agrees or end > len(data) or size > LEN_MAX or found and found.end == end:
        return found
    tokens, fault = _tokens_of(data, at, end, order)
    return found if fault else Frame(at, end, "G", tokens, ("bad_frame", at))


def record_at(data: bytes, at: int, order: Order) -> Frame | None:
    """The record that begins at a place, whatever is wrong inside it; None where none does, or it is not whole."""
    size = size_at(data, at + 2, order)
    end = at + size
    if data[at : at + 1] != b"G" or size < LEN_MIN or end > len(data):
        return None
    if data[end - LEN_TOKEN : end - LEN_TOKEN + 1] != b"Z" or size_at(data, end - 2, order) != size:
        return None
    return Frame(at, end, "G", *_tokens_of(data, at, end, order))


def _tokens_of(data: bytes, at: int, end: int, order: Order) -> tuple[tuple[Token, ...], tuple[str, int] | None]:
    """The tokens of a record, and what is wrong with them."""
    tokens, fault, at_token, stop = [], None, at + LEN_TOKEN, end - LEN_TOKEN
    while at_token < stop and fault is None:
        start = at_token + LEN_TOKEN
        id_, after = chr(data[at_token]), start + size_at(data, at_token + 2, order)
        if start > stop:
            fault = "bad_length", at_token
        elif after > stop:
            fault = "bad_length", at_token + 2
        elif id_ not in "HDUT" or id_ in (token.id for token in tokens):
            fault = "unknown_token", at_token
        else:
            tokens.append(Token(id_, at_token, start, after))
            at_token = after
    header = next((token for token in tokens if token.id == GHDR), None)
    if fault is None and (header is None or header.end - header.start < LEN_GHDR):
        fault = "bad_length", at + LEN_TOKEN
    elif fault is None and header is not None and data[header.start : header.start + 1] != b"E":
        fault = "bad_header", header.start
    return tuple(tokens), fault


def next_record(data: bytes, at: int, order: Order, is_final: bool = True) -> int | None:
    """The first place from `at` on from which whole records follow each other for the length of the longest, or up to
    the end of a file that ends here."""
    seen: set[int] = set()  # places whose records end before that
    while (at := data.find(b"G", at)) >= 0:
        place = at
        while place - at < LEN_MAX and place not in seen:
            seen.add(place)
            found = record_at(data, place, order)
            if not found or found.fault:
                break
            place = found.end
            if place - at >= LEN_MAX or place == len(data) and is_final:
                return at
        at += 1
    return None
