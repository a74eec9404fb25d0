"""Column lists that metadata messages give, by schema id: the table, its columns and key, which column is which bit of
a mask, the Avro schema of its data messages.

A data message names its list in `messageSchemaId`; the metadata message with that `schemaId` may come before or after
it, and in another topic [documented]. Bit n-1 of a mask is the column whose `ordinal` is n there. The place of a column
in the contract is its ordinal where a message names no list, and where option `needs_metadata` is false and its source
has brought none.

Lists       each is kept in silver.table_versions, with the contract's types (types.py) and the number `tableVersion`,
            which Qlik raises at each change of the table [documented]. `inlet import` makes versions of contracts of
            them. A metadata message tells no place in the order of changes: its timestamp is that of its writing, and
            changes are committed before they are written. So a list is in force from the first change on that names it;
            that is known of those that the contract does not have: a message that is rejected brings its list's place
Table       where a message tells it neither by its members nor by its topic, it is that of the list's `lineage`, as the
            source's `tables` maps it. Two tables with a contract each are one too many
Waits       a message that names a list which has not come: where it has masks, or only the list tells its table
Differs     a message whose list has a column that the contract has not at its place; lacks one that an earlier list of
            its table had and the contract still has; has another key than such a list, which is the contract's; or has
            another type for a value that does not fit the contract's. It waits for the contract (definition_differs).
            ASSUMED: the metadata message of an earlier list comes before data messages of the next one are read
Null        a column that is not nullable by the list is `nullable: false` in the contract; not so a large object, whose
            null may say that it was not looked up [documented]
"""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from inlet.codecs.qlik import dfm, types
from inlet.codecs.qlik.dfm import Column
from inlet.codecs.qlik.members import Refused
from inlet.codecs.results import Definition
from inlet.fields import json_exact
from inlet.fields.json_exact import Number
from inlet.fields.wrong import Wrong, cut
from inlet.source import Source
from inlet.table import Table

MARK = re.compile(rb'"tableColumns"\s*:')  # which every kept list has, and no Avro schema of data
ANY = "metadata"  # a name that each metadata message brings: the source has some
NAMED = re.compile(rb'"messageSchemaId"\s*:\s*(?:null|"([^"\\]*)")')
COLUMNS = ("message", "tableStructure", "tableColumns")
VERSION = re.compile(r"[0-9]{1,9}")
SAID = ("server", "task", "timestamp")  # of the lineage, for eyes


class Listed(NamedTuple):
    """What a metadata message says."""

    schema: str
    table: str
    version: int | None
    columns: tuple[Column, ...]  # by ordinal; none where the message lists none
    not_null: frozenset[str]
    data_schema: str  # Avro schema of data messages, "" where none
    said: tuple[tuple[str, str], ...]  # server, task, ...

    @property
    def ordinals(self) -> dict[int, str]:
        return {column.ordinal: column.name for column in self.columns}

    @property
    def key(self) -> list[str]:
        return [c.name for c in sorted(self.columns, key=lambda c: c.key_position) if c.key_position]

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"

    def definition(self, change_seq: str, is_text: bool, source: Source) -> Definition:
        """The list as silver.table_versions has it. In: its place, "" where none is known."""
        mapped = source.table_of(self.name)
        schema, table = mapped.split(".", 1) if mapped else (self.schema, self.table)
        columns = [
            types.described(column, is_text) | {"nullable": column.name not in self.not_null} for column in self.columns
        ]
        told = [
            {name: value for name, value in column._asdict().items() if name != "name"} | {"nullable": one["nullable"]}
            for column, one in zip(self.columns, columns)
        ]
        detail = dict(self.said) | {"columns": {c.name: one for c, one in zip(self.columns, told)}}
        return Definition(schema, table, columns, self.key, change_seq, 0, self.version, detail)


