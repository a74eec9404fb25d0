"""Great Expectations judges the counts of a table (counting.py): where no row is unexpected, it takes the counts in
place of metrics of its own and makes its result of them. It validates on Spark, with examples, only what has unexpected
rows, what is not counted, and what could not be counted.
"""

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from inlet.checks.counting import NUM_ROWS
from inlet.checks.rows import TableSuite
from inlet.errors import ConfigError
from inlet.lake import engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT: Any = "SUMMARY"
ONE_CONTEXT = threading.Lock()


def validate(spark: "SparkSession", suite: TableSuite, counts: dict):
    """Validate a table's rows. In: their counts. Out: the validation, its results in the suite's order; None where
    there are no rows. Raises: ConfigError."""
    import great_expectations as gx
    from great_expectations.validator.validation_statistics import calc_validation_statistics

    built = suite.built
    taken = gx.ExpectationSuite(suite.table, expectations=built).expectations
    if len(taken) != len(built):  # it drops what it cannot take without a word
        raise ConfigError(
            f"{suite.table}: {len(built)} expectations are declared, Great Expectations took {len(taken)}",
            "Two entries say the same; keep one",
        )
    if counts.get(NUM_ROWS) == 0:
        return None
    results = {b.meta["n"]: _judged(b, counts) for b in built if counts.get(b.meta["n"]) == 0}
    rest = [b for b in built if b.meta["n"] not in results]
    meta = {"great_expectations_version": gx.__version__, "run_id": gx.core.RunIdentifier(run_time=datetime.now(UTC))}
    if rest:
        rows = engine.kept(suite.narrow_rows(spark))  # each expectation reads them
        try:
            if NUM_ROWS not in counts and rows.isEmpty():
                return None
            on_spark = validate_on_spark(rows, suite.table, rest)
        finally:
            engine.release(rows)
        meta = on_spark.meta
        results |= {r.expectation_config.meta["n"]: r for r in on_spark.results}
    ordered = [results[b.meta["n"]] for b in built]
    statistics = calc_validation_statistics(ordered)._asdict()
    return gx.core.ExpectationSuiteValidationResult(
        success=statistics.pop("success"), results=ordered, suite_name=suite.table, statistics=statistics, meta=meta
    )


def validate_on_spark(rows, table: str, built: list):
    """The same by Great Expectations alone; one at a time, for its context is the process's."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    with ONE_CONTEXT:
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        asset = context.data_sources.add_spark("inlet", persist=False).add_dataframe_asset(table)
        suite = context.suites.add(gx.ExpectationSuite(table, expectations=built))
        definition = context.validation_definitions.add(
            gx.ValidationDefinition(name=table, data=asset.add_batch_definition_whole_dataframe("rows"), suite=suite)
        )
        return definition.run(batch_parameters={"dataframe": rows}, result_format=FORMAT)


def _judged(one, counts: dict):
    """Great Expectations' result of an expectation without unexpected rows, from the counts."""
    n = one.meta["n"]
    known = {
        "table.row_count": counts[NUM_ROWS],
        "column_values.nonnull.unexpected_count": counts.get(("nulls", getattr(one, "column", None))),
        "unexpected_rows_query.row_count": 0,
        "unexpected_rows_query.table": [],
    }
    runtime = {"result_format": FORMAT}
    asked = one.get_validation_dependencies(runtime_configuration=runtime).metric_configurations
    figures = {"unexpected_count": counts[n], "unexpected_values": []}
    return one.metrics_validate(
        {metric.id: known.get(name, figures.get(name.rsplit(".", 1)[-1])) for name, metric in asked.items()},
        runtime_configuration=runtime,
    )
