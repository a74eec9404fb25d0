"""Rejects whose record arrived again, good, in whatever unit: the same source, the same table where the reject names
one, the same place in the order. And rejects of files whose names give no place: the file arrived again under a name
that gives one.
"""

from collections import defaultdict
from collections.abc import Sequence
from operator import itemgetter

from inlet import lake
from inlet.bronze import guard, history
from inlet.bronze.history import History
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.codecs.results import CHECKPOINT
from inlet.config import Project
from inlet.errors import FILE_KINDS
from inlet.silver.batch import Batch, among, table_now
from inlet.silver.small_transactions import MAX_NAMES
from inlet.sql import literal, plain_among, plain_literal
from inlet.unit import place_in_file

NO_PLACE = "missing_change_seq"
OF_WHOLE_FILES = (NO_PLACE, "ambiguous_table", "ambiguous_layout")  # of which nothing was read
# another change stands at the place of these, or theirs is that of a whole unit
OTHERS = ("conflicting_duplicate", guard.KIND, *FILE_KINDS)
PLACE, RECORD = ("source", "change_seq"), ("unit_id", "unit_offset")
GLUED = "bad_column_count"  # a line of this kind may be a torn record and the next one, of which it has one place


def resolve(batch: Batch) -> None:
    """Mark rejects as resolved whose record is here, good, at their place in the order: those of earlier batches by
    what this one has brought, and its own by what it or an earlier batch has. Of codecs whose changes are made of
    several records the own ones stay: another record of their change is at their place. Doing it twice changes nothing.
    """
    columns = ["source", "change_seq", "batch_id", "unit_id", "unit_offset"]
    is_open = (
        f"resolved_by is null and change_seq is not null and kind not in ({', '.join(map(literal, (*OTHERS, GLUED)))})"
    )
    now, until = f"batch_id = {batch.batch_id}", f"batch_id <= {batch.batch_id}"
    of_sources = f"where {is_open} and {until} and {plain_among('source', batch.sources)}"
    rows = lake.peek(batch.project.lakehouse_path(), "silver.rejects", columns, of_sources)
    earlier = [row for row in rows if row["batch_id"] < batch.batch_id]
    _resolve(batch, f"{is_open} and batch_id < {batch.batch_id}", earlier, now)
    alone = {name for name in batch.sources if not offers(CODECS[batch.project.sources[name].codec], "join")}
    own = [row for row in rows if row["batch_id"] == batch.batch_id and row["source"] in alone]
    _resolve(batch, f"{is_open} and {now}", own, until)


def of_one_record(project: Project, rejects: list[dict]) -> tuple[list[dict], str]:
    """Rejects but for those that may be of several records: what could not be framed has the place of the first of its
    records. In: open rejects. Out: also SQL that leaves out the same.
    """
    units = sorted({row["unit_id"] for row in rejects})
    if not units:
        return rejects, ""
    is_unframed = f"where context like '%\"problem\"%' and {plain_among('unit_id', units)}"
    blocks = lake.peek(project.lakehouse_path(), "bronze.blocks", ["unit_id"], is_unframed)
    unframed = {row["unit_id"] for row in blocks}
    if not unframed:
        return rejects, ""
    is_single = f" and unit_id not in ({', '.join(map(literal, sorted(unframed)))})"
    return [row for row in rejects if row["unit_id"] not in unframed], is_single


