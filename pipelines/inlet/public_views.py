"""The SQL of the public views of one table.

`<t>` (live rows), `<t>__history` (versions) and `<t>__before_after` (changes) name Delta versions in literals, so nothing that gold
does later can be seen in them. Which point a query is at it learns from `public._point`; the optimiser folds the answer into
the plan, so the branch for the other point costs planning and no reading.

`<t>__committed`, and the functions `<t>_as_of(change_seq)` and `<t>_at(time)`, stand on `<t>__history`.
"""

import zlib

from inlet.generate import models

HELD = "Inlet has published two points while this query was planned. Run it again"


def shape(table) -> int:
    """A number that changes when the columns of a table's views, or what is said of them, change."""
    return zlib.crc32(repr(models(table)).encode())


def write(spark, table, last, point, is_old_needed: bool, is_old_log_needed: bool) -> None:
    """Write a table's views so that they show the last point until `public._point` names the new one.

    In: contract; the last and the new point (publish.Point); whether the last point has to be read from its own versions, because
    the new ones do not hold it any more: those of past and current, and of the log.
    """
    name = table.name
    current, history, log = (_view(table, f"{name}{end}", f"{name}__{of}") for end, of in
                             (("", "current"), ("__history", "history"), ("__before_after", "before_after")))
    times = {"valid_from": time_of("valid_from_seq"), "valid_to": time_of("valid_to_seq")}
    columns = ", ".join(f"{times[n]} as {n}" if n in times else f"`{n}`" for n in _names(table, "history"))
    spark.sql(current + _union(table, last, point, is_old_needed, _live))
    spark.sql(history + _union(table, last, point, is_old_needed, _versions, columns))
    spark.sql(log + _union(table, last, point, is_old_log_needed, _changes))
    if last.shapes.get(name) != point.shapes[name]:
        _write_fixed(spark, table)


def _view(table, name: str, model: str, description: str = "") -> str:
    _, of_model, columns, _ = models(table)[model]
    said = ", ".join(f"`{n}`" + (f" comment {text(d)}" if d else "") for n, _, d in columns)
    return f"create or replace view public.{name} (\n  {said})\ncomment {text(f'{description or of_model} At the published point.')}\nas\n"


def _union(table, last, point, is_old_needed: bool, body, columns: str = "*") -> str:
    """Both points in one body where the new versions hold both, else a body for each. In: body(contract, point, when), where
    when(condition) is SQL that says what `condition` makes of the point that the query is at. Columns are named once at most: the text
    of a wide table's view must stay short (ADR 5)."""
    number, before = point.moved[table.name], last.moved.get(table.name, 0)
    new = _ends(table, point)
    old = _ends(table, last) if is_old_needed else new | _moved_ends(table, last, point)
    next_, prior = Upto("next_point", new), Upto("last_point", old)

    def case(of_new, of_old) -> str:
        return (f"case (select coalesce(moved['{table.name}'], 0L) from public._point) when {number} then {of_new} when {before} then {of_old} "
                f"else raise_error('{HELD}') end")

    points = ",\n     ".join(f"{upto.name} as (select {string_map(upto.ends)} as ends)" for upto in (next_, prior))
    if is_old_needed:
        rows = (body(table, point, lambda condition, other="false": case(condition(next_), other)) + "\nunion all\n"
                + body(table, last, lambda condition, other="false": case(other, condition(prior))))
    else:
        rows = body(table, point, lambda condition, other="false": case(condition(next_), condition(prior)))
    return f"with {points}\nselect {columns} from (\n{rows})"


def _ends(table, point) -> dict[str, str]:
    """source -> change_seq up to which its changes count in the versions of a point. Sources that are left out count whole."""
    return {s: point.points.get(s, "") for s, seq in point.through.get(table.name, {}).items() if seq > point.points.get(s, "")}


def _moved_ends(table, last, point) -> dict[str, str]:
    """The same for the sources that stood elsewhere at the last point."""
    through = last.through.get(table.name, {})
    return {s: last.points.get(s, "") for s, seq in point.through.get(table.name, {}).items()
            if (seq, point.points.get(s)) != (through.get(s), last.points.get(s))}


