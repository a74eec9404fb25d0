"""`inlet sql`: questions to the lakehouse, which it only reads."""

import logging
import re
import shlex
from typing import TYPE_CHECKING

from inlet import layout, publish
from inlet.commands.statements import body
from inlet.config import Project
from inlet.errors import ConfigError, InletError
from inlet.lake import spark_errors
from inlet.log import as_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READING = ("select", "with", "from", "values", "table", "show", "describe", "desc", "explain", "(")
MAY_WRITE = ("with", "from")  # what may stand before INSERT and its like
WRITING = re.compile(r"^\W*'?(InsertInto|DeleteFromTable|UpdateTable|MergeIntoTable)", re.M)  # nodes of a parsed plan


def ask(project: Project, query: str, limit: int, database: str) -> tuple[list[tuple], list[str], bool]:
    """Answer one question in a session. In and out: as `answer`; the database of names without one.

    Raises: ConfigError where the query cannot be meant or would write, InletError where it fails; both without Spark's
    plans and traces.
    """
    check_reads(query)
    return answer(begin(project, database), query, limit)


def check_reads(query: str) -> None:
    """Raises: ConfigError for a query that does not begin as a question; before Spark starts."""
    if not body(query).lower().startswith(READING):
        raise ConfigError(
            "`inlet sql` only reads", f"A query begins with {', '.join(READING[:-1])}; gold is made by `inlet run`"
        )


def command_of(query: str) -> str:
    """The command that asks a query.

    >>> command_of("select *\\n  from orders")
    "inlet sql 'select * from orders'"
    """
    return "inlet sql " + shlex.quote(re.sub(r"\s*\n\s*", " ", query.strip()))


def begin(project: Project, database: str) -> "SparkSession":
    """A session for questions. In: the database of names without one. Raises: ConfigError where there is none such."""
    from inlet.lake.spark import session

    logging.getLogger("SQLQueryContextLogger").disabled = True  # what it says, the error says
    spark = session(project.lakehouse_path(), new_bytes=0)
    publish.show(project, spark)
    use(spark, database)
    return spark


def use(spark: "SparkSession", database: str) -> None:
    """Take names without a database as those of this one. Raises: ConfigError where there is none such."""
    if not spark.catalog.databaseExists(layout.of(database)):
        raise ConfigError(
            f"There is no database {database}",
            f"There are: {', '.join(row.namespace for row in spark.sql('show databases').collect())}",
        )
    spark.catalog.setCurrentDatabase(layout.of(database))


def answer(spark: "SparkSession", query: str, limit: int) -> tuple[list[tuple], list[str], bool]:
    """In: one SQL statement, how many rows at most (0: all). Out: rows, with structs as dicts, names of the columns,
    and whether there is more. Raises: as `ask`.
    """
    from pyspark.errors import AnalysisException

    try:
        if WRITING.search(_parsed(spark, query)):
            raise ConfigError("`inlet sql` only reads", "Gold is made by `inlet run`")
        found = spark.sql(query)
        rows = found.limit(limit + 1).collect() if limit else found.collect()
    except AnalysisException as error:
        raise ConfigError(_first_lines(error), "Fix the query, or look with `inlet sql 'show tables'`") from error
    except spark_errors.errors() as error:
        problem = InletError(_first_lines(error), "Run it again with --debug to see where it comes from")
        raise spark_errors.worded(error) or problem from error
    except (ValueError, OverflowError) as error:  # pyspark makes Python's dates of Spark's
        raise InletError(
            f"A date or time lies outside the years 1 to 9999 ({error})", "Show it as text: cast(... as string)"
        ) from error
    return (
        [tuple(map(_named, row)) for row in (rows[:limit] if limit else rows)],
        found.columns,
        bool(limit) and len(rows) > limit,
    )


def _parsed(spark: "SparkSession", query: str) -> str:
    """The parsed plan of a query that may write, which is not run; of one that cannot be meant, why. Raises:
    AnalysisException where it cannot be parsed."""
    if not body(query).lower().startswith(MAY_WRITE):
        return ""
    return spark.sql(f"explain extended {query}").collect()[0][0].partition("== Analyzed Logical Plan ==")[0]


def _named(value):
    """A value of a row, with structs, maps and VARIANT objects as dicts whose keys are text."""
    if hasattr(value, "toPython"):
        value = value.toPython()
    if isinstance(value, list):
        return list(map(_named, value))
    if hasattr(value, "asDict") and len(set(value.__fields__)) < len(value):
        raise ConfigError(
            f"A struct has several members of one name: {', '.join(value.__fields__)}",
            "Select them one by one, or rename them",
        )
    named = value.asDict() if hasattr(value, "asDict") else value
    return (
        {key if isinstance(key, str) else str(as_text(_named(key))): _named(member) for key, member in named.items()}
        if isinstance(named, dict)
        else value
    )


def _first_lines(error: Exception) -> str:
    """What Spark says, without its trace and its plan."""
    return re.split(r"JVM stacktrace|\n\n|;\n|\n\tat ", str(error))[0].strip()
