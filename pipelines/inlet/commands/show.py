"""`inlet show`: rows of a public table at the published point, read without Spark.

The same rows as the views `<t>`, `<t>__history`, `<t>__before_after` and the functions `<t>_at(time)` and
`<t>_at_checkpoint(checkpoint)`, from the Delta versions that gold.published names. Free SQL is
Spark's alone (`inlet sql`).
"""

from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from inlet import change, lake, publish, storage
from inlet.config import Project
from inlet.errors import ConfigError, InletError
from inlet.fields import variant
from inlet.fields.fit import fit
from inlet.fields.wrong import Wrong
from inlet.lake import managed
from inlet.log import counted
from inlet.publish import checkpoints
from inlet.sql import plain_among, plain_literal
from inlet.table import Table
from inlet.unit import place_in_file

if TYPE_CHECKING:
    import pyarrow as pa

VIEWS, IMAGES = ("live", "history", "changes"), ("before", "after")
MOST_NAMED = 1000  # changes that a query asks for one by one
NOT_SUPPLIED = ("missing", "lob_incomplete")  # states of a column that its change leaves as it was
# what the engine that reads calls a type of Spark, where it differs
TYPES = {"string": "varchar", "float": "real", "binary": "bytea", "timestamp_ntz": "timestamp"}
UNTIMED = f"change_seq < '{change.FIRST_TIMED}'"  # SQL: its place tells no time
OWN_TIMES = ("_from_at", "_to_at")  # columns behind those of a history, where some place tells no time
CHANGES = (
    *("source", "change_seq", "operation", *IMAGES, "changed", "not_supplied", "transaction_id"),
    *("unit_id", "unit_offset"),
)


class Shown(NamedTuple):
    columns: list[str]
    rows: list[tuple]
    is_more: bool


def show(
    project: Project,
    table: Table,
    view: str = "live",
    key: list[str] | None = None,
    at: str | None = None,
    limit: int = 20,
    source: str | None = None,
    has_header: bool = False,
    checkpoint: str | None = None,
) -> Shown:
    """Rows of one table, by key and time. In: which of VIEWS; values of the key's columns, or of the first of them, in
    the contract's order; a time in UTC as of which rows are shown; how many rows at most, 0 for all; a source, whose
    rows alone are shown; whether each change has its `header` of silver; the name of a checkpoint as of which rows are
    shown, those of each source as of its last one up to the point. Out: rows by key and place, structs as dicts.

    Raises: ConfigError where the table is not published, or where the key, the time or the checkpoint cannot be meant.
    """
    point = publish.newest(project) or {"versions": [], "points": []}
    versions, ends = dict(point["versions"]), dict(point["points"])
    if f"{table.name}__before_after" not in versions:
        raise ConfigError(
            f"{table.name} is not published yet", "`inlet run` does; `inlet status` says what is waited for"
        )
    if not table.key and (view != "changes" or key):
        raise ConfigError(table.without_key, "Ask for its --changes")
    at_checkpoint = None if checkpoint is None else checkpoints.named(project, point, checkpoint, source)
    if at_checkpoint is not None:
        _check_fed(project, table, checkpoint, at_checkpoint)
        ends = {name: seq for name, seq in ends.items() if name in at_checkpoint}
    elif source:
        ends = {name: seq for name, seq in ends.items() if name == source}
    untimed = sorted(name for name, seq in ends.items() if seq < change.FIRST_TIMED)
    steps = ("before_after",) if view == "changes" else ("current", "past", *(("before_after",) if untimed else ()))
    places = {step: (f"gold.{table.name}__{step}", versions[f"{table.name}__{step}"]) for step in steps}
    name = "source" if view == "changes" else table.our("source")
    until = None if at is None else _until(project, places, at, untimed, name)
    if at_checkpoint is not None:
        until = _end(at_checkpoint, _name(name))
    query = (
        _changes(table, key or [], until, ends) if view == "changes" else _versions(table, view, key or [], until, ends)
    )
    if view == "history" and untimed:
        query = _with_own_times(table, query)
    found = _read(project, places, query, limit)
    if has_header and view == "changes":
        return with_headers(project, found)
    return _with_times(table, found) if view == "history" else found


