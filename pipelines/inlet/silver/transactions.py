"""silver.transactions: one row per source transaction, from the changes that are there.

A transaction is an id *and* its first change_seq, because sources use ids again within minutes: a run of changes of one
id begins at each change with counter 1, and behind each last event. It is complete when its last event was seen and
there are as many events as that event's counter says, each with a counter of its own; records of tables that nobody
wants are events, too, and others that are no changes (results.event_detail). It is `impossible` where the last event
was seen and others are missing, or two say the same; a change that comes late may still fix it. Most transactions of a
batch are whole in it and are simply appended; only ids that are not, or that begin twice, are looked up in all of
silver and told apart there.

Codecs with `TELLS_FIRST` say which event is the first and which the last, but count those alone whose transaction began
in the same unit. A transaction with others is complete when its first and its last event were seen, the counters that
there are have no gap, and no record between the two is rejected: nobody can say that it was not one of its events.
"""

from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from inlet import lake, storage
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.config import Project
from inlet.lake import engine
from inlet.silver import small_transactions, whole_transactions
from inlet.silver.batch import Batch
from inlet.sql import literal
from inlet.unit import OFFSET

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUM_SMALL = small_transactions.MAX_ROWS  # changes of a batch, up to which all are looked at in plain Python
EVENTS = """
select source, transaction_id, change_seq, change_seq as last_change_seq, transaction_event_counter as first_counter,
       transaction_event_counter as last_counter, transaction_last_event as is_last, 1L as num_events,
       concat(source_schema, '.', source_table) as table, batch_id
from silver.changes
where {rows} and transaction_id is not null and operation <> 'REFRESH'
"""
IGNORED = "ignored"  # kind of a control event: records of a table that is not wanted
OTHERS = """              -- and records that are no changes, as of tables that nobody wants; not those decoded again
union all
select source, e.transaction_id, e.first_change_seq, e.last_change_seq, e.first_counter, e.last_counter, e.is_last,
       cast(e.records as bigint), null, batch_id
from (
  select *, from_json(detail, 'records bigint, transaction_id string, first_counter bigint, last_counter bigint, '
           || 'is_last boolean, first_change_seq string, last_change_seq string') as e
  from silver.control_events where {rows} and kind in ({kinds}) and detail like '%"transaction_id"%') i
where e.transaction_id is not null and e.first_change_seq is not null     -- the feed's own text may have such a member
  and not exists (select 1 from bronze.replays p
      where p.source = i.source and p.unit_id = i.unit_id and p.unit_offset = i.unit_offset
        and p.rejected_in = i.batch_id)
  and not exists (select 1 from bronze.files f              -- nor of a file as it was before it was read again
      where f.source = i.source and regexp_replace(i.unit_id, '{OFFSET}', '') = concat(f.source, '/', f.path, '@')
        and f.ofs_start = 0 and f.num_units > 0 and f.problem is null
        and f.batch_id > i.batch_id)
"""
RUNS = """
select source, transaction_id, min(change_seq) as first_change_seq, max(last_change_seq) as last_change_seq,
       count(table) as num_changes, max(last_counter) as last_counter,
       array_sort(collect_set(table)) as tables,
       case when max(last_counter) is null and not {tells_first} then null
            when sum(if(first_counter is null, 0, num_events)) = max(last_counter)
                 and (count(first_counter) = count(*) or {tells_first})
                 and count(distinct first_counter) = count(first_counter)
                 and count_if(is_last) = 1
                 and min_by(first_counter, change_seq) = 1
                 and max_by(is_last, change_seq) then 'complete'
            when count_if(is_last) > 0 or count(distinct first_counter) < count(first_counter) then 'impossible'
            else 'open' end as state,
       max(batch_id) as batch_id, count(first_counter) = count(*) as is_counted
from {events}
group by source, transaction_id, run
"""
UNDECIDED = """             -- records that are rejected, or wait for others
select source, change_seq, batch_id, resolved_by from silver.rejects
where {tells_first} and change_seq is not null and kind <> 'conflicting_duplicate'
union all
select source, change_seq, min(batch_id), if(max_by(is_settled, (batch_id, is_settled)), max(batch_id), null)
from silver.waiting where {tells_first} and change_seq is not null and unit_length > 0
group by source, unit_id, unit_offset, change_seq
"""
LACKING = f"""             -- such a record among the events of a transaction may be one of them
select distinct t.source, t.transaction_id, t.first_change_seq
from runs_counted t join ({UNDECIDED}) r
  on t.source = r.source and r.change_seq between t.first_change_seq and t.last_change_seq
where t.state = 'complete' and not t.is_counted and r.resolved_by is null
"""
TOLD = f"""
with runs_counted as ({{runs}})
select r.source, r.transaction_id, r.first_change_seq, last_change_seq, num_changes, last_counter, tables,
       if(l.source is null, state, 'impossible') as state, batch_id
from runs_counted r left join ({LACKING}) l
  on l.source = r.source and l.transaction_id = r.transaction_id and l.first_change_seq = r.first_change_seq
"""
TOUCHED = f"""             -- transactions that such records of a batch decide, or make doubtful
select distinct t.source, t.transaction_id from silver.transactions t join ({UNDECIDED}) r
  on t.source = r.source and r.change_seq between t.first_change_seq and t.last_change_seq
where if(t.state = 'complete', r.batch_id, r.resolved_by) = {{batch_id}}
"""


