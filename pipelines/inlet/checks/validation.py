"""One validation of a table's rows: one aggregate counts what the suite asks for, Great Expectations judges the counts.

Left to itself, Great Expectations runs several Spark jobs for each expectation: seconds a table, however small. So one
query counts the unexpected rows of every expectation that COUNTED knows. Where there are none, Great Expectations takes
the counts in place of metrics of its own and makes its result of them. It validates on Spark, with examples, only what
has unexpected rows, what COUNTED does not know, and what the query stumbled over.
"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from inlet.errors import ConfigError
from inlet.sql import name as quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT: Any = "SUMMARY"
QUERY = "unexpected_rows_expectation"
ONE_CONTEXT = threading.Lock()


def _of_column(condition: Callable) -> Callable:
    """A count of rows that are not null and do not meet a condition, as Great Expectations states both."""

    def count(column, kwargs):
        from pyspark.sql import functions as F

        return F.count_if(column.isNotNull() & ~condition(column, kwargs))

    return count


def _repeated(column, kwargs):
    from pyspark.sql import functions as F

    return F.count(column) - F.count_distinct(column)


def _null(column, kwargs):
    from pyspark.sql import functions as F

    return F.count_if(column.isNull())


COUNTED: dict[str, tuple[set, Any]] = {  # expectation -> kwargs that it is known with, what counts its unexpected rows
    "expect_column_values_to_not_be_null": ({"column"}, _null),
    "expect_column_values_to_be_unique": ({"column"}, _repeated),
    "expect_column_values_to_match_regex": (
        {"column", "regex"},
        _of_column(lambda column, kwargs: column.rlike(kwargs["regex"])),
    ),
    "expect_column_values_to_be_in_set": (
        {"column", "value_set"},
        _of_column(lambda column, kwargs: column.isin(kwargs["value_set"])),
    ),
    QUERY: ({"unexpected_rows_query"}, None),
}


def validate(spark: "SparkSession", table: str, rows, suite: list, built: list):
    """Validate rows. In: a DataFrame that may be read twice, the expectations as declared and as built. Out: the
    validation, its results in the suite's order; None where there are no rows. Raises: ConfigError."""
    import great_expectations as gx
    from great_expectations.validator.validation_statistics import calc_validation_statistics

    taken = gx.ExpectationSuite(table, expectations=built).expectations
    if len(taken) != len(built):  # it drops what it cannot take without a word
        raise ConfigError(
            f"{table}: {len(built)} expectations are declared, Great Expectations took {len(taken)}",
            "Two entries say the same; keep one",
        )
    counts = _counts(spark, table, rows, suite, built)
    if counts.get("num_rows") == 0 or not counts and rows.isEmpty():
        return None
    results = {b.meta["n"]: _judged(b, counts) for b in built if counts.get(b.meta["n"]) == 0}
    rest = [b for b in built if b.meta["n"] not in results]
    meta = {"great_expectations_version": gx.__version__, "run_id": gx.core.RunIdentifier(run_time=datetime.now(UTC))}
    if rest:
        on_spark = validate_on_spark(rows, table, rest)
        meta = on_spark.meta
        results |= {r.expectation_config.meta["n"]: r for r in on_spark.results}
    ordered = [results[b.meta["n"]] for b in built]
    statistics = calc_validation_statistics(ordered)._asdict()
    return gx.core.ExpectationSuiteValidationResult(
        success=statistics.pop("success"), results=ordered, suite_name=table, statistics=statistics, meta=meta
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


def _counts(spark: "SparkSession", table: str, rows, suite: list, built: list) -> dict:
    """num_rows, the nulls of each column, and for each known expectation, by its number, its unexpected rows: one
    query. Empty where it cannot run: one wrong expectation would hide the others."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    view, queries = f"inlet_checked__{table.replace('.', '__')}", {}
    asked: dict[Any, Any] = {"num_rows": F.count(F.lit(1))}
    for expected, one in zip(suite, built, strict=True):
        kwargs, count = COUNTED.get(one.expectation_type, (set(), None))
        if not kwargs or set(expected.kwargs) != kwargs:
            continue
        if one.expectation_type == QUERY:
            queries[one.meta["n"]] = one.unexpected_rows_query
            continue
        column = F.col(quoted(one.column))
        asked |= {("nulls", one.column): F.count_if(column.isNull()), one.meta["n"]: count(column, expected.kwargs)}
    rows.createOrReplaceTempView(view)
    try:
        counted = rows.agg(*[sql.alias(f"_{n}") for n, sql in enumerate(asked.values())])
        values = counted.select(
            "*", *[F.expr(f"(select count(*) from ({query.format(batch=view)}))") for query in queries.values()]
        ).first()
    except (PySparkException, LookupError):  # a column that is not there, a word in braces that is none of ours
        return {}
    finally:
        spark.catalog.dropTempView(view)
    return dict(zip([*asked, *queries], values, strict=True))


def _judged(one, counts: dict):
    """Great Expectations' result of an expectation without unexpected rows, from the counts."""
    n = one.meta["n"]
    known = {
        "table.row_count": counts["num_rows"],
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
