"""Gold follows its contract: columns are added, widened and put in order in place, without a rebuild. What cannot be
done in place is said, with what to do. Of Inlet's own columns beside the table's, those that tell where a version comes
from are added where an earlier Inlet did not keep them; they are null in versions from then.

Widened: tinyint < smallint < int < bigint, float < double, date < timestamp_ntz, whole numbers and decimals to decimals
that hold them all. Delta then writes the files of before anew and drops the feature, because readers other than Spark
do not know it. [documented] Delta, "Type widening", "Drop Delta table features"; deltalake 1 refuses a table with
typeWidening.
"""

import re

from inlet import lake, sql
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.gold.generate import LINEAGE
from inlet.sql import literal
from inlet.table import Table

INTEGERS = {
    "tinyint": 10,
    "smallint": 10,
    "int": 10,
    "bigint": 20,
}  # from small to large; digits in front that Delta asks of a decimal for one
OTHERS = {("float", "double"), ("date", "timestamp_ntz")}
VIEWED = {"valid_from", "valid_to", "is_pending", "is_held"}  # columns of ours that only views have
PLACES = {
    "past": ("",),
    "current": ("",),
    "folded": ("",),
    "before_after": ("before.", "after."),
}  # step -> where it holds the columns


KEY, OURS, ADDED_AGAIN = "inlet.key", "inlet.ours", "inlet.added_again"  # properties of gold's tables
WIDENING, MAPPING = "delta.enableTypeWidening", "delta.columnMapping.mode"
METADATA = "_metadata"  # a column that a table with deletion vectors has not (create_gold_table.sql)


def lags(project: Project, table: Table) -> bool:
    """Is some table of its gold another than the contract says? Found without Spark."""
    return any(
        properties.get(KEY) != _key(table)
        and step != "folded"
        or WIDENING in properties
        or step != "before_after"
        and ours(properties) != _stored(table.ours)
        or _added_again(table, step, properties)
        or table.column_mapping
        and MAPPING not in properties
        or _lacking(table, step, columns)
        or _has_vectors(table, properties)
        or any(
            list(_declared(table).items()) != list(own(columns, prefix, ours(properties)).items())
            for prefix in PLACES[step]
        )
        for step, columns, properties in _existing(project, table)
    )


def steps(project: Project, table: Table) -> list[str]:
    """Statements that bring the tables of its gold to the contract; a run that dies between them goes on with what is
    left. Raises: ConfigError where that takes a rebuild."""
    statements = []
    for step, columns, properties in _existing(project, table):
        if properties.get(KEY, _key(table)) != _key(table):
            raise _no(
                table,
                f"its key was {properties[KEY] or 'none'}, and is {_key(table) or 'none'}",
                "Give it another `name`: what its gold holds by key stays as it is"
                if not table.key
                else f"If all its changes hold the new key, run `inlet rebuild --table {table.name}`; else give it "
                "another `name` and load it again",
            )
        if step != "before_after" and ours(properties) != _stored(table.ours):
            met = sorted(ours(properties).items() ^ _stored(table.ours).items())[0][0]
            raise _no(
                table,
                f"a column {met} of the table has come or gone, and Inlet's own gives way to it",
                f"Run `inlet rebuild --table {table.name}`: Inlet's column is then {table.our(met)}",
            )
        if _has_vectors(table, properties):
            raise _no(
                table,
                f"a column {METADATA} has come, which Delta's deletion vectors have, too",
                f"Run `inlet rebuild --table {table.name}`: its tables are then made without them",
            )
        name = f"gold.{table.name}__{step}"
        if places := _added_again(table, step, properties):
            _check_not_passed(project, table, places)
            statements.append(f"alter table {name} set tblproperties ({ADDED_AGAIN} = '{','.join(table.added_again)}')")
        statements += (
            [f"alter table {name} set tblproperties ({MAPPING} = '{table.column_mapping}')"]
            if table.column_mapping and MAPPING not in properties
            else []
        )
        statements += [
            f"alter table {name} add columns ({column} {type_} after {before})"
            for column, type_, before in _lacking(table, step, columns)
        ]
        changes = [
            s
            for prefix in PLACES[step]
            for s in statements_for(table, name, prefix, own(columns, prefix, ours(properties)))
        ]
        is_widening = any(" type " in s for s in changes)
        statements += [f"alter table {name} set tblproperties ({WIDENING} = true)"] if is_widening else []
        statements += changes
        statements += (
            [f"alter table {name} set tblproperties ({KEY} = {literal(_key(table))})"]
            if KEY not in properties and step != "folded"
            else []
        )
        statements += [f"alter table {name} drop feature typeWidening"] if is_widening or WIDENING in properties else []
    return statements


def _added_again(table: Table, step: str, properties: dict[str, str]) -> list[str]:
    """Places at which dropped columns are added again that a table of gold does not know yet, or knows and the contract
    does not any more. `current` knows them for all: the fold takes them in with the first change that comes after them.
    """
    known = set(filter(None, properties.get(ADDED_AGAIN, "").split(",")))
    return sorted(known ^ set(table.added_again)) if step == "current" else []


