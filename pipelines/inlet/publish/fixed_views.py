"""The SQL of what stands on a table's two moving views (views.py), and is written only where its columns change: live
rows, history, committed versions and the functions; and all views of a pin.
"""

from typing import TYPE_CHECKING

from inlet.publish.times import as_of_time, closing_times, time, time_of
from inlet.publish.views import (
    TRANSACTIONS,
    Ours,
    Upto,
    changes,
    columns_of,
    ends,
    live_column,
    title,
    versions,
    versions_view,
)
from inlet.sql import literal
from inlet.sql import name as quoted
from inlet.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITTED = (
    "Versions of {} that held when some transaction ended; those that their own transaction closed again are left out."
)


def statements(table: Table, point) -> list[list[str]]:
    """Statements for what stands on the views that move, and is written only where a table's shape is another. Those of
    a list are independent, and read what the list before it has made."""
    if not table.key:
        return []
    name, our, is_live = table.name, Ours(table.ours), live_column(columns_of(table, "history"))
    base, names = versions_view("public", name, point.table(name).shape), columns_of(table, "history")
    committed = title(table, f"{name}__committed", f"{name}__history", COMMITTED.format(table.table))
    return [
        [
            title(table, name, f"{name}__current") + _live(base, our, is_live),
            title(table, f"{name}__history", f"{name}__history")
            + _history(base, names, our, closing_times("public", name, point, our)),
        ],
        _on_history("public", name, table.table, committed, names, our, TRANSACTIONS),
    ]


def write_pinned(
    spark: "SparkSession", database: str, name: str, point, key: list[str], columns: list[str], ours: dict[str, str]
) -> None:
    """Write a table's views in a database of its own, so that they show one point for good. In: the point, whose
    `points` hold for all sources; the key and the columns of its version of `past`, none of a table without a key, and
    what those of ours are called among them."""

    def pinned(view: str) -> str:
        comment = literal(f"{name} at published point {point.number}")
        return f"create or replace view {view}\ncomment {comment}\nas\n"

    def rows(body, our: Ours) -> str:
        upto = Upto("pinned_point", ends(name, point), our)
        of_point = body(name, point, our, lambda condition, other="false": condition(upto))
        return f"with {upto.sql}\nselect * from (\n{of_point})"

    spark.sql(pinned(f"{database}.{name}__before_after") + rows(changes(key), Ours()))
    if not columns:
        return
    our, is_live, base = Ours(ours), live_column(columns), versions_view(database, name)
    names = [
        n
        for column in columns
        for n in ([column, our.valid_from, our.valid_to] if column == our.valid_to_seq else [column])
    ]
    closed = closing_times(database, name, point, our)
    for statement in (
        pinned(base) + rows(versions(is_live), our),
        pinned(f"{database}.{name}") + _live(base, our, is_live),
        pinned(f"{database}.{name}__history") + _history(base, names, our, closed),
        *_on_history(
            database,
            name,
            name,
            pinned(f"{database}.{name}__committed"),
            names,
            our,
            f"{TRANSACTIONS} version as of {point.transactions}",
        ),
    ):
        spark.sql(statement)


def _live(base: str, our: Ours, is_live: str) -> str:
    return f"select * except ({our.valid_to_seq}, {is_live}) from {base} where {is_live}"


def _history(base: str, names: list[str], our: Ours, closed: str) -> str:
    """A history. In: its columns, and what `closing_times` joins."""
    times = {our.valid_from: time_of(our.valid_from_seq), our.valid_to: time_of(our.valid_to_seq)}
    if closed:
        times = {
            our.valid_from: time(our.valid_from_seq, our.change_timestamp),
            our.valid_to: time(our.valid_to_seq, "_closed_at"),
        }
    columns = ", ".join(f"{times[n]} as {n}" if n in times else quoted(n) for n in names)
    return f"select {columns} from {base}{closed}"


def _on_history(
    database: str, name: str, title: str, committed: str, columns: list[str], our: Ours, transactions: str
) -> list[str]:
    """Statements for what stands on the history and never changes with the point. In: what to call the table in
    comments; the view of committed versions up to its `as`; the columns of the history, and what ours are called there;
    silver.transactions, which tell where an id was used again between two changes."""
    history = f"{database}.{name}__history"
    at = f"{our.valid_from_seq} <= {{0}} and ({our.valid_to_seq} is null or {our.valid_to_seq} > {{0}})"
    return [
        committed + f"select {', '.join(f'h.{quoted(n)}' for n in columns)} from {history} h\n"
        "left anti join (select e.*, if(t.last_counter is null, null, t.first_change_seq) as begun_seq from "
        f"{database}.{name}__before_after e left join {transactions} t\n"
        "  on t.source = e.source and t.transaction_id = e.transaction_id and e.change_seq between "
        "t.first_change_seq and t.last_change_seq) e\n"
        f"on e.source = h.{our.source} and e.change_seq = h.{our.valid_to_seq} and "
        f"{same_transaction('h', 'e', our)} and coalesce(h.{our.valid_from_seq} >= e.begun_seq, true)",
        f"create or replace function {database}.{name}_as_of(change_seq string comment 'a change_seq; first "
        "digits alone: before all that begin so')\nreturns table "
        f"comment {literal(f'Rows of {title} as of a change_seq.')}\nreturn select * from {history} "
        f"where if({name}_as_of.change_seq rlike '^[0-9]{{4,35}}$', {at.format(f'{name}_as_of.change_seq')}, "
        f"raise_error({literal(f'{name}_as_of takes a change_seq, or its first digits: YYYYMMDD and on')}))",
        f"create or replace function {database}.{name}_at(time timestamp comment 'UTC, as sources tell "
        "it')\nreturns table "
        f"comment {literal(f'Rows of {title} as of a time.')}\nreturn "
        + as_of_time(history, f"{database}.{name}__before_after", f"{name}_at.time", at, our),
    ]


def same_transaction(first: str, second: str, our: Ours = Ours()) -> str:  # noqa: B008  it is frozen
    """SQL: does a change after another at the same key belong to its transaction? As the macro of this name. In: the
    relations that hold them, and what our columns are called in the first."""
    return (
        f"({first}.{our.transaction_id} = {second}.transaction_id and {first}.{our.transaction_last_event} is not true "
        f"and coalesce({first}.{our.transaction_event_counter} < {second}.transaction_event_counter, true))"
    )