class First(NamedTuple):
    """The sources whose codecs tell a transaction's first event; the batch, which may have brought rejects of theirs,
    or resolved some.
    """

    sources: list[str]
    batch_id: int


def tells_first(project: Project, batch_id: int) -> First | None:
    """The sources of a project whose codecs tell a transaction's first event; None where there are none."""
    sources = [name for name, source in project.sources.items() if offers(CODECS[source.codec], "TELLS_FIRST")]
    return First(sorted(sources), batch_id) if sources else None


def may_have_others(project: Project) -> bool:
    """May events of transactions be no changes?"""
    codecs = (CODECS[source.codec] for source in project.sources.values())
    return project.ignores or any(offers(codec, "OTHER_EVENTS") for codec in codecs)


def follow(batch: Batch) -> None:
    """Bring silver.transactions up to a batch whose changes are stored: without Spark where they are not too many."""
    project, kinds = batch.project, _kinds() if may_have_others(batch.project) else []
    first = tells_first(project, batch.batch_id)
    sources = sorted({*first.sources} & {*batch.sources}) if first else []
    of_batch = project.lakehouse_path(), batch.stored, kinds, sources, batch.batch_id
    left = None
    if storage.is_reached(project.lakehouse_path()):  # else Spark reads silver side by side
        is_small = batch.num_changes <= NUM_SMALL
        left = None if is_small else whole_transactions.append(*of_batch)
        if (is_small or left is not None) and small_transactions.update(*of_batch, left):
            return
    lake.give_vectors(batch.spark, project.lakehouse_path(), small_transactions.TABLE)
    update(batch.spark, batch.rows, may_have_others(project), first, left)


def update(
    spark: "SparkSession",
    rows: str,
    has_others: bool = False,
    first: First | None = None,
    ids: set[tuple[str, str]] | None = None,
) -> None:
    """Bring silver.transactions up to a batch whose changes are stored. In: SQL that selects them; `may_have_others`
    and `tells_first` of the project; the ids to look at, if not all.
    """
    events = _events(rows, has_others)
    with ExitStack() as held:
        if ids is not None:
            own = spark.createDataFrame([*ids], "source string, transaction_id string")
            own_ids = engine.view(own, held, "own_ids")
            events = f"select * from ({events}) left semi join {own_ids} using (source, transaction_id)"
        runs = engine.kept(_runs(spark, f"(select *, 0 as run from ({events}))", first))
        with_changes = runs.where("num_changes > 0")
        open_ids = runs.where("state <> 'complete'").select("source", "transaction_id").distinct()
        if first:
            touched = TOUCHED.format(tells_first=_among(first), batch_id=first.batch_id)
            open_ids = open_ids.union(spark.sql(touched)).distinct()
        if open_ids.isEmpty():
            lake.append(with_changes, "silver.transactions")
        else:
            _merge(spark, with_changes, open_ids, has_others, first)
        engine.release(runs)


