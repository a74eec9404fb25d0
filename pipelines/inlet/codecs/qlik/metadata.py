"""Column lists that metadata messages give, by schema id: which column is which bit of a mask.

A data message names its list in `messageSchemaId`; the metadata message with that `schemaId` may come before or after
it, and in another topic [documented]. Bit n-1 of a mask is the column whose `ordinal` is n there. The place of a column
in the contract is its ordinal where a message names no list, and where option `needs_metadata` is false and its source
has brought none.
"""

import re

from inlet.codecs.qlik.members import Refused
from inlet.fields import json_exact
from inlet.fields.json_exact import Number
from inlet.table import Table

ANY = "metadata"  # a name that each metadata message brings: the source has some
NAMED = re.compile(rb'"messageSchemaId"\s*:\s*(?:null|"([^"\\]*)")')
COLUMNS = ("message", "tableStructure", "tableColumns")


def brought(value: bytes) -> dict[str, bytes]:
    """What a metadata message brings for others, by name: its `message`, as it stands. Nothing where it lists no
    columns. Raises: Wrong, Refused."""
    whole = json_exact.parse(value)
    if whole.get("type") != "MD" or not isinstance(whole.get("message"), dict):
        return {}
    id_ = whole["message"].get("schemaId")
    if type(id_) is not str or not id_ or ordinals(whole) is None:
        return {}
    return {ANY: b"", id_: json_exact.slice_(value, ("message",)).encode()}


def ordinals(whole: dict) -> dict[int, str] | None:
    """Ordinal -> column, of a metadata message; None where it lists none. Raises: Refused."""
    structure = whole["message"].get("tableStructure")
    columns = structure.get("tableColumns") if isinstance(structure, dict) else structure
    if columns is None:
        return None
    if not isinstance(columns, dict) or not columns:
        raise Refused("wrong_shape", COLUMNS[: 3 if isinstance(structure, dict) else 2], "columns by name", columns)
    found: dict[int, str] = {}
    for name, column in columns.items():
        ordinal = column.get("ordinal") if isinstance(column, dict) else None
        if not isinstance(ordinal, (Number, int)) or not re.fullmatch(r"[1-9][0-9]{0,4}", str(ordinal)):
            raise Refused("wrong_shape", (*COLUMNS, name), "an ordinal from 1 to 99999", column)
        if found.setdefault(int(ordinal), name) != name:
            raise Refused("wrong_shape", (*COLUMNS, name), f"another ordinal than {found[int(ordinal)]} has", ordinal)
    return found


def list_of(whole: dict, lookups: dict[str, bytes], is_required: bool) -> dict[int, str] | None:
    """The column list that a data message names: ordinal -> column. None where the message names none, or its source
    has no metadata messages. Raises: Refused, where the list has not come yet.
    """
    id_ = whole.get("messageSchemaId")
    if type(id_) is not str or not id_:
        return None
    if id_ in lookups:
        return _listed(lookups[id_])
    if is_required or ANY in lookups:
        option = "" if ANY in lookups else "; needs_metadata: false where none is published"
        expected = f"a metadata message with schemaId {id_[:40]}{option}"
        raise Refused("definition_missing", ("messageSchemaId",), expected, "none so far")
    return None


def is_sure(value: bytes, ids: set[bytes]) -> bool:
    """Does a message surely name no list, or one of these? In: ids of the lists that say what its contract says."""
    found = NAMED.findall(value)
    return value.count(b"messageSchemaId") == len(found) and all(not id_ or id_ in ids for id_ in found)


def agreeing(lookups: dict[str, bytes], table: Table) -> set[bytes]:
    """The ids of the lists that have the columns of a contract at the same places."""
    places = {place: column.name for place, column in enumerate(table.columns, 1)}
    return {id_.encode() for id_, text in lookups.items() if id_ != ANY and _listed(text) == places}


def _listed(text: bytes) -> dict[int, str] | None:
    return ordinals({"message": json_exact.parse(text)})
