"""The SQL of the public views of one table.

`<t>` (live rows), `<t>__history` (versions) and `<t>__before_after` (changes) name Delta versions in literals, so
nothing that gold does later can be seen in them. Which point a query is at it learns from `public._point`; the
optimiser folds the answer into the plan, so the branch for the other point costs planning and no reading.

`<t>__committed`, and the functions `<t>_as_of(change_seq)` and `<t>_at(time)`, stand on `<t>__history`. The same views
of one point for good, in a database of their own, are a pin (pins.py).
"""

import zlib
from typing import TYPE_CHECKING

from inlet.gold.generate import models
from inlet.publish.times import as_of_time, closing_times, time, time_of
from inlet.sql import literal
from inlet.sql import name as quoted
from inlet.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRANSACTIONS = "silver.transactions"
COMMITTED = (
    "Versions of {} that held when some transaction ended; those that their own transaction closed again are left out."
)
KEY = "key"  # the first column of `<t>__before_after`, a struct: the table's columns may be called as the others there
KEY_DESCRIPTION = "the row's key: of the after-image, else of the before-image; null where the change is of no row"
HELD = "Inlet has published two points while this query was planned. Run it again"


def shape(table: Table) -> tuple[int, int]:
    """A number that changes when the columns of a table's views, or what is said of them, change; and one that only
    columns change.
    """
    made = models(table)
    return zlib.crc32(repr((made, _key(table.gold_key))).encode()), zlib.crc32(
        repr([[c[:2] for c in columns] for _, _, columns, _ in made.values()]).encode()
    )


def write(spark: "SparkSession", table: Table, last, point, is_old_needed: bool, is_old_log_needed: bool) -> None:
    """Write a table's views so that they show the last point until `public._point` names the new one.

    In: contract; the last and the new point (publish.Point); whether the last point has to be read from its own
    versions, because the new ones do not hold it any more: those of past and current, and of the log.
    """
    name, our = table.name, Ours(table.ours)
    is_shape_new = last.table(name).shape != point.table(name).shape
    changes = _changes(table.gold_key)
    views = [("__before_after", "before_after", _union(name, last, point, is_old_log_needed, changes, Ours()))]
    if table.key:
        closed = closing_times("public", name, point, our)
        history = _history(_names(table, "history"), our, closed)
        views += [
            ("", "current", _union(name, last, point, is_old_needed, _live, our)),
            ("__history", "history", _union(name, last, point, is_old_needed, _versions, our, history) + closed),
        ]
    for end, of, body in views:
        exists = not is_shape_new and spark.catalog.tableExists(
            f"public.{name}{end}"
        )  # ALTER: CREATE OR REPLACE drops it for a moment
        spark.sql(
            (f"alter view public.{name}{end} as\n" if exists else _view(table, f"{name}{end}", f"{name}__{of}")) + body
        )
    if is_shape_new and table.key:
        committed = _view(table, f"{name}__committed", f"{name}__history", COMMITTED.format(table.table))
        _write_fixed(spark, "public", name, table.table, committed, _names(table, "history"), our, TRANSACTIONS)


def write_pinned(
    spark: "SparkSession", database: str, name: str, point, key: list[str], columns: list[str], ours: dict[str, str]
) -> None:
    """Write a table's views in a database of its own, so that they show one point for good. In: the point, whose
    `points` hold for all sources; the key and the columns of its version of `past`, none of a table without a key, and
    what those of ours are called among them."""
    title = f"comment {literal(f'{name} at published point {point.number}')}\nas\n"

    def view(end: str, names: str, body, our: Ours, closed: str = "") -> None:
        upto = Upto("pinned_point", _ends(name, point), our)
        rows = body(name, point, our, lambda condition, other="false": condition(upto))
        spark.sql(
            f"create or replace view {database}.{name}{end}\n{title}with {upto.sql}\nselect {names} from (\n{rows})"
            + closed
        )

    view("__before_after", "*", _changes(key), Ours())
    if columns:
        our = Ours(ours)
        versions = [
            n
            for column in columns
            for n in ([column, our.valid_from, our.valid_to] if column == our.valid_to_seq else [column])
        ]
        view("", "*", _live, our)
        closed = closing_times(database, name, point, our)
        view("__history", _history(versions, our, closed), _versions, our, closed)
        transactions = f"{TRANSACTIONS} version as of {point.transactions}"
        _write_fixed(
            spark,
            database,
            name,
            name,
            f"create or replace view {database}.{name}__committed\n{title}",
            versions,
            our,
            transactions,
        )


