"""A table of 1,000 columns, from messages to the public and the live view."""

import pytest

from inlet import bronze, publish, silver
from inlet.commands.run import build_gold
from tests.bench import wide

NUM = 1000


@pytest.mark.proof
def test_a_table_of_a_thousand_columns_comes_through_to_its_live_view(spark, lakehouse, tmp_path):
    project = wide.make_project(tmp_path, lakehouse, "thousand", NUM)

    def take(batch: int, steps, moved=()) -> None:
        wide.deliver(project, batch, 2, moved)
        plan = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
        bronze.land(project, spark, plan)
        silver.run(project, spark, plan.batch_id)
        for step in steps:
            step(project, spark)

    own = ", ".join(f"`{name.lower()}`" for name, _ in wide.columns(NUM))
    take(1, [build_gold, publish.run])
    take(2, [])
    live = spark.sql(f"select {own} from public.thousand__live order by id").collect()
    assert [(r.is_pending, r.is_held, r.not_supplied) for r in spark.table("public.thousand__live").collect()] == [
        (True, False, [])
    ] * 2
    build_gold(project, spark)
    publish.run(project, spark)
    assert (
        spark.sql(f"select {own} from public.thousand order by id").collect() == live
        and live[1].column_0001 == "value 1 2"
    )
    take(3, [build_gold], moved=(0,))
    assert [r.id for r in spark.sql("select id from gold.thousand__current order by id").collect()] == [1, 1000]
    log = (
        spark.table("public.thousand__before_after")
        .where("operation = 'UPDATE'")
        .select("changed", "not_supplied")
        .collect()
    )
    assert [(len(r.changed), r.not_supplied) for r in log] == [(sum(k % 3 == 1 for k in range(NUM)), [])] * 2