class Upto:
    """How far the changes of each source count at a point, as SQL. In: the name of the row that holds them, and what it holds."""

    def __init__(self, name: str, ends: dict[str, str]):
        self.name, self.ends = name, ends
        self.seq = f"coalesce((select ends from {name})[source], '~')" if ends else None
        self.least = min(ends.values(), default="")

    def seen(self, seq: str) -> str:
        return f"{seq} <= {self.seq}" if self.seq else "true"

    def superseded(self) -> str:
        """Of a closed version: it was open at the point. The literal lets files be skipped."""
        return f"(valid_from_seq <= {self.seq} and valid_to_seq > {self.seq} and valid_to_seq > '{self.least}')" if self.seq else "false"


def _of(table, step: str, point) -> str:
    return f"gold.{table.name}__{step} version as of {point.versions[f'{table.name}__{step}']}"


def _names(table, model: str) -> list[str]:
    return [n for n, _, _ in models(table)[f"{table.name}__{model}"][2]]


def _live(table, point, when) -> str:
    return (f"select * from {_of(table, 'current', point)}\nwhere {when(lambda upto: upto.seen('valid_from_seq'))}\nunion all\n"
            f"select * except (valid_to_seq) from {_of(table, 'past', point)}\nwhere {when(Upto.superseded)}")


def _versions(table, point, when) -> str:
    seen = f"where {when(lambda upto: upto.seen('valid_from_seq'))}"
    until = when(lambda upto: f"if(valid_to_seq > {upto.seq}, null, valid_to_seq)" if upto.seq else "valid_to_seq", other="null")
    return (f"select * except (valid_to_seq), {until} as valid_to_seq from {_of(table, 'past', point)}\n{seen}\nunion all\n"
            f"select *, cast(null as string) as valid_to_seq from {_of(table, 'current', point)}\n{seen}")


def _changes(table, point, when) -> str:
    return f"select * from {_of(table, 'before_after', point)}\nwhere {when(lambda upto: upto.seen('change_seq'))}"


def _write_fixed(spark, table) -> None:
    """What stands on the history and never changes with the point."""
    history, names = f"public.{table.name}__history", _names(table, "history")
    at = "valid_from_seq <= {0} and (valid_to_seq is null or valid_to_seq > {0})"
    said = f"Rows of {table.table} as of"
    spark.sql(_view(table, f"{table.name}__committed", f"{table.name}__history",
                    f"Versions of {table.table} that held when some transaction ended; those that their own transaction closed again are left out.")
        + f"select {', '.join(f'h.`{n}`' for n in names)} from {history} h\n"
        "left join silver.transactions t on t.source = h.source and t.transaction_id = h.transaction_id and h.valid_from_seq between t.first_change_seq "
        "and t.last_change_seq\nwhere h.valid_to_seq is null or t.last_change_seq is null or h.valid_to_seq > t.last_change_seq")
    spark.sql(f"create or replace function public.{table.name}_as_of(change_seq string comment 'a change_seq, or its first digits')\nreturns table "
              f"comment {text(said + ' a change_seq.')}\nreturn select * from {history} where {at.format(f'{table.name}_as_of.change_seq')}")
    seq = f"(date_format(to_utc_timestamp({table.name}_at.time, current_timezone()), 'yyyyMMddHHmmssSS') || '~')"
    spark.sql(f"create or replace function public.{table.name}_at(time timestamp comment 'UTC, as sources tell it')\nreturns table "
              f"comment {text(said + ' a time.')}\nreturn select * from {history} where {at.format(seq)}")


def time_of(seq: str) -> str:
    """SQL for the time in a change_seq (YYYYMMDDHHmmSShh, UTC); null where a source's digits are no calendar time. Spark cannot
    read a fraction without a point before it."""
    return f"try_to_timestamp(substr({seq}, 1, 14) || '.' || substr({seq}, 15, 2) || '+0000', 'yyyyMMddHHmmss.SSZ')"


def string_map(entries: dict[str, str]) -> str:
    return _map(entries, "string", text)


def number_map(entries: dict[str, int]) -> str:
    return _map(entries, "bigint", "{}L".format)


def _map(entries: dict, type_: str, value_of) -> str:
    said = ", ".join(f"{text(key)}, {value_of(value)}" for key, value in sorted(entries.items()))
    return f"map({said})" if said else f"cast(map() as map<string,{type_}>)"


def text(words: str) -> str:
    return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"