def _check_fed(project: Project, table: Table, checkpoint: str | None, at_checkpoint: dict[str, str]) -> None:
    """Raises: ConfigError where no source that feeds a table has a checkpoint."""
    columns = ["table_name", "source"]
    rows = lake.peek(
        project.lakehouse_path(), "gold.applied", columns, f"where table_name = {plain_literal(table.name)}"
    )
    fed_by = {row["source"] for row in rows}
    if fed_by and fed_by.isdisjoint(at_checkpoint):
        raise ConfigError(
            f"Checkpoint {checkpoint} is of {', '.join(sorted(at_checkpoint))}, and {table.name} is fed by "
            f"{', '.join(sorted(fed_by))}",
            "Name a checkpoint of a source that feeds it, or say --at a time",
        )


def with_headers(project: Project, found: Shown) -> Shown:
    """Changes with the header that silver keeps of each, as a dict."""
    kept, at = _in_silver(project, found, found.rows, ["header"]), _place(found)
    headers = {place: variant.decode(**row["header"]) for place, row in kept.items() if row["header"]}
    return Shown([*found.columns, "header"], [(*row, headers.get(at(row))) for row in found.rows], found.is_more)


def as_supplied(project: Project, table: Table, found: Shown) -> Shown:
    """Changes whose images lack what their source did not supply, where gold has null for it as for SQL NULL. Silver
    tells the two apart. In: changes as `show` gives them."""
    at, images = _place(found), [found.columns.index(name) for name in IMAGES]
    unclear = [row for row in found.rows if any(row[n] and None in row[n].values() for n in images)]
    kept = _in_silver(project, found, unclear, [*IMAGES, "table_version", "column_states"])
    members = {
        version.version: [(name, then.name) for name, then in table.columns_in(version).items() if then]
        for version in table.versions
    }
    rows = []
    for row in found.rows:
        told = list(row)
        if sent := kept.get(at(row)):
            own = members.get(sent["table_version"], members[table.version])
            states = dict(sent["column_states"] or ())
            for n, name in zip(images, IMAGES):
                image = variant.decode(**sent[name]) if sent[name] else {}
                supplied = {gold for gold, was in own if was in image and states.get(was) not in NOT_SUPPLIED}
                told[n] = row[n] and {k: v for k, v in row[n].items() if v is not None or k in supplied}
        rows.append(tuple(told))
    return Shown(found.columns, rows, found.is_more)


def with_files(project: Project, found: Shown) -> Shown:
    """Changes with the file that each came from and its place there: a byte, or the ordinal of a row or a message. Of
    a broker's messages, topic and partition, and the offset."""
    at = itemgetter(*(found.columns.index(name) for name in ("source", "unit_id", "unit_offset")))
    rows = [(*row, *_file(project, *at(row))) for row in found.rows]
    return Shown([*found.columns, "file", "file_offset"], rows, found.is_more)


def _file(project: Project, name: str, unit_id: str | None, offset: int | None) -> tuple[str | None, int | None]:
    if unit_id is None:  # an added column comes from the contract
        return None, None
    if piece := place_in_file(name, unit_id):
        return piece[0], piece[1] + (offset or 0)
    topic, partition, number = unit_id.removeprefix(f"{name}/").rsplit("/", 2)
    source = project.sources.get(name)
    is_file = source is not None and source.transport in ("lines", "json", "avro", "whole_file")
    return topic if is_file else f"{topic}/{partition}", int(number.partition("~")[0])


def _place(found: Shown):
    """What tells the place in the order, (source, change_seq), of a row."""
    return itemgetter(found.columns.index("source"), found.columns.index("change_seq"))


def _in_silver(project: Project, found: Shown, rows: list[tuple], columns: list[str]) -> dict[tuple[str, str], dict]:
    """What silver's columns hold of some of the changes that were found, by their place."""
    seqs: dict[str, set[str]] = {}
    for source, seq in map(_place(found), rows):
        seqs.setdefault(source, set()).add(seq)
    kept = {}
    for source, wanted in seqs.items():
        least, greatest = plain_literal(min(wanted)), plain_literal(max(wanted))
        where = f"where source = {plain_literal(source)} and change_seq between {least} and {greatest}"
        if len(wanted) <= MOST_NAMED:
            where += f" and {plain_among('change_seq', wanted)}"
        for row in lake.peek(project.lakehouse_path(), "silver.changes", ["change_seq", *columns], where):
            if row["change_seq"] in wanted:
                kept[source, row["change_seq"]] = row
    return kept


