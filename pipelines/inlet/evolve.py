"""Gold follows its contract: columns are added, widened and put in order in place, without a rebuild. What cannot be done in place
is said, with what to do. Of Inlet's own columns beside the table's, those that tell where a version comes from are added where an earlier
Inlet did not keep them; they are null in versions from then.

Widened: tinyint < smallint < int < bigint, float < double, date < timestamp_ntz, whole numbers and decimals to decimals that hold
them all. Delta then writes the files of before anew and drops the feature, because readers other than Spark do not know it.
[documented] Delta, "Type widening", "Drop Delta table features"; deltalake 1 refuses a table with typeWidening.
"""

import re

from inlet import lake
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.generate import LINEAGE
from inlet.table import Table

INTEGERS = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}        # from small to large; digits in front that Delta asks of a decimal for one
OTHERS = {("float", "double"), ("date", "timestamp_ntz")}
PLACES = {"past": ("",), "current": ("",), "folded": ("",), "before_after": ("before.", "after.")}        # step -> where it holds the columns


KEY, WIDENING = "inlet.key", "delta.enableTypeWidening"                    # properties of gold's tables


def lags(project: Project, table: Table) -> bool:
    """Is some table of its gold another than the contract says? Told without Spark."""
    return any(properties.get(KEY) != _key(table) and step != "folded" or WIDENING in properties
               or _lacking(step, columns)
               or any(list(_declared(table).items()) != list(_own(columns, prefix).items()) for prefix in PLACES[step])
               for step, columns, properties in _there(project, table))


def steps(project: Project, table: Table) -> list[str]:
    """Statements that bring the tables of its gold to the contract; a run that dies between them goes on with what is left. Raises:
    ConfigError where that takes a rebuild."""
    statements = []
    for step, columns, properties in _there(project, table):
        if properties.get(KEY, _key(table)) != _key(table):
            raise _no(table, f"its key was {properties[KEY]}, and is {_key(table)}",
                      f"If all its changes hold the new key, run `inlet rebuild --table {table.name}`; else give it another `name` and load it again")
        name = f"gold.{table.name}__{step}"
        statements += [f"alter table {name} add columns ({column} {type_} after {before})" for column, type_, before in _lacking(step, columns)]
        changes = [s for prefix in PLACES[step] for s in statements_for(table, name, prefix, _own(columns, prefix))]
        is_widening = any(" type " in s for s in changes)
        statements += [f"alter table {name} set tblproperties ({WIDENING} = true)"] if is_widening else []
        statements += changes
        statements += [f"alter table {name} set tblproperties ({KEY} = '{_key(table)}')"] if KEY not in properties and step != "folded" else []
        statements += [f"alter table {name} drop feature typeWidening"] if is_widening or WIDENING in properties else []
    return statements


def _there(project: Project, table: Table):
    """(step, columns, properties) of each table of its gold."""
    for step in PLACES:
        if said := lake.describe(project.lakehouse_path(), f"gold.{table.name}__{step}"):
            yield step, *said


def _lacking(step: str, columns: dict[str, str]) -> list[tuple[str, str, str]]:
    """Columns that tell where a version comes from and are not there: name, type, and the column before it."""
    return [(name, type_, LINEAGE[place - 1][0]) for place, (name, type_, _) in enumerate(LINEAGE) if step != "before_after" and name not in columns]


def _key(table: Table) -> str:
    return ",".join(k.lower() for k in table.key)


def _own(columns: dict[str, str], prefix: str) -> dict[str, str]:
    """Of a gold table's columns those that are the captured table's."""
    if prefix:
        return {name.removeprefix(prefix): type_ for name, type_ in columns.items() if name.startswith(prefix)}
    names = list(columns)
    return {name: columns[name] for name in names[names.index("source") + 1:names.index("valid_from_seq")]}


def _declared(table: Table) -> dict[str, str]:
    return {c.name.lower(): c.type for c in table.columns}


def statements_for(table: Table, name: str, prefix: str, there: dict[str, str]) -> list[str]:
    """ALTER statements that bring the columns of one place to the contract. Raises: ConfigError."""
    declared, order, statements = _declared(table), list(there), []
    for column in there:
        if column not in declared:
            former = next((c.name.lower() for c in table.columns if column in map(str.lower, c.formerly)), None)
            raise _no(table, f"column {column} is now {former}" if former else f"column {column} is not in its contract",
                      f"Run `inlet rebuild --table {table.name}`" + ("" if former else "; or keep it in the contract with `dropped: true`, then gold keeps what it held"))
    for column, type_ in declared.items():
        if there.get(column, type_) != type_ and not is_wider(type_, there[column]):
            raise _no(table, f"column {column} was {there[column]}, and is {type_}, which does not hold all of it", f"Run `inlet rebuild --table {table.name}`")
    before = None
    for place, (column, type_) in enumerate(declared.items()):
        at = f"after `{before}`" if before else "first" if prefix else "after `source`"
        quoted = ".".join(f"`{part}`" for part in f"{prefix}{column}".split("."))
        if column not in there:
            statements.append(f"alter table {name} add columns ({quoted} {type_} {at})")
            order.insert(place, column)
        elif order[place] != column:
            statements.append(f"alter table {name} alter column {quoted} {at}")
            order.remove(column)
            order.insert(place, column)
        if there.get(column, type_) != type_:
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
    return (than, type_) in OTHERS or {than, type_} <= INTEGERS.keys() and list(INTEGERS).index(type_) > list(INTEGERS).index(than)


def _decimal(type_: str) -> tuple[int, int]:
    found = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _no(table: Table, what: str, remedy: str) -> ConfigError:
    return ConfigError(f"Gold of {table.table} cannot follow its contract in place: {what}", remedy)