def _check_not_passed(project: Project, table: Table, places: list[str]) -> None:
    """Raises: ConfigError where gold has taken changes after a place that it did not know, or took for another."""
    applied = lake.peek(project.lakehouse_path(), "gold.applied", ["table_name", "through_change_seq"])
    newest = max((row["through_change_seq"] or "" for row in applied if row["table_name"] == table.name), default="")
    for place in places:
        if newest >= place:
            rebuild, names = f"Run `inlet rebuild --table {table.name}`", ", ".join(table.added_again.get(place, []))
            if not names:
                wrong = f"gold has a dropped column added again at {place}, and its contract says so no more"
                raise _no(table, wrong, f"{rebuild}: values then end where the contract says")
            raise _no(
                table,
                f"{names} was dropped and is added again at {place}, and gold already has changes after that place",
                f"{rebuild}: rows from before the drop are then null in {names}",
            )


def _existing(project: Project, table: Table):
    """(step, columns, properties) of each table of its gold."""
    for step in PLACES:
        if described := lake.describe(project.lakehouse_path(), f"gold.{table.name}__{step}"):
            yield step, *described


def _lacking(table: Table, step: str, columns: dict[str, str]) -> list[tuple[str, str, str]]:
    """Columns that tell where a version comes from and are not there: name, type, and the column before it."""
    return [
        (table.our(name), type_, table.our(LINEAGE[place - 1][0]))
        for place, (name, type_, _) in enumerate(LINEAGE)
        if step != "before_after" and table.our(name) not in columns
    ]


def ours(properties: dict[str, str]) -> dict[str, str]:
    """What columns of ours are called in a table of gold that holds columns of their names, as its properties say."""
    return _stored(dict(renamed.split("=") for renamed in properties.get(OURS, "").split(",") if renamed))


def _stored(ours: dict[str, str]) -> dict[str, str]:
    return {name: renamed for name, renamed in ours.items() if name not in VIEWED}


def _has_vectors(table: Table, properties: dict[str, str]) -> bool:
    """Has a table both of what Delta cannot have together?"""
    return properties.get(lake.VECTORS) == "true" and METADATA in _declared(table)


def _key(table: Table) -> str:
    return ",".join(table.gold_key)


def own(columns: dict[str, str], prefix: str, ours: dict[str, str]) -> dict[str, str]:
    """Of a gold table's columns those that are the captured table's. In: what ours are called there."""
    if prefix:
        return {name.removeprefix(prefix): type_ for name, type_ in columns.items() if name.startswith(prefix)}
    names = list(columns)
    return {
        name: columns[name]
        for name in names[
            names.index(ours.get("source", "source")) + 1 : names.index(ours.get("valid_from_seq", "valid_from_seq"))
        ]
    }


def _declared(table: Table) -> dict[str, str]:
    return {c.gold_name: c.type for c in table.columns}


def statements_for(table: Table, name: str, prefix: str, existing: dict[str, str]) -> list[str]:
    """ALTER statements that bring the columns of one place to the contract. Raises: ConfigError."""
    declared, order, statements = _declared(table), list(existing), []
    for column in existing:
        if column not in declared:
            former = next((c.gold_name for c in table.columns if column in map(str.lower, c.formerly)), None)
            raise _no(
                table,
                f"column {column} is now {former}" if former else f"column {column} is not in its contract",
                f"Run `inlet rebuild --table {table.name}`"
                + ("" if former else "; or keep it in the contract with `dropped: true`, then gold keeps what it held"),
            )
    for column, type_ in declared.items():
        if existing.get(column, type_) != type_ and not is_wider(type_, existing[column]):
            raise _no(
                table,
                f"column {column} was {existing[column]}, and is {type_}: it cannot be changed in place",
                f"Run `inlet rebuild --table {table.name}`",
            )
    before = None
    for place, (column, type_) in enumerate(declared.items()):
        at = f"after {sql.name(before or table.our('source'))}" if before or not prefix else "first"
        quoted = (f"{sql.name(prefix[:-1])}." if prefix else "") + sql.name(column)
        if column not in existing:
            statements.append(f"alter table {name} add columns ({quoted} {type_} {at})")
            order.insert(place, column)
        elif order[place] != column:
            statements.append(f"alter table {name} alter column {quoted} {at}")
            order.remove(column)
            order.insert(place, column)
        if existing.get(column, type_) != type_:
            statements.append(f"alter table {name} alter column {quoted} type {type_}")
        before = column
    return statements


def is_wider(type_: str, than: str) -> bool:
    """Does a type hold all values of another, so that Delta can widen it in place?"""
    (digits, scale), (digits_before, scale_before) = _decimal(type_), _decimal(than)
    if digits and than in INTEGERS:
        return digits - scale >= INTEGERS[than]
    if digits and digits_before:
        return scale >= scale_before and digits - scale >= digits_before - scale_before
    return (
        (than, type_) in OTHERS
        or {than, type_} <= INTEGERS.keys()
        and list(INTEGERS).index(type_) > list(INTEGERS).index(than)
    )


def _decimal(type_: str) -> tuple[int, int]:
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _no(table: Table, what: str, remedy: str) -> ConfigError:
    return ConfigError(f"Gold of {table.table} cannot follow its contract in place: {what}", remedy)
