"""What a change has to hold of its table's contract, asked again of codecs that give changes as dicts: a value that
does not fit its column would be rounded or would stop gold, long after the batch is in the ledger.
"""

import datetime
import re
from decimal import Decimal

from inlet.fields import fit
from inlet.fields.json_exact import Number
from inlet.fields.wrong import Wrong
from inlet.table import Table

IMAGES = {  # of which each operation has one at least
    "REFRESH": ("after",),
    "INSERT": ("after",),
    "UPDATE": ("after",),
    "UPSERT": ("after",),
    "DELETE": ("before", "after"),
    "TRUNCATE": (),
}
OF_A_ROW = IMAGES | {"UPDATE": ("after", "before"), "UPSERT": ("after", "before")}


def broken(row: dict, tables: dict[str, Table]) -> str | None:
    """What of the contract a change breaks, in words; None where it breaks nothing. In: a dict of silver.changes."""
    name = f"{row['source_schema']}.{row['source_table']}"
    versions = tables[name].versions if name in tables else []
    version = next((version for version in versions if version.version == row["table_version"]), None)
    if version is None:
        return f"a table or version that no contract has: {name} version {row['table_version']}"
    if not (isinstance(row["change_seq"], str) and re.fullmatch("[0-9]{35}", row["change_seq"])):
        return f"a change_seq that is not 35 digits: {row['change_seq']!r}"
    lacking = [place for place in IMAGES[row["operation"]] if row.get(place) is None]
    if len(lacking) == len(IMAGES[row["operation"]]) and lacking:
        return f"no {' or '.join(lacking)}-image, and is {row['operation']}"
    columns, states = {column.name: column for column in version.columns}, row.get("column_states") or {}
    for place in ("before", "after"):
        for member, value in (row.get(place) or {}).items():
            if member not in columns:
                return f"a member {member} of its {place}-image that {name} version {version.version} does not have"
            column = columns[member]
            if not _fits(value, column.type, column.encoding):
                return f"{value!r} in {member}, which is {column.type}"
            if value is None and place == "after" and not column.nullable and states.get(member) != "missing":
                return f"null in {member}, which takes none"
    images = [row.get(place) or {} for place in OF_A_ROW[row["operation"]]]
    for key in version.key if images else ():
        if all(image.get(key) is None for image in images):
            return f"no value of {key}, which is of the key"
    return None


def _fits(value, type_: str, encoding: str | None) -> bool:
    """Is a plain value of an image one of the column's type, exactly? Lists and structs are not looked into."""
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        value = Number(f"{Decimal(value):f}")
    if isinstance(value, (str, bool)):
        try:
            fit.fit(value, type_, encoding)
        except Wrong:
            return False
        return True
    if isinstance(value, float):
        return type_ in fit.LARGEST
    if isinstance(value, datetime.date):
        return type_.startswith("timestamp" if isinstance(value, datetime.datetime) else "date")
    if isinstance(value, (bytes, bytearray)):
        return type_ == "binary" and encoding is None
    return True
