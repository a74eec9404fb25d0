"""Text and names in generated SQL: quoted here and nowhere else. The macros `text_literal` and `identifier` say the
same (dbt/macros/quoted.sql). Values are written as literals, for Delta's parser drops the parameters of `spark.sql` on
Spark 4.1 (delta-io/delta issue 7640).
"""

import re
from collections.abc import Iterable


def literal(text: str) -> str:
    r"""Any text as a string literal of Spark SQL. `${` is parted, for Spark puts settings in the place of `${...}`, in
    literals as anywhere.

    >>> print(literal("it's a\\b"))
    'it\'s a\\b'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "$\\{") + "'"


def plain_literal(text: str) -> str:
    """Any text as a literal of the engine that reads without Spark, in which a backslash is one.

    >>> print(plain_literal("it's a\\b"))
    'it''s a\b'
    """
    return "'" + text.replace("'", "''") + "'"


def plain_among(column: str, texts: Iterable[str]) -> str:
    """Is a column one of some texts? For the engine that reads without Spark.

    >>> print(plain_among("source", ["a", "it's"]), plain_among("source", []))
    source in ('a', 'it''s') false
    """
    listed = ", ".join(sorted(set(map(plain_literal, texts))))
    return f"{column} in ({listed})" if listed else "false"


def name(identifier: str) -> str:
    """Any name of a column, table or database as one identifier of Spark SQL.

    >>> name("a`b.c")
    '`a``b.c`'
    """
    return "`" + identifier.replace("`", "``") + "`"


TEXT = r"'(?:[^']|'')*'"  # of the engine that reads without Spark
WORDS = re.compile(  # of it that Spark does not know, past its texts and names in quotes
    rf"""arrow_cast\((?P<time>{TEXT}), 'Timestamp\(Microsecond, Some\("UTC"\)\)'\)|{TEXT}|"(?:[^"]|"")*["]"""
    r"|\bas (?:varchar|bytea)\)"
)
TYPES = {"as varchar)": "as string)", "as bytea)": "as binary)"}


def in_spark(statement: str) -> str:
    r"""A statement for the engine that reads without Spark, with its texts, names and types as Spark writes them.

    >>> print(in_spark('select "a", ' + plain_literal("it's a\\b") + ' from "current"'))
    select `a`, 'it\'s a\\b' from `current`
    """

    def of_spark(match: re.Match) -> str:
        if match["time"]:
            return f"cast({match['time']} as timestamp)"
        text = match[0][1:-1]
        if match[0][0] == "'":
            return literal(text.replace("''", "'"))
        return name(text.replace('""', '"')) if match[0][0] == '"' else TYPES[match[0]]

    return WORDS.sub(of_spark, statement)
