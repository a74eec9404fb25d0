"""Masks of messages: hex text in JSON, bytes in Avro; held against the images of their message.

Bits        bit n-1 is ordinal n [documented]. Bits beyond the last column have to be zero; bytes of zeros at either end
            may be missing [documented]
Order       hex text is one big-endian number [sample seen: 390 of 390 change rows]. That of Avro's bytes is not known:
            no sample is public. Both are tried on the masks of a message together. One that sets a bit beyond the last
            column is out; then one by which a column has a value that its mask says was not supplied, or that lacks a
            column of the key; then one by which a column changed that was not supplied; then one that says otherwise
            than the images do (UPDATE with both images, INSERT: all that was supplied, DELETE: the key). Where both are
            left and mean different things, ambiguous_layout; option mask_order decides then
Differs     an UPDATE with both images, whose mask says otherwise than they do: `mask_differs` in `header` names the
            columns. Values are compared as VARIANT holds them. A large object is in no mask [documented]; the contract
            tells it by its `source_type`
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from inlet import change
from inlet.codecs.qlik.members import HEX, MASKS, Refused
from inlet.codecs.qlik.types import is_large
from inlet.fields.wrong import cut, quoted
from inlet.table import Table

Order = Literal["big", "little"]


class Masks(NamedTuple):
    """Columns changed and supplied, by the contract's places; None where the message does not tell."""

    changed: bytes | None
    supplied: bytes | None

    def names(self, mask: bytes | None, contract: Table) -> set[str] | None:
        return None if mask is None else {contract.columns[n - 1].name for n in change.mask_ordinals(mask)}


def read(
    header: dict, body: dict, oper: str, contract: Table, listed: dict[int, str] | None, order: str, path: tuple
) -> Masks:
    """The masks of a message. In: its headers, data and beforeData; ordinal -> column of the list that it names, else
    the contract's places; of bytes the order, or `auto`. Raises: Refused.
    """
    is_text = not any(isinstance(header[name], bytes) for name in MASKS)
    orders: list[Order] = ["big"] if is_text or order == "big" else ["little", "big"] if order == "auto" else ["little"]
    found: list[Masks] = []
    refused = None
    for one in orders:
        try:
            masks = Masks(*(_mask(header[name], one, contract, (*path, name), listed) for name in MASKS))
        except Refused as no:
            refused = no
            continue
        found += [masks] if masks not in found else []
    if not found and refused:
        raise refused
    images = [body[name] for name in ("data", "beforeData") if isinstance(body.get(name), dict)]
    for fits in _TESTS:
        if len(found) > 1:
            found = [masks for masks in found if fits(masks, images, oper, contract)] or found
    if len(found) > 1:
        said = " or ".join(", ".join(sorted(masks.names(masks.changed, contract) or ())) or "none" for masks in found)
        expected = "masks that one byte order fits; set the option mask_order"
        raise Refused("ambiguous_layout", (*path, MASKS[0]), expected, cut(f"changed: {said}", 200))
    return found[0]


def differing(before: dict[str, Any], after: dict[str, Any], changed: set[str], contract: Table) -> list[str]:
    """The columns of which a mask says otherwise than both images do."""
    both = [c.name for c in contract.columns if c.name in before and c.name in after and not is_large(c.source_type)]
    return [name for name in both if _is_other(before[name], after[name]) != (name in changed)]


def _is_other(one: Any, other: Any) -> bool:
    """Are two values different as VARIANT holds them: 1.0 is another one than 1.00."""
    return type(one) is not type(other) or str(one) != str(other)


def _is_supplied(masks: Masks, images: list[dict], oper: str, contract: Table) -> bool:
    names = masks.names(masks.supplied, contract)
    outside = names is not None and any(
        value is not None and name not in names for image in images for name, value in image.items()
    )
    return names is None or not outside and names >= set(contract.key)


def _is_within(masks: Masks, images: list[dict], oper: str, contract: Table) -> bool:
    changed, names = (masks.names(mask, contract) for mask in masks)
    return changed is None or names is None or changed <= names


def _is_as_images(masks: Masks, images: list[dict], oper: str, contract: Table) -> bool:
    changed, names = (masks.names(mask, contract) for mask in masks)
    if changed is None:
        return True
    if oper == "UPDATE" and len(images) == 2:
        after, before = ({k: v for k, v in one.items() if names is None or k in names} for one in images)
        return not differing(before, after, changed, contract)
    expected = {"DELETE": set(contract.key), "INSERT": names}.get(oper)
    return expected is None or changed == expected


_TESTS: tuple[Callable[[Masks, list[dict], str, Table], bool], ...] = (_is_supplied, _is_within, _is_as_images)


def _mask(given, order: Order, contract: Table, path: tuple, listed: dict[int, str] | None) -> bytes | None:
    """Inlet's form of a mask: bits by the contract's places. Raises: Refused."""
    if given is None:
        return None
    if isinstance(given, bytes):
        bits = int.from_bytes(given, order)
    elif HEX.fullmatch(given):
        bits = int(given, 16)  # which takes the 0x, too
    else:
        raise Refused("wrong_shape", path, "pairs of hex digits", quoted(given))
    names = {place: column.name for place, column in enumerate(contract.columns, 1)}
    listed = names if listed is None else listed
    last = max(listed, default=0)
    if bits.bit_length() > last:
        of = f"version {contract.version} of {contract.table}" if listed is names else "the list that the message names"
        expected = f"bits of the {last} columns of {of}"
        raise Refused("mask_too_long", path, expected, f"bit {bits.bit_length()} is set")
    mask = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
    if listed == names:
        return mask
    places = {name: place for place, name in names.items()}
    stray = next((n for n in change.mask_ordinals(mask) if listed.get(n) not in places), None)
    if stray is not None:
        what = f"column {stray}, {listed[stray]}" if stray in listed else "a bit of no column"
        expected = f"columns of {contract.table}: {', '.join(places)}"
        raise Refused("definition_differs", path, expected, f"{what}, by the list of its message")
    return change.mask(places[listed[n]] for n in change.mask_ordinals(mask))