def _until(project: Project, places: dict, at: str, untimed: list[str], source: str) -> str:
    """SQL for the place in a row's source up to which changes count at a time. A source whose order tells no time has
    its changes before the first one, in its order, that is later (docs/adr/0014). In: the name of the row's source."""
    time, seq = _time_and_seq(at)
    if not untimed:
        return plain_literal(seq)
    query = (
        f"select source, min(change_seq) from before_after where {UNTIMED} and change_timestamp > "
        f"arrow_cast({plain_literal(time.isoformat())}, 'Timestamp(Microsecond, Some(\"UTC\"))') group by source"
    )
    later = dict(_read(project, {"before_after": places["before_after"]}, query, 0).rows)
    before = {name: f"{int(later[name]) - 1:0{change.LEN_SEQ}d}" if name in later else "~" for name in untimed}
    cases = " ".join(f"when {plain_literal(name)} then {plain_literal(place)}" for name, place in before.items())
    return f"(case {_name(source)} {cases} else {plain_literal(seq)} end)"


def _with_own_times(table: Table, query: str) -> str:
    """SQL for versions with the own times of the changes that began and ended them, where their places tell none."""
    source, seqs = _name(table.our("source")), [table.our(name) for name in ("valid_from_seq", "valid_to_seq")]
    joins = "".join(
        f"\nleft join (select source, change_seq, change_timestamp as at from before_after where {UNTIMED}) t{n} "
        f"on t{n}.source = v.{source} and t{n}.change_seq = v.{_name(seq)}"
        for n, seq in enumerate(seqs)
    )
    order = ", ".join(f"v.{_name(name)}" for name in (table.our("source"), *table.gold_key, seqs[0]))
    return f"select v.*, t0.at as {OWN_TIMES[0]}, t1.at as {OWN_TIMES[1]} from ({query}) v{joins}\norder by {order}"


def _with_times(table: Table, found: Shown) -> Shown:
    """Versions with the times in the places where they began and ended, or, of places without, those of the changes."""
    names = [table.our(name) for name in ("valid_from", "valid_to")]
    seqs = [found.columns.index(table.our(name)) for name in ("valid_from_seq", "valid_to_seq")]
    num = len(found.columns) - len(OWN_TIMES) * (OWN_TIMES[0] in found.columns)
    rows = [
        (*row[:num], *(time_of(row[at]) or own for at, own in zip(seqs, row[num:] or (None, None))))
        for row in found.rows
    ]
    return Shown([*found.columns[:num], *names], rows, found.is_more)


def time_of(seq: str | None) -> datetime | None:
    """The time in a change_seq, in UTC; None where its digits are no calendar time."""
    try:
        return seq and datetime.strptime(seq[:16] + "0000+0000", "%Y%m%d%H%M%S%f%z") or None
    except ValueError:
        return None


def _read(project: Project, places: dict[str, tuple[str, int]], query: str, limit: int) -> Shown:
    import deltalake
    import pyarrow as pa

    if limit:
        query += f"\nlimit {limit + 1}"
    builder = lake.query_builder()
    try:
        if storage.is_managed(project.lakehouse_path()):
            return _shown(managed.through_spark(query, places), limit)
        for name, (table, version) in places.items():
            path = lake.table_path(project.lakehouse_path(), table)
            builder = builder.register(name, lake.open_table(path, version=version))
        return _shown(pa.table(builder.execute(query).read_all()), limit)
    except deltalake.exceptions.DeltaError as error:
        words = str(error).splitlines()[0]
        raise InletError(f"It cannot be read without Spark: {words}", "`inlet sql` asks the same views") from error


def _shown(found: "pa.Table", limit: int) -> Shown:
    rows = [tuple(row.values()) for row in found.to_pylist()]
    return Shown(found.column_names, rows[:limit] if limit else rows, bool(limit) and len(rows) > limit)


