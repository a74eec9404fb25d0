"""The SQL of the public views of one table.

`<t>__before_after` (changes) and `_<t>__versions` name Delta versions in literals, so nothing that gold does later can
be seen in them. Which point a query is at it learns from `public._point`; the optimiser folds the answer into the plan,
so the branch for the other point costs planning and no reading. These two are all that a point alters.

`<t>` (live rows) and `<t>__history` (versions) stand on `_<t>__versions`; `<t>__committed`, and the functions
`<t>_as_of(change_seq)` and `<t>_at(time)`, on `<t>__history`. The same views of one point for good, in a database of
their own, are a pin (pins.py).
"""

import zlib
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from inlet.gold.generate import models
from inlet.lake import engine, entries
from inlet.sql import literal
from inlet.sql import name as quoted
from inlet.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRANSACTIONS = "silver.transactions"
VERSIONS = "Versions of {} at the published point, and which of them are live rows: what its public views stand on."
FORM = 2  # of the views' texts: another number has all of them written again
KEY = "key"  # the first column of `<t>__before_after`, a struct: the table's columns may be called as the others there
KEY_DESCRIPTION = "the row's key: of the after-image, else of the before-image; null where the change is of no row"
HELD = "Inlet has published two points while this query was planned. Run it again"


def shape(table: Table, is_untimed: bool = False) -> tuple[int, int]:
    """A number that changes when the columns of a table's views, or what is said of them, change; and one that only
    columns change. In: `times.is_untimed` of the table at the point.
    """
    made = models(table)
    return zlib.crc32(repr((made, _key(table.gold_key), is_untimed, FORM)).encode()), zlib.crc32(
        repr([[c[:2] for c in columns] for _, _, columns, _ in made.values()]).encode()
    )


class View(NamedTuple):
    """A view whose body moves with the point."""

    name: str
    title: str  # its CREATE OR REPLACE, up to `as`
    body: str
    exists: bool  # with the columns that it is to have: then it is altered; CREATE OR REPLACE drops it for a moment


def is_made(name: str, last, point) -> bool:
    """True if a table's views exist and have the columns that they are to have."""
    return last.table(name).moved is not None and last.table(name).shape == point.table(name).shape


def moving(table: Table, last, point, needs_old: dict[str, bool]) -> list[View]:
    """The views to write so that a table's views show the last point until `public._point` names the new one.

    In: contract; the last and the new point (publish.Point); by `before_after` and `past` whether the last point has to
    be read from its own versions, because the new ones do not hold it any more: those of the log, of past and current.
    """
    name, our, exists = table.name, Ours(table.ours), is_made(table.name, last, point)
    log = f"{name}__before_after"
    body = _union(name, last, point, needs_old["before_after"], changes(table.gold_key), Ours())
    views = [View(f"public.{log}", title(table, log, log), body, exists)]
    if table.key:
        base = versions_view("public", name, point.table(name).shape)
        of_base = f"create or replace view {base}\ncomment {literal(VERSIONS.format(table.table))}\nas\n"
        body = _union(name, last, point, needs_old["past"], versions(live_column(columns_of(table, "history"))), our)
        views.append(View(base, of_base, body, exists))
    return views


def write(spark: "SparkSession", view: View) -> None:
    """Write a view that moves. One that somebody has dropped is made again."""
    from pyspark.errors import AnalysisException

    if view.exists:
        try:
            if entries.are_ours(spark):
                entries.alter_view(spark, view.name, view.body)
            else:
                spark.sql(f"alter view {view.name} as\n{view.body}")
            return
        except AnalysisException:
            if engine.has_table(spark, view.name):
                raise
    spark.sql(view.title + view.body)


def former(name: str, last) -> list[str]:
    """Statements that drop what views of another shape stood on."""
    before = last.table(name)
    return [f"drop view if exists {versions_view('public', name, before.shape)}"] if before.moved is not None else []


def versions_view(database: str, name: str, shape: int | None = None) -> str:
    """The view that a table's live rows and history stand on; one of another shape may lack their columns."""
    return f"{database}._{name}__versions" + (f"_{shape}" if shape is not None else "")


def title(table: Table, name: str, model: str, description: str = "") -> str:
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


def live_column(columns: list[str]) -> str:
    """A name for the column that says which versions are live rows; none of the table's columns has it."""
    return next(name for n in count(1) if (name := "_" * n + "is_live") not in columns)


def _union(name: str, last, point, is_old_needed: bool, body, our: Ours) -> str:
    """Both points in one body where the new versions hold both, else a body for each. In: body(table's name, point,
    our, when), where when(condition) is SQL that says what `condition` makes of the point that the query is at. No
    column is named: the text of a wide table's view must stay short (ADR 5)."""
    number, before = point.table(name).moved, last.table(name).moved or 0
    new = ends(name, point)
    old = ends(name, last) if is_old_needed else new | _moved_ends(name, last, point)
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
    return f"with {next_.sql},\n     {prior.sql}\nselect * from (\n{rows})"


def ends(name, point) -> dict[str, str]:
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
        to = self.our.valid_to_seq
        return f"({to} > {self.seq} and {to} > '{self.least}')" if self.seq else "false"


def _of(name: str, step: str, point) -> str:
    return f"gold.{name}__{step} version as of {point.table(name).versions[step]}"


def columns_of(table: Table, model: str) -> list[str]:
    return [n for n, _, _ in models(table)[f"{table.name}__{model}"][2]]


def versions(is_live: str):
    """What gives a table's versions, each with the column that says whether it is a live row. The optimiser folds that
    to a literal, so live rows alone read nothing of past where all of it was closed at the point."""

    def versions(name: str, point, our: Ours, when) -> str:
        seen, to = f"where {when(lambda upto: upto.seen(our.valid_from_seq))}", our.valid_to_seq
        until = when(lambda upto: f"if({to} > {upto.seq}, null, {to})" if upto.seq else to, other="null")
        return (
            f"select * except ({to}), {until} as {to}, {when(Upto.superseded)} as {is_live} from "
            f"{_of(name, 'past', point)}\n{seen}\nunion all\n"
            f"select *, cast(null as string) as {to}, true as {is_live} from {_of(name, 'current', point)}\n{seen}"
        )

    return versions


def changes(key: list[str]):
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


def string_map(entries: dict[str, str]) -> str:
    return _map(entries, "string", literal)


def number_map(entries: dict[str, int]) -> str:
    return _map(entries, "bigint", "{}L".format)


def _map(entries: dict, type_: str, value_of) -> str:
    title = ", ".join(f"{literal(key)}, {value_of(value)}" for key, value in sorted(entries.items()))
    return f"map({title})" if title else f"cast(map() as map<string,{type_}>)"