def read(whole: dict) -> Listed:
    """What a metadata message says. In: the message, its numbers as Number. Raises: Refused."""
    message = whole["message"]
    columns, not_null = _columns(message)
    lineage = message.get("lineage")
    if not isinstance(lineage, dict) or not all(_is_text(lineage.get(name)) for name in ("schema", "table")):
        raise Refused("wrong_shape", ("message", "lineage"), "schema and table", lineage)
    version = lineage.get("tableVersion")
    if version is not None and not (isinstance(version, Number) and VERSION.fullmatch(version)):
        raise Refused("wrong_shape", ("message", "lineage", "tableVersion"), "a number of at most 9 digits", version)
    data_schema = message.get("dataSchema")
    if data_schema is not None and type(data_schema) is not str:
        raise Refused("wrong_shape", ("message", "dataSchema"), "text of an Avro schema, or null", data_schema)
    id_ = message.get("schemaId")
    said = {name: lineage[name] for name in SAID if _is_text(lineage.get(name))}
    said |= {"schema_id": id_} if _is_text(id_) else {}
    number = None if version is None else int(version)
    return Listed(
        lineage["schema"], lineage["table"], number, columns, not_null, data_schema or "", tuple(said.items())
    )


def brought(whole: dict, text: str) -> dict[str, bytes]:
    """What a metadata message brings for others, by name: its `message`. Nothing where it lists no columns. In: the
    message; the text of its `message`. Raises: Refused.
    """
    if whole.get("type") != "MD" or not isinstance(whole.get("message"), dict):
        return {}
    id_ = whole["message"].get("schemaId")
    return {ANY: b"", id_: text.encode()} if _is_text(id_) and id_ and read(whole).columns else {}


def _is_text(value) -> bool:
    return type(value) is str


def _columns(message: dict) -> tuple[tuple[Column, ...], frozenset[str]]:
    """The columns by ordinal, and those that are never null. Raises: Refused."""
    structure = message.get("tableStructure")
    given = structure.get("tableColumns") if isinstance(structure, dict) else structure
    if given is None:
        return (), frozenset()
    if not isinstance(given, dict) or not given:
        raise Refused("wrong_shape", COLUMNS[: 3 if isinstance(structure, dict) else 2], "columns by name", given)
    found: dict[int, Column] = {}
    not_null = set()
    for name, one in given.items():
        if not isinstance(one, dict):
            raise Refused("wrong_shape", (*COLUMNS, name), "an object", one)
        column = dfm.column_of({**one, "name": name}, (*COLUMNS, name))
        if (other := found.setdefault(column.ordinal, column)) is not column:
            expected = f"another ordinal than {other.name} has"
            raise Refused("wrong_shape", (*COLUMNS, name), expected, f"'{column.ordinal}'")
        if one.get("nullable") is False and column.type.upper() not in types.LARGE:
            not_null.add(name)
    return tuple(found[ordinal] for ordinal in sorted(found)), frozenset(not_null)


@lru_cache(maxsize=1024)
def of_text(text: bytes) -> Listed:
    """What was brought. In: the text of a metadata message's `message`."""
    return read({"message": json_exact.parse(text)})


def lists(lookups: dict[str, bytes]) -> dict[str, Listed]:
    """The lists that metadata messages brought, by id; not what was looked up elsewhere."""
    found = {}
    for id_, text in lookups.items():
        if text and MARK.search(text):
            try:
                found[id_] = of_text(text)
            except (Wrong, Refused):  # kept by an earlier Inlet, which asked less; messages that name it are rejects
                continue
    return found


def named(whole: dict, lookups: dict[str, bytes]) -> Listed | None:
    """The list that a data message names; None where it names none, or one that has not come."""
    id_ = whole.get("messageSchemaId")
    return of_text(lookups[id_]) if _is_text(id_) and id_ and lookups.get(id_) is not None else None


def check_come(whole: dict, lookups: dict[str, bytes], is_required: bool) -> None:
    """Raises: Refused where a message names a list that has not come, and its source has some, or has to have them."""
    id_ = whole.get("messageSchemaId")
    if _is_text(id_) and id_ and lookups.get(id_) is None and (is_required or ANY in lookups):
        option = "" if ANY in lookups else "; needs_metadata: false where none is published"
        expected = f"a metadata message with schemaId {cut(id_, 80)}{option}"
        raise Refused("definition_missing", ("messageSchemaId",), expected, "none so far")


