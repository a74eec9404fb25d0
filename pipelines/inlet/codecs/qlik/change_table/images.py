"""Masks of change tables, and the images of a row.

Mask        bit n is the change table's column n from 0, header columns that are really there counted [documented, and
            used so by a public consumer]; their bits are never set [sample seen]. Bytes of zeros may be missing, bits
            beyond the last column have to be zero. Hex text is one big-endian number [sample seen: 390 of 390 pairs],
            maybe with 0x before it.
            The byte order of binary is documented and of base64 not, so both are tried: a reading that sets a bit of a
            header column, or one beyond the last column, does not fit
Settled     over the first rows of a file (a megabyte of text, or of the masks in Parquet): the readings that all of
            their masks fit, but for masks that fit none. Options that are set later choose among them. Masks that no
            single reading fits contradict each other, for one of them is damaged, and nothing tells which: then every
            reading is left, and one that a mask does not fit says other than one that it fits. Where several are left,
            a row is read if they say the same of it, else rejected (ambiguous_layout)
Image       INSERT and UPDATE: a column whose bit is clear and that is null was not supplied, any other value is taken.
            A large object has no bit [documented]: its null says nothing. Without a mask an INSERT has all values, an
            UPDATE what the option without_mask says. DELETE: what is not null. BEFOREIMAGE: what is not null, and the
            nulls that the mask of its update says were changed; with without_mask: full all of it
"""

import base64
from collections.abc import Iterable
from typing import Any, NamedTuple

from inlet.codecs.qlik import members
from inlet.codecs.qlik.change_table.header import Columns
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.members import Refused
from inlet.fields.json_exact import Number
from inlet.fields.wrong import cut


class Reading(NamedTuple):
    """How the bytes of a mask are written, and which of them comes first."""

    form: str
    order: str


CONTRADICTED = Reading("contradicted", "")  # comes with the readings that masks contradict each other in


def readings(options: Options, is_binary: bool) -> list[Reading]:
    """The readings of masks that options leave open. In: whether they are bytes, not text."""
    forms = ["binary"] if is_binary else ["hex", "base64"] if options.mask_form == "auto" else [options.mask_form]
    found = []
    for form in forms:
        orders = ["big"] if form == "hex" else ["little", "big"]
        found += [Reading(form, order) for order in (orders if options.mask_order == "auto" else [options.mask_order])]
    return found


def in_force(found: list[list[str]], options: Options) -> list[Reading]:
    """The readings of a file's masks, as options have them now. In: those that were left when it was opened."""
    open_ = [Reading(*one) for one in found]
    allowed = readings(options, any(one.form == "binary" for one in open_))
    return allowed if len(allowed) == 1 else [one for one in open_ if one in (*allowed, CONTRADICTED)] or allowed


def settled(masks: Iterable[tuple[Any, Columns]], open_: list[Reading]) -> list[Reading]:
    """The readings that are left of some once masks were looked at. Of a damaged mask another reading may be the only
    one that fits: so all masks are looked at, and where they contradict each other nothing is excluded."""
    left = open_
    if len(open_) == 1:
        return open_
    seen: set[tuple] = set()
    for mask, columns in masks:
        if mask is None or (known := (repr(mask), columns.names)) in seen:
            continue
        seen.add(known)
        fitting = [one for one in open_ if not isinstance(_bits(mask, one, columns), Refused)]
        if fitting:  # one that fits no reading is damaged, and says nothing
            left = [one for one in left if one in fitting]
            if not left:
                return [*open_, CONTRADICTED]
    return left


def places(mask: Any, columns: Columns, open_: list[Reading]) -> set[int] | None:
    """The places of the columns that a mask says have changed; None for no mask. Raises: Refused."""
    if mask is None:
        return None
    is_contradicted = CONTRADICTED in open_
    open_ = [reading for reading in open_ if reading != CONTRADICTED]
    found = [_bits(mask, reading, columns) for reading in open_]
    if all(isinstance(one, Refused) for one in found):
        raise next(one for one in found if isinstance(one, Refused))
    by_bits = {None if isinstance(bits, Refused) else bits: one for bits, one in reversed([*zip(found, open_)])}
    if not is_contradicted:
        by_bits.pop(None, None)
    if len(by_bits) > 1:
        said = " or ".join(f"{one.form} {one.order}: {_named(bits, columns)}" for bits, one in by_bits.items())
        expected = "a mask that one reading fits; set the options mask_form and mask_order"
        raise Refused("ambiguous_layout", (columns.known["change_mask"],), expected, cut(said, 200))
    bits = next(bits for bits in by_bits if bits is not None)
    return {n for n in range(bits.bit_length()) if bits >> n & 1}


def _named(bits: int | None, columns: Columns) -> str:
    if bits is None:
        return "does not fit"
    return ", ".join(columns.data[n] for n in range(bits.bit_length()) if bits >> n & 1) or "none"


def _bits(mask: Any, reading: Reading, columns: Columns) -> int | Refused:
    """The bits of a mask, or why it has none."""
    path = (columns.known["change_mask"],)
    data = _bytes(mask, reading)
    if data is None:
        return Refused("wrong_shape", path, f"a mask in {reading.form}", mask)
    bits = int.from_bytes(data, reading.order)  # type: ignore[arg-type]
    if bits.bit_length() > len(columns.names):
        expected = f"bits 0 to {len(columns.names) - 1}, of as many columns, header columns counted"
        return Refused("mask_too_long", path, expected, f"bit {bits.bit_length() - 1} is set")
    if stray := bits & sum(1 << place for place in columns.header):
        name = columns.names[(stray & -stray).bit_length() - 1]
        return Refused("contradiction", path, "bits of the table's own columns", f"the bit of {name} is set")
    return bits


def _bytes(mask: Any, reading: Reading) -> bytes | None:
    if reading.form == "binary":
        return mask if isinstance(mask, bytes) else None
    if not isinstance(mask, str) or isinstance(mask, Number):
        return None
    if reading.form == "hex":
        return bytes.fromhex(match[1]) if (match := members.HEX.fullmatch(mask)) else None
    try:
        return base64.b64decode(mask, validate=True)
    except ValueError:
        return None


def supplied(
    given: dict[str, Any], changed: set[str] | None, operation: str, large: frozenset[str], is_full: bool
) -> dict[str, Any]:
    """What a row supplies of its values by column: all that are not null, and the nulls that are SQL NULL. In: the
    columns that its mask names, of a before-image that of its update; large objects; the option without_mask."""

    def is_null(name: str) -> bool:
        if operation in ("REFRESH", "DELETE"):
            return operation == "REFRESH"
        if changed is not None:
            return name in changed
        return operation == "INSERT" or is_full and name not in large

    return {name: value for name, value in given.items() if value is not None or is_null(name)}


def differing(before: dict[str, Any], after: dict[str, Any], changed: set[str], large: frozenset[str]) -> list[str]:
    """The columns of which a mask says otherwise than both images do; large objects are in no mask."""
    both = [name for name in after if name in before and name not in large]
    return [name for name in both if (before[name] != after[name]) != (name in changed)]
