"""Text and names in generated SQL: quoted here and nowhere else. The macros `text_literal` and `identifier` say the
same (dbt/macros/quoted.sql). Values are written as literals, for Delta's parser drops the parameters of `spark.sql` on
Spark 4.1 (delta-io/delta issue 7640).
"""


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


def name(identifier: str) -> str:
    """Any name of a column, table or database as one identifier of Spark SQL.

    >>> name("a`b.c")
    '`a``b.c`'
    """
    return "`" + identifier.replace("`", "``") + "`"
