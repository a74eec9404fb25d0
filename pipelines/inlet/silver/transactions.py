"""silver.transactions: one row per source transaction, from the changes that are there.

A transaction is an id *and* its first change_seq, because sources use ids again within minutes: a run of changes of one
id begins at each change with counter 1, and behind each last event. It is complete when its last event was seen and
there are as many changes as that event's counter says, each with a counter of its own; `impossible` where the last
event was seen and others are missing, or two say the same; a change that comes late may still fix it. Most
transactions of a batch are whole in it and are simply appended; only ids that are not, or that begin twice, are looked
up in all of silver and told apart there.
"""

from typing import TYPE_CHECKING

from inlet import lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = """
select source, transaction_id, min(change_seq) as first_change_seq, max(change_seq) as last_change_seq,
       count(*) as num_changes, max(transaction_event_counter) as last_counter,
       array_sort(collect_set(concat(source_schema, '.', source_table))) as tables,
       case when max(transaction_event_counter) is null then null
            when count(*) = max(transaction_event_counter) and count(distinct transaction_event_counter) = count(*)
                 and count_if(transaction_last_event) = 1
                 and min_by(transaction_event_counter, change_seq) = 1
                 and max_by(transaction_last_event, change_seq) then 'complete'
            when count_if(transaction_last_event) > 0
                 or count(distinct transaction_event_counter) < count(transaction_event_counter) then 'impossible'
            else 'open' end as state,
       max(batch_id) as batch_id
from {changes}
group by source, transaction_id, run
"""


def update(spark: "SparkSession", rows: str) -> None:
    """Bring silver.transactions up to a batch whose changes are stored. In: SQL that selects them."""
    batch = (
        f"(select *, 0 as run from silver.changes where {rows} and transaction_id is not null and operation <> "
        "'REFRESH')"
    )
    runs = spark.sql(RUNS.format(changes=batch)).persist()
    runs.createOrReplaceTempView("runs")
    open_ids = runs.where("state <> 'complete'").select("source", "transaction_id").distinct()
    if open_ids.isEmpty():
        lake.append(runs, "silver.transactions")
    else:
        _merge(spark, open_ids)
    runs.unpersist()


def withdraw(spark: "SparkSession", rows: str) -> None:
    """Tell the transactions that a batch brought changes of without it. In: SQL for the rows of a batch whose changes
    are gone.
    """
    touched = spark.sql(f"select distinct source, transaction_id from silver.transactions where {rows}").persist()
    spark.sql("select * from silver.transactions where false").createOrReplaceTempView("runs")
    _merge(spark, touched)
    touched.unpersist()


def _merge(spark: "SparkSession", open_ids) -> None:
    """Tell the transactions of these ids anew from all of silver; the others as the view `runs` has them."""
    open_ids.createOrReplaceTempView("open_ids")
    again = (
        "(select *, count_if(transaction_event_counter = 1 or is_behind_last) over (partition by source, "
        "transaction_id order by change_seq) as run from (select c.*, lag(transaction_last_event) over (partition by "
        "source, transaction_id order by change_seq) as is_behind_last from silver.changes c left semi join open_ids "
        "o on c.source = o.source and c.transaction_id = o.transaction_id where c.operation <> 'REFRESH'))"
    )
    spark.sql(RUNS.format(changes=again)).createOrReplaceTempView("runs_again")
    spark.sql("""
        merge into silver.transactions t using (
            select *, false as is_gone from runs r
             where not exists (select 1 from open_ids o
                 where o.source = r.source and o.transaction_id = r.transaction_id)
            union all
            select *, false from runs_again
            union all
            select t.*, true from silver.transactions t left semi join open_ids o
                on t.source = o.source and t.transaction_id = o.transaction_id
             where not exists (select 1 from runs_again a
                 where a.source = t.source and a.transaction_id = t.transaction_id
                   and a.first_change_seq = t.first_change_seq)) n
        on t.source = n.source and t.transaction_id = n.transaction_id and t.first_change_seq = n.first_change_seq
        when matched and n.is_gone then delete
        when matched then update set *
        when not matched and not n.is_gone then insert *""")