def _runs(spark: "SparkSession", events: str, first: First | None):
    """Transactions of events that have a `run`."""
    counted = RUNS.format(events=events, tells_first=_among(first) if first else "false")
    if not first:
        return spark.sql(counted).drop("is_counted")
    return spark.sql(TOLD.format(runs=counted, tells_first=_among(first)))


def _among(first: First) -> str:
    return f"source in ({', '.join(map(literal, first.sources))})"


def _kinds() -> list[str]:
    """Kinds of control events that may be events of transactions."""
    of_codecs = {kind for codec in CODECS.values() for kind in getattr(codec, "OTHER_EVENTS", None) or ()}
    return [IGNORED, *sorted(of_codecs)]


def _events(rows: str, has_others: bool) -> str:
    """SQL for the events of transactions. Nobody has looked whether an ignored record came before, as one or as a
    change: each place in the order counts once.
    """
    if not has_others:
        return EVENTS.format(rows=rows)
    kinds = ", ".join(map(literal, _kinds()))
    return f"""
        select * except (nth) from (
          select *, row_number() over (
                   partition by source, transaction_id, change_seq order by table is null, batch_id) as nth
          from ({EVENTS.format(rows=rows)} {OTHERS.format(rows=rows, kinds=kinds, OFFSET=OFFSET)}))
        where nth = 1"""


def withdraw(spark: "SparkSession", rows: str, has_others: bool = False, first: First | None = None) -> None:
    """Tell the transactions that a batch brought changes of without it. In: SQL for the rows of a batch whose changes
    are gone; as for `update`.
    """
    touched = f"select distinct source, transaction_id from silver.transactions where {rows}"
    touched_ids = engine.kept(spark.sql(touched))
    _merge(spark, spark.sql("select * from silver.transactions where false"), touched_ids, has_others, first)
    engine.release(touched_ids)


def _merge(spark: "SparkSession", runs, open_ids, has_others: bool, first: First | None) -> None:
    """Write the transactions of these ids again from all of silver; the others as `runs` has them."""
    by_id = "over (partition by source, transaction_id order by change_seq)"
    with ExitStack() as held:
        ids = engine.view(open_ids, held, "open_ids")
        again = f"""(select *, count_if(first_counter = 1 or is_behind_last) {by_id} as run
            from (select e.*, lag(is_last) {by_id} as is_behind_last from ({_events("true", has_others)}) e
                  left semi join {ids} o on e.source = o.source and e.transaction_id = o.transaction_id))"""
        runs_again = engine.view(_runs(spark, again, first).where("num_changes > 0"), held, "runs_again")
        spark.sql(f"""
            merge into silver.transactions t using (
                select *, false as is_gone from {engine.view(runs, held, "runs")} r
                 where not exists (select 1 from {ids} o
                     where o.source = r.source and o.transaction_id = r.transaction_id)
                union all
                select *, false from {runs_again}
                union all
                select t.*, true from silver.transactions t left semi join {ids} o
                    on t.source = o.source and t.transaction_id = o.transaction_id
                 where not exists (select 1 from {runs_again} a
                     where a.source = t.source and a.transaction_id = t.transaction_id
                       and a.first_change_seq = t.first_change_seq)) n
            on t.source = n.source and t.transaction_id = n.transaction_id and t.first_change_seq = n.first_change_seq
            when matched and n.is_gone then delete
            when matched then update set *
            when not matched and not n.is_gone then insert *""")