def _versions(table: Table, view: str, key: list[str], until: str | None, ends: dict[str, str]) -> str:
    """SQL for the versions that a point shows of a table, or those that were live at a place in the order."""
    source, from_seq, to_seq = (_name(table.our(name)) for name in ("source", "valid_from_seq", "valid_to_seq"))
    end = _end(ends, source)
    where = [f"{from_seq} <= {end}", *(f"{_name(n)} = {v}" for n, v in _key(table, key))]
    if view == "live" and not until:
        where.append(f"({to_seq} is null or {to_seq} > {end})")
    if until:
        where += [f"{from_seq} <= {until}", f"({to_seq} is null or {to_seq} > {until})"]
    own = [_name(column.gold_name) for column in table.columns]
    columns = ", ".join([source, *own, _name(table.our("not_supplied")), from_seq])
    ends_at = f", case when {to_seq} <= {end} then {to_seq} end as {to_seq}" if view == "history" else ""
    order = ", ".join([source, *map(_name, table.gold_key), from_seq])
    return f"""
        select {columns}{ends_at} from (
          select {columns}, {to_seq} from past
          union all
          select {columns}, cast(null as string) as {to_seq} from "current")
        where {" and ".join(where)}
        order by {order}"""


def _changes(table: Table, key: list[str], until: str | None, ends: dict[str, str]) -> str:
    """SQL for the changes that a point shows of a table: those of a key in either image. The marks that full loads
    have ended are no changes."""
    where = ["operation <> 'LOAD_END'", f"change_seq <= {_end(ends, 'source')}"] + (
        [f"change_seq <= {until}"] if until else []
    )
    if key:
        images = [
            "(" + " and ".join(f"{of}[{plain_literal(n)}] = {v}" for n, v in _key(table, key)) + ")" for of in IMAGES
        ]
        where.append(f"({' or '.join(images)})")
    members = ", ".join(
        f"{plain_literal(n)}, coalesce(after[{plain_literal(n)}], before[{plain_literal(n)}])" for n in table.gold_key
    )
    keyed = f"case when after is not null or before is not null then named_struct({members}) end as key, "
    columns = (keyed if table.key else "") + ", ".join(map(_name, CHANGES))
    return f"select {columns} from before_after where {' and '.join(where)} order by source, change_seq"


def _end(ends: dict[str, str], source: str) -> str:
    """SQL for the change_seq up to which a row's source is public."""
    cases = " ".join(f"when {plain_literal(name)} then {plain_literal(seq)}" for name, seq in sorted(ends.items()))
    return f"(case {source} {cases} else '' end)" if cases else "''"


def _key(table: Table, values: list[str]) -> list[tuple[str, str]]:
    """(column of gold, SQL for its value) of a key. Raises: ConfigError."""
    if len(values) > len(table.key):
        raise ConfigError(
            f"The key of {table.name} is {', '.join(table.key)}, found {counted(len(values), 'value')}",
            f"Say --key {len(table.key)} times, in this order, or fewer for all rows that begin so",
        )
    found = []
    for name, value in zip(table.key, values):
        column = table.column(name)
        try:
            fit(value, column.type, column.encoding)
        except Wrong as wrong:
            raise ConfigError(
                f"--key: {wrong.expected} for {name}, found {value!r}", "Give a value of the key"
            ) from wrong
        text = f"decode({plain_literal(value)}, 'hex')" if column.type == "binary" else plain_literal(value)
        found.append((column.gold_name, f"cast({text} as {TYPES.get(column.type, column.type)})"))
    return found


def _time_and_seq(time: str) -> tuple[datetime, str]:
    """A time in UTC, and what all change_seq up to it are not greater than. Raises: ConfigError.

    >>> _time_and_seq("2026-01-05 18:00")[1]
    '2026010518000000~'
    """
    try:
        at = datetime.fromisoformat(time)
    except ValueError as error:
        raise ConfigError(f"--at: expected a time in UTC, found {time!r}", "Write 2026-01-05 18:00:00") from error
    at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    return at, f"{at:%Y%m%d%H%M%S}{at.microsecond // 10_000:02d}~"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
