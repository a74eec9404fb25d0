"""A table at its source, read through JDBC."""

import functools
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inlet.config import known
from inlet.errors import ConfigError, InletError
from inlet.lake import spark_errors
from inlet.sql import name as quoted
from inlet.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVERS = {  # scheme of the URL -> Maven coordinates, class
    "postgresql": ("org.postgresql:postgresql:42.7.4", "org.postgresql.Driver"),
    "oracle": ("com.oracle.database.jdbc:ojdbc11:23.5.0.24.07", "oracle.jdbc.OracleDriver"),
    "sqlserver": ("com.microsoft.sqlserver:mssql-jdbc:12.8.1.jre11", "com.microsoft.sqlserver.jdbc.SQLServerDriver"),
    "db2": ("com.ibm.db2:jcc:11.5.9.0", "com.ibm.db2.jcc.DB2Driver"),
    "mysql": ("com.mysql:mysql-connector-j:9.0.0", "com.mysql.cj.jdbc.Driver"),
}
MAX_NAMED = 200  # keys that the source is asked for by name; of more the whole table is read again


@dataclass(frozen=True)
class Live:
    """Where the live table is: options of Spark's JDBC reader."""

    url: str
    table: str
    user: str | None = None
    password: str | None = None

    def options(self) -> dict[str, str]:
        settings = {
            "url": self.url,
            "dbtable": self.table,
            "user": self.user,
            "password": self.password,
            "driver": driver(self.url)[1],
            "preferTimestampNTZ": "true",
            "fetchsize": "10000",
        }
        return {name: value for name, value in settings.items() if value is not None}


def driver(url: str, coordinates: str | None = None) -> tuple[str, str]:
    """Maven coordinates and class of the driver of a JDBC URL. Raises: ConfigError for a scheme that is not known."""
    scheme = re.match(r"jdbc:(\w+):", url)
    if not scheme:
        raise ConfigError("--jdbc is no JDBC URL", "It looks like jdbc:postgresql://host:5432/database")
    found = known(DRIVERS, scheme[1], "JDBC driver for")
    return coordinates or found[0], found[1]


def password(variable: str | None) -> str | None:
    """The password that an environment variable holds. Raises: ConfigError where there is no such variable."""
    if variable and variable not in os.environ:
        raise ConfigError(f"--password-env names {variable}, which is not set", f"export {variable}=...")
    return os.environ[variable] if variable else None


def rows_of(spark: "SparkSession", table: Table, live: Live, keys: list[tuple] | None = None):
    """The live table's rows; of few keys only these are asked for. Raises: ConfigError where it lacks a column of the
    contract, InletError where it cannot be read.
    """
    try:
        rows = spark.read.format("jdbc").options(**live.options()).load()
    except spark_errors.errors() as error:
        raise InletError(
            f"{live.table} cannot be read: {_cause(error)}", "Look at --jdbc, --user, --password-env and --source-table"
        ) from error
    lacking = [name for name in table.column_names if name.lower() not in {c.lower() for c in rows.columns}]
    if lacking:
        raise ConfigError(
            f"{live.table} has no column {', '.join(lacking)}",
            "Name the table with --source-table, or fix the contract",
        )
    is_asked_by_name = (
        keys and len(keys) <= MAX_NAMED and not any("\\" in str(value) for key in keys for value in key)
    )  # some databases unescape text, others do not
    return rows.where(_named(rows, table, keys or [])) if is_asked_by_name else rows


def _named(rows, table: Table, keys: list[tuple]):
    """A condition that the database itself can evaluate: one of these keys."""
    from pyspark.sql import functions as F

    if len(table.key) == 1:
        return rows[quoted(table.key[0])].isin([key for (key,) in keys])
    each = [
        functools.reduce(
            lambda a, b: a & b, [rows[quoted(name)] == F.lit(value) for name, value in zip(table.key, key)]
        )
        for key in keys
    ]
    return functools.reduce(lambda a, b: a | b, each)


def _cause(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if "Exception:" in line] or str(error).splitlines()
    return lines[0].split("Exception: ", 1)[-1].strip(" .")