def _view(table: Table, name: str, model: str, description: str = "") -> str:
    _, of_model, columns, _ = models(table)[model]
    if model.endswith("__before_after") and table.key:
        columns = [(KEY, "", KEY_DESCRIPTION), *columns]
    title = ", ".join(quoted(n) + (f" comment {literal(d)}" if d else "") for n, _, d in columns)
    return (
        f"create or replace view public.{name} (\n  {title})\ncomment "
        f"{literal(f'{description or of_model} At the published point.')}\nas\n"
    )


class Ours:
    """What columns of ours are called in the versions of one table, as attributes. In: those that are not called as
    always (Table.ours).
    """

    def __init__(self, ours: dict[str, str] | None = None):
        self.ours = ours or {}

    def __getattr__(self, name: str) -> str:
        return self.ours.get(name, name)


def _history(names: list[str], our: Ours, closed: str) -> str:
    """The columns of a history. In: what `closing_times` joins."""
    times = {our.valid_from: time_of(our.valid_from_seq), our.valid_to: time_of(our.valid_to_seq)}
    if closed:
        times = {
            our.valid_from: time(our.valid_from_seq, our.change_timestamp),
            our.valid_to: time(our.valid_to_seq, "_closed_at"),
        }
    return ", ".join(f"{times[n]} as {n}" if n in times else quoted(n) for n in names)


def _union(name: str, last, point, is_old_needed: bool, body, our: Ours, columns: str = "*") -> str:
    """Both points in one body where the new versions hold both, else a body for each. In: body(table's name, point,
    our, when), where when(condition) is SQL that says what `condition` makes of the point that the query is at. Columns
    are named once at most: the text of a wide table's view must stay short (ADR 5)."""
    number, before = point.table(name).moved, last.table(name).moved or 0
    new = _ends(name, point)
    old = _ends(name, last) if is_old_needed else new | _moved_ends(name, last, point)
    next_, prior = Upto("next_point", new, our), Upto("last_point", old, our)

    def case(of_new, of_old) -> str:
        return (
            f"case (select coalesce(moved['{name}'], 0L) from public._point) when {number} then {of_new} when "
            f"{before} then {of_old} else raise_error({literal(HELD)}) end"
        )

    if is_old_needed:
        rows = (
            body(name, point, our, lambda condition, other="false": case(condition(next_), other))
            + "\nunion all\n"
            + body(name, last, our, lambda condition, other="false": case(other, condition(prior)))
        )
    else:
        rows = body(name, point, our, lambda condition, other="false": case(condition(next_), condition(prior)))
    return f"with {next_.sql},\n     {prior.sql}\nselect {columns} from (\n{rows})"


def _ends(name, point) -> dict[str, str]:
    """source -> change_seq up to which its changes count in the versions of a point. Sources that are left out count
    whole.
    """
    return {s: point.points.get(s, "") for s, seq in point.table(name).through.items() if seq > point.points.get(s, "")}


def _moved_ends(name: str, last, point) -> dict[str, str]:
    """The same for the sources that stood elsewhere at the last point."""
    through = last.table(name).through
    return {
        s: last.points.get(s, "")
        for s, seq in point.table(name).through.items()
        if (seq, point.points.get(s)) != (through.get(s), last.points.get(s))
    }


class Upto:
    """How far the changes of each source count at a point, as SQL. In: the name of the row that holds them, what it
    holds, and what our columns are called in the rows that are asked."""

    def __init__(self, name: str, ends: dict[str, str], our: Ours):
        self.ends, self.our = ends, our
        self.seq = f"coalesce((select ends from {name})[{our.source}], '~')" if ends else None
        self.least = min(ends.values(), default="")
        self.sql = f"{name} as (select {string_map(ends)} as ends)"

    def seen(self, seq: str) -> str:
        return f"{seq} <= {self.seq}" if self.seq else "true"

    def superseded(self) -> str:
        """Of a closed version: it was open at the point. The literal lets files be skipped."""
        our = self.our
        return (
            f"({our.valid_from_seq} <= {self.seq} and {our.valid_to_seq} > {self.seq} and {our.valid_to_seq} > "
            f"'{self.least}')"
            if self.seq
            else "false"
        )


def _of(name: str, step: str, point) -> str:
    return f"gold.{name}__{step} version as of {point.table(name).versions[step]}"


def _names(table: Table, model: str) -> list[str]:
    return [n for n, _, _ in models(table)[f"{table.name}__{model}"][2]]


