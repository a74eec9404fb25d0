"""Nulls of large objects in updates. A CLOB, NCLOB or BLOB has no bit in changeMask [documented], and is sent as null
where Qlik has not looked it up: a null may be SQL NULL, or say nothing.

A column is one by its `source_type` in the contract. Option large_null: `null`, SQL NULL; `unchanged`, not supplied;
`auto`, a reject (unsupported_message), but where the row of before has a null there, too: then both say the same.
"""

from inlet import change
from inlet.codecs.qlik.members import Refused
from inlet.codecs.qlik.types import is_large
from inlet.table import Table


def names(contract: Table) -> list[str]:
    """The large objects of a table."""
    return [column.name for column in contract.columns if is_large(column.source_type)]


def settled(row: dict, contract: Table, option: str, path: tuple) -> dict:
    """A change without the nulls of its after-image that say nothing. In: columns of silver.changes; the path of its
    body. Raises: Refused where no option tells what a null says.
    """
    after, before = row["after"], row["before"] or {}
    if row["change_oper"] != change.OPERATIONS["UPDATE"] or option == "null":
        return row
    found = {name for name in names(contract) if after.get(name, "") is None and before.get(name, "") is not None}
    if found and option == "auto":
        name = min(found, key=contract.column_names.index)
        expected = "the option large_null: null or unchanged"
        raise Refused("unsupported_message", (*path, "data", name), expected, "null", name)
    if not found:
        return row
    mask, places = row["column_mask"], range(1, len(contract.columns) + 1)
    supplied = set(places) if mask is None else set(change.mask_ordinals(mask))
    supplied -= {contract.column_names.index(name) + 1 for name in found}
    after = {name: value for name, value in after.items() if name not in found}
    return row | {"after": after, "column_mask": change.mask(supplied)}
