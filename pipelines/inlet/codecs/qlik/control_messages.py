"""Rows of Qlik's control tables that come as messages (control_tables): by the table that a message names, else by its
topic. The row is in data, or in beforeData where data is null.
"""

from inlet import change
from inlet.codecs.qlik import control_tables, members
from inlet.codecs.qlik.full_load import Options
from inlet.codecs.qlik.members import Refused
from inlet.codecs.qlik.shapes import DATA, IMAGES, NOT_TOLD
from inlet.fields.wrong import cut
from inlet.source import Source
from inlet.table import Table


def of_message(body: dict, topic: str, source: Source, tables: dict[str, Table]) -> str | None:
    """The control table that a message is a row of; None where a contract captures it, too."""
    schema, name = body.get("schema"), body.get("table")
    is_captured = source.table_of(topic) in tables or f"{schema}.{name}" in tables
    return None if is_captured else control_tables.name_of(name or topic)


def contract_of(topic: str, source: Source, tables: dict[str, Table], body: dict) -> Table | None:
    """The contract of a body that may hold columns named schema and table; None of a control table. Raises: Refused."""
    if of_message(body, topic, source, tables):
        return None
    named = (None, None) if source.table_of(topic) else (body.get("schema"), body.get("table"))
    return members.table(*named, topic, tables, source)


def read(
    name: str, body: dict, path: tuple, is_deleted: bool, message: dict, source: Source, tables: dict[str, Table]
) -> dict:
    """What a message of a control table is, as `read_message` has it. Raises: Refused."""
    image = next((one for one in IMAGES if body.get(one) is not None), DATA)
    if not isinstance(row := body.get(image), dict):
        raise Refused("wrong_shape", (*path, image), f"a row of {name}", row)
    try:
        found = control_tables.event(name, row, is_deleted, message["timestamp"], source.options_as(Options).task_name)
    except Refused as no:
        no.path = (*path, image, *no.path)
        raise
    told = {"result": "control", "source_schema": found.source_schema, "source_table": found.source_table}
    told |= {"change_seq": found.change_seq, "detail": found.detail} | ({"kind": found.kind} if found.kind else {})
    return told | (_truncate(found, (*path, image), source, tables) if found.is_truncate else {})


def _truncate(found: control_tables.Event, path: tuple, source: Source, tables: dict[str, Table]) -> dict:
    """The change that a truncate is. Raises: Refused."""
    full = f"{found.source_schema}.{found.source_table}"
    contract = tables.get(source.table_of(full) or full)
    if contract is None or contract.sources and source.name not in contract.sources:
        expected = "a table with a contract in pipelines/tables/, by owner and name (`tables` maps them)"
        named = (f"{found.source_schema}", f"{found.source_table}")
        raise Refused("unknown_table", path, expected, cut(full, 80), named=named)
    contract = contract.at(f"{found.change_seq}")
    return NOT_TOLD | {
        "result": "change",
        "source_schema": contract.schema_name,
        "source_table": contract.table_name,
        "table_version": contract.version,
        "operation": "TRUNCATE",
        "change_oper": change.OPERATIONS["TRUNCATE"],
        "change_timestamp": found.timestamp,
    }