def _resolve(batch: Batch, is_open: str, rejects: list[dict], of_batches: str) -> None:
    """In: SQL of the rejects, and these with their places; SQL of the batches whose changes and checkpoints are good.
    Spark is asked only where one of these stands at a reject's place."""
    answered_now = [
        row
        for at in range(0, len(rejects), MAX_NAMES)
        for row in _come_again(batch, rejects[at : at + MAX_NAMES], of_batches)
    ]
    rejects, is_single = of_one_record(batch.project, answered_now)
    if not rejects:
        return
    is_open += is_single
    places, sources = [row["change_seq"] for row in rejects], among(sorted({row["source"] for row in rejects}))
    between = f"change_seq between {literal(min(places))} and {literal(max(places))}"
    here = f"{of_batches} and {sources} and {between}"
    table, place = table_now(batch.project), "source, change_seq, unit_id, unit_offset"
    answered = f"""
        select distinct r.source, r.change_seq, r.unit_id, r.unit_offset
        from (select {place}, {table} as of_table from silver.rejects where {is_open} and {sources}) r join (
            select {place}, {table} as of_table from silver.changes where {here}
            union all
            select {place}, null from silver.control_events where kind = {literal(CHECKPOINT)} and {here}) c
          on r.source = c.source and r.change_seq = c.change_seq and coalesce(r.of_table = c.of_table, true)
            and not (r.unit_id = c.unit_id and r.unit_offset = c.unit_offset)"""
    batch.spark.sql(f"""
        merge into silver.rejects t using ({answered}) s
        on t.source = s.source and t.change_seq = s.change_seq and t.unit_id = s.unit_id
          and t.unit_offset = s.unit_offset and t.resolved_by is null and t.batch_id <= {batch.batch_id}
          and t.kind not in ({", ".join(map(literal, (*OTHERS, GLUED)))})
        when matched then update set resolved_by = {batch.batch_id}""")


def _come_again(batch: Batch, rejects: list[dict], of_batches: str) -> list[dict]:
    """The rejects at whose place a change or a checkpoint of some batches stands, from another record."""
    at = " and ".join(plain_among(name, {row[name] for row in rejects}) for name in PLACE)
    tables = {"silver.changes": "", "silver.control_events": f" and kind = {plain_literal(CHECKPOINT)}"}
    records = defaultdict[tuple, set[tuple]](set)
    for table, further in tables.items():
        where = f"where {of_batches} and {at}{further}"
        for row in lake.peek(batch.project.lakehouse_path(), table, [*PLACE, *RECORD], where):
            records[itemgetter(*PLACE)(row)].add(itemgetter(*RECORD)(row))
    return [row for row in rejects if records[itemgetter(*PLACE)(row)] - {itemgetter(*RECORD)(row)}]


def resolve_renamed(batch: Batch, files: Sequence[dict]) -> None:
    """Rejects of files without a place in the order, whose bytes this batch has read under another name, say so.
    In: its rows of bronze.files.
    """
    columns = ["source", "kind", "unit_id"]
    of_files = f"where resolved_by is null and kind in ({', '.join(map(literal, OF_WHOLE_FILES))})"
    unread: set[tuple[str, str]] = set()  # source and path of files that have such rejects
    unplaced: dict[tuple[str, str], set[str]] = {}  # and the units of those without a place
    for row in lake.peek(batch.project.lakehouse_path(), "silver.rejects", columns, of_files):
        if place := place_in_file(row["source"], row["unit_id"]):
            unread.add((row["source"], place[0]))
            if row["kind"] == NO_PLACE:
                unplaced.setdefault((row["source"], place[0]), set()).add(row["unit_id"])
    came = {
        (row["source"], row["sha256"])
        for row in files
        if row["sha256"] and not row["problem"] and (row["source"], row["path"]) not in unread
    }
    if not unplaced or not came:
        return
    sources, paths = ({place[n] for place in unplaced} for n in (0, 1))
    last = history.good(History(batch.project).of_files(sources, paths))
    renamed = [place for place in unplaced if place in last and (place[0], last[place]["sha256"]) in came]
    if units := sorted({unit for place in renamed for unit in unplaced[place]}):
        batch.spark.sql(f"""
            update silver.rejects set resolved_by = {batch.batch_id}
            where kind = {literal(NO_PLACE)} and resolved_by is null and batch_id < {batch.batch_id}
              and unit_id in ({", ".join(map(literal, units))})""")
