"""The images of an operation of GoldenGate, held against the contract of its table.

Operation   INSERT: after [documented]. UPDATE, UPSERT: after, maybe before [documented]. DELETE: before [documented].
            TRUNCATE: neither [documented]. An empty object says no more than none
Row         one image: after of an INSERT, UPDATE and UPSERT, before of a DELETE; a TRUNCATE has no value [documented]
Absent      a column that an image lacks was not supplied [messages seen: an update without the column that stayed].
            Option `absent_means`
Null        SQL NULL [documented]. Kafka Connect, and Avro without `_isMissing`, write null for what was not supplied,
            too: there a null in the after-image of an UPDATE is rejected until the option `null_means` tells what it
            is, and a null in a before-image is left out, which claims less. JSON of Kafka Connect without its envelope
            looks like any other: its source has to say `null_means`
Key         a change of the key is one UPDATE with two keys [recalled]. Each column of the key has a value, in the one
            image or, of an UPDATE, in either. A before-image of an UPDATE has the whole key, or nothing of it: then the
            key stayed, for a change of it always brings the key of before
            ASSUMED: that, of message forms; it holds in the trail
Mask        column_mask says what was supplied, where that is not all columns. No form tells what changed
Values      by the contract's type (fields/fit.py), dates and times made ISO text first (operations/time). A decimal of
            more than 15 digits that the form carried as a floating-point number has the state `inexact`

Rejects     wrong_shape, unknown_column, value_does_not_fit, missing_key, null_not_allowed, unsupported_message
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from inlet import change
from inlet.codecs.goldengate.operations.operation import Operation, Refused
from inlet.codecs.goldengate.operations.options import ImageOptions
from inlet.codecs.goldengate.operations.time import as_iso
from inlet.fields.fit import fit
from inlet.fields.wrong import Wrong
from inlet.table import Table
from inlet.table_column import DECIMAL

UPDATES = ("UPDATE", "UPSERT")
TIMES = ("date", "timestamp", "timestamp_ntz")
SAFE_DIGITS = 15  # of a decimal number, which any double of it gives back
INEXACT = "inexact"


class Images(NamedTuple):
    """Columns of the change table."""

    before: dict | None
    after: dict | None
    column_mask: bytes | None
    column_states: dict[str, str] | None


def images(operation: Operation, word: str, contract: Table, options: ImageOptions) -> Images:
    """What an operation holds of its row. In: INSERT, UPDATE, UPSERT, DELETE or TRUNCATE. Raises: Refused."""
    given = _given(operation, word)
    roles = {image: role for image, (role, _) in given.items()}
    before, after = (_read(*given[image], contract) if image in given else None for image in ("before", "after"))
    is_clear = operation.has_exact_nulls or options.null_means == "null"
    if before and (options.null_means == "missing" or not is_clear):
        before = _without_nulls(before)
    if after and word in UPDATES and options.null_means == "missing":
        after = _without_nulls(after)
    elif after and word in UPDATES and not is_clear:
        _refuse_nulls(after, roles["after"])
    if after and options.absent_means == "null":
        after = {name: after.get(name) for name in contract.column_names}
    if word == "TRUNCATE":
        return Images(None, None, None, None)
    _check_keys(before or {}, after or {}, word, contract, roles)
    _check_nulls(after or {}, contract, roles)
    supplied = (before if word == "DELETE" else after) or {}
    return Images(before or None, after, _mask(supplied, contract), _states(operation, supplied, contract))


def _given(operation: Operation, word: str) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """The images that an operation of its kind has: before, after -> (role, image). Raises: Refused for one too few or
    too many.
    """
    needed = {"INSERT": "after", "UPDATE": "after", "UPSERT": "after", "DELETE": "before"}.get(word)
    if operation.row is not None:
        given = {needed: ("row", operation.row)}
    else:
        given = {"before": ("before", operation.before or {}), "after": ("after", operation.after or {})}
    if needed and not given[needed][1]:
        raise Refused("wrong_shape", given[needed][0], f"the {needed}-image of a message of {word}", "none")
    taken = {}
    for image, (role, values) in given.items():
        if image and (image == needed or word in UPDATES):
            taken[image] = role, values
        else:
            _refuse_values(role, values, word)
    return taken


def _refuse_values(role: str, image: Mapping[str, Any], word: str) -> None:
    """Raises: Refused, where an image that does not belong to an operation holds more than null."""
    for name, value in image.items():
        if value is not None:
            raise Refused("wrong_shape", role, f"no value there in a message of {word}", value, name)


def _read(role: str, image: Mapping[str, Any], contract: Table) -> dict:
    """An image, each value fit for its column. Raises: Refused."""
    columns, read = {column.name: column for column in contract.columns}, {}
    if new := contract.new_columns(image):
        found = contract.lacks(new, "the record")
        raise Refused("unknown_column", role, f"columns of {contract.table}", found, new[0])
    for name, value in image.items():
        column = columns[name]
        if column.type in TIMES and type(value) is str:
            value = as_iso(value, column.type)
        try:
            read[name] = fit(value, column.type, column.encoding)
        except Wrong as wrong:
            raise Refused(wrong.kind, role, wrong.expected, wrong.found, name) from None
    return read


def _without_nulls(image: dict) -> dict:
    return {name: value for name, value in image.items() if value is not None}


def _refuse_nulls(after: dict, role: str) -> None:
    for name, value in after.items():
        if value is None:
            raise Refused(
                "unsupported_message",
                role,
                "the option null_means, for this form writes null for what was not supplied, too",
                "null in an update",
                name,
            )


def _check_keys(before: dict, after: dict, word: str, contract: Table, roles: dict[str, str]) -> None:
    """Raises: Refused, where a row cannot be told by its key."""
    for image, values in (("before", before), ("after", after)):
        for name in contract.key:
            if name in values and values[name] is None:
                raise Refused("missing_key", roles[image], f"a value of {name}, of the key", "null", name)
    image = "before" if word == "DELETE" else "after"
    for name in contract.key:
        if name not in before and name not in after:
            raise Refused("missing_key", roles[image], f"a value of {name}, of the key", "none", name)
    lacking = [name for name in contract.key if name not in before]
    if word in UPDATES and 0 < len(lacking) < len(contract.key):
        raise Refused(
            "missing_key", roles["before"], "the whole key in a before-image, or nothing of it", "none", lacking[0]
        )


def _check_nulls(after: dict, contract: Table, roles: dict[str, str]) -> None:
    """Raises: Refused, where the contract takes no null."""
    for column in contract.columns:
        if not column.nullable and column.name in after and after[column.name] is None:
            raise Refused(
                "null_not_allowed", roles["after"], f"a value, for {column.name} is not nullable", "null", column.name
            )


def _mask(supplied: dict, contract: Table) -> bytes | None:
    if len(supplied) == len(contract.columns):
        return None
    return change.mask(n for n, name in enumerate(contract.column_names, 1) if name in supplied)


def _states(operation: Operation, supplied: dict, contract: Table) -> dict[str, str] | None:
    """The columns whose value the form may have rounded."""
    states = {}
    for name in operation.doubles:
        value = supplied.get(name)
        if value is not None and DECIMAL.fullmatch(contract.column(name).type):
            digits = str(value).upper().partition("E")[0].replace(".", "").lstrip("-0").rstrip("0")
            if len(digits) > SAFE_DIGITS:
                states[name] = INEXACT
    return states or None