def check_known(listed: Listed, contract: Table, others: Callable[[], dict[str, Listed]]) -> None:
    """Raises: Refused where a contract does not know a column of a message's list, or still has what that has no
    more. In: the contract at its place; all lists."""
    names = {column.name for column in listed.columns}
    if new := [column.name for column in listed.columns if column.name not in contract.column_names]:
        expected = f"columns of {contract.table}: {', '.join(contract.column_names)}"
        raise Refused("definition_differs", ("messageSchemaId",), expected, f"{new[0]}, by the list of its message")
    lacking = [name for name in contract.column_names if name not in names]
    if not lacking and listed.key == contract.key:
        return
    earlier = [one for one in others().values() if _is_before(one, listed)]
    had = {column.name for one in earlier for column in one.columns}
    gone = [name for name in lacking if name in had]
    if gone:
        expected = f"{', '.join(gone)}, of {contract.table}, which an earlier list has"
        raise Refused("definition_differs", ("messageSchemaId",), expected, "none, by the list of its message")
    if listed.key != contract.key and any(one.key == contract.key for one in earlier):
        found = f"key {', '.join(listed.key) or 'none'}, by the list of its message"
        expected = f"the key of {contract.table}: {', '.join(contract.key) or 'none'}"
        raise Refused("definition_differs", ("messageSchemaId",), expected, found)


def check_fits(no: Refused, listed: Listed | None, contract: Table) -> None:
    """Raises: Refused where a value does not fit because the contract has another type than the list of its message.
    In: why it does not fit."""
    column = next((c for c in listed.columns if c.name == no.column), None) if listed else None
    if no.kind != "value_does_not_fit" or column is None or column.name not in contract.column_names:
        return
    type_ = types.contract_type(column)[0]
    if type_ != contract.column(column.name).type:
        raise Refused("definition_differs", no.path, no.expected, f"{type_}, by the list of its message", no.column)


def _is_known(listed: Listed, contract: Table, others: dict[str, Listed]) -> bool:
    try:
        check_known(listed, contract, lambda: others)
    except Refused:
        return False
    return True


def _is_before(one: Listed, listed: Listed) -> bool:
    """Is a list an earlier one of the same table and task?"""
    tasks = [[value for name, value in x.said if name in ("server", "task")] for x in (one, listed)]
    return one.name == listed.name and tasks[0] == tasks[1] and (one.version or 0) < (listed.version or 0)


def is_of(listed: Listed, contract: Table | None) -> bool:
    """Does a contract say what a list says: columns, types and key?"""
    return contract is not None and (
        [(c.name, types.contract_type(c)[0]) for c in listed.columns] == [(c.name, c.type) for c in contract.columns]
        and listed.key == contract.key
    )


def is_sure(value: bytes, ids: set[bytes]) -> bool:
    """Does a message surely name no list, or one of these? In: ids of the lists that say what its contract says."""
    found = NAMED.findall(value)
    return value.count(b"messageSchemaId") == len(found) and all(not id_ or id_ in ids for id_ in found)


def agreeing(lookups: dict[str, bytes], table: Table, tables: dict[str, Table], source: Source) -> set[bytes]:
    """The ids of the lists that a contract knows, and that have its columns at the same places. In: all contracts."""
    places = {place: column.name for place, column in enumerate(table.columns, 1)}
    found = set()
    all_lists = lists(lookups)
    for id_, listed in all_lists.items():
        other = tables.get(source.table_of(listed.name) or listed.name, table)
        if listed.ordinals == places and other.name == table.name and _is_known(listed, table, all_lists):
            found.add(id_.encode())
    return found


def of_table(lookups: dict[str, bytes], source: Source) -> dict[str, str]:
    """Id -> SCHEMA.TABLE of the lists that were brought."""
    return {id_: source.table_of(one.name) or one.name for id_, one in lists(lookups).items()}


def text_of(message: dict) -> str:
    """A metadata message's `message` as JSON text. In: numbers as Number."""
    return json.dumps(_plain(message), ensure_ascii=False)


def _plain(value):
    if isinstance(value, Number):
        return int(value) if re.fullmatch("-?[0-9]{1,19}", value) else float(value)
    return {name: _plain(one) for name, one in value.items()} if isinstance(value, dict) else value