def _live(name: str, point, our: Ours, when) -> str:
    return (
        f"select * from {_of(name, 'current', point)}\nwhere "
        f"{when(lambda upto: upto.seen(our.valid_from_seq))}\nunion all\n"
        f"select * except ({our.valid_to_seq}) from {_of(name, 'past', point)}\nwhere {when(Upto.superseded)}"
    )


def _versions(name: str, point, our: Ours, when) -> str:
    seen, to = f"where {when(lambda upto: upto.seen(our.valid_from_seq))}", our.valid_to_seq
    until = when(lambda upto: f"if({to} > {upto.seq}, null, {to})" if upto.seq else to, other="null")
    return (
        f"select * except ({to}), {until} as {to} from {_of(name, 'past', point)}\n{seen}\nunion all\n"
        f"select *, cast(null as string) as {to} from {_of(name, 'current', point)}\n{seen}"
    )


def _changes(key: list[str]):
    """What gives the rows of a log, each with its key. In: the key's columns in gold; none of a table without a key."""

    def changes(name: str, point, our: Ours, when) -> str:
        return (
            f"select {_key(key)}* from {_of(name, 'before_after', point)}\n"
            f"where {when(lambda upto: upto.seen('change_seq'))}"
        )

    return changes


def _key(columns: list[str]) -> str:
    """SQL for the key of a change, a struct, and the comma after it. A value that one image lacks is in the other."""
    members = ", ".join(f"{literal(n)}, coalesce(after.{quoted(n)}, before.{quoted(n)})" for n in columns)
    return f"if(coalesce(after, before) is null, null, named_struct({members})) as {KEY}, " if columns else ""


def _write_fixed(
    spark: "SparkSession",
    database: str,
    name: str,
    title: str,
    committed: str,
    columns: list[str],
    our: Ours,
    transactions: str,
) -> None:
    """What stands on the history and never changes with the point. In: what to call the table in comments; the view of
    committed versions up to its `as`; the columns of the history, and what ours are called there; silver.transactions,
    which tell where an id was used again between two changes."""
    history = f"{database}.{name}__history"
    at = f"{our.valid_from_seq} <= {{0}} and ({our.valid_to_seq} is null or {our.valid_to_seq} > {{0}})"
    spark.sql(
        committed + f"select {', '.join(f'h.{quoted(n)}' for n in columns)} from {history} h\n"
        "left anti join (select e.*, if(t.last_counter is null, null, t.first_change_seq) as begun_seq from "
        f"{database}.{name}__before_after e left join {transactions} t\n"
        "  on t.source = e.source and t.transaction_id = e.transaction_id and e.change_seq between "
        "t.first_change_seq and t.last_change_seq) e\n"
        f"on e.source = h.{our.source} and e.change_seq = h.{our.valid_to_seq} and "
        f"{same_transaction('h', 'e', our)} and coalesce(h.{our.valid_from_seq} >= e.begun_seq, true)"
    )
    spark.sql(
        f"create or replace function {database}.{name}_as_of(change_seq string comment 'a change_seq; first "
        "digits alone: before all that begin so')\nreturns table "
        f"comment {literal(f'Rows of {title} as of a change_seq.')}\nreturn select * from {history} "
        f"where if({name}_as_of.change_seq rlike '^[0-9]{{4,35}}$', {at.format(f'{name}_as_of.change_seq')}, "
        f"raise_error({literal(f'{name}_as_of takes a change_seq, or its first digits: YYYYMMDD and on')}))"
    )
    spark.sql(
        f"create or replace function {database}.{name}_at(time timestamp comment 'UTC, as sources tell "
        "it')\nreturns table "
        f"comment {literal(f'Rows of {title} as of a time.')}\nreturn "
        + as_of_time(history, f"{database}.{name}__before_after", f"{name}_at.time", at, our)
    )


def same_transaction(first: str, second: str, our: Ours = Ours()) -> str:  # noqa: B008  it is frozen
    """SQL: does a change behind another at the same key belong to its transaction? As the macro of this name. In: the
    relations that hold them, and what our columns are called in the first."""
    return (
        f"({first}.{our.transaction_id} = {second}.transaction_id and {first}.{our.transaction_last_event} is not true "
        f"and coalesce({first}.{our.transaction_event_counter} < {second}.transaction_event_counter, true))"
    )


def string_map(entries: dict[str, str]) -> str:
    return _map(entries, "string", literal)


def number_map(entries: dict[str, int]) -> str:
    return _map(entries, "bigint", "{}L".format)


def _map(entries: dict, type_: str, value_of) -> str:
    title = ", ".join(f"{literal(key)}, {value_of(value)}" for key, value in sorted(entries.items()))
    return f"map({title})" if title else f"cast(map() as map<string,{type_}>)"
