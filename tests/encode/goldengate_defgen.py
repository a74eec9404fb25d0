"""Tables of GoldenGate -> the text of a Defgen file, version 5.0 (24 fields a column) or 2.0 (18): goldengate.md,
chapters 6 and 6.1. Knows nothing of inlet.
"""

from collections.abc import Iterable

from tests.encode.goldengate_columns import DATETIME, INTEGERS, Column, Table, offsets

FIELDS = """Name|Data Type|External Length|Fetch Offset|Scale|Level|Null|Bump if Odd|Internal Length|Binary Length|
Table Length|Most Sig DT|Least Sig DT|High Precision|Low Precision|Elementary Item|Occurs|Key Column|Sub DataType|
Native DataType|Character Set|Character Length|LOB Type|Partial Type""".replace("\n", "").split("|")
WIDTHS = [4, 6, 8, 2, 2, 1, 1, 6, 6, 6, 1, 1, 1, 1, 1, 4, 1, 3, 4, 8, 6, 1, 1]  # of the fields behind the name, in S4
NUM_FIELDS = {"5.0": 24, "2.0": 18}
LAST_PART = {10: 2, 19: 5}  # length of a DATETIME -> its finest part: day, second; longer ones have a fraction
DATABASE = {
    "Database type": "ORACLE",
    "Character set ID": "UTF-8",
    "National character set ID": "UTF-16",
    "Locale": "neutral",
    "Case sensitivity": "14 14 14 14 14 14 14 14 14 14 14 14 11 14 14 14",
    "TimeZone": "GMT",
}


def defgen(tables: Iterable[Table], version: str = "5.0", encoding: str = "UTF-8", **database: str) -> str:
    """The whole file. In: lines of `DATABASE` that differ, by name."""
    fields = [f"*  {number:>4}    {name}" for number, name in enumerate(FIELDS[: NUM_FIELDS[version]], 1)]
    lines = [
        f"*+- Defgen version {version}, Encoding {encoding}",
        "*",
        "* Definitions created/modified  2026-01-02 03:04",
        "*",
        "*  Field descriptions for each column entry:",
        "*",
        *fields,
        "*",
        *(f"{name}: {value}" for name, value in (DATABASE | database).items()),
        "*",
    ]
    return "\n".join([*lines, *(line for table in tables for line in definition(table, version))]) + "\n"


def definition(table: Table, version: str = "5.0") -> list[str]:
    """The lines of one table."""
    places = offsets(table)
    names = [f'"{column.name}"' if " " in column.name else column.name for column in table.columns]
    width = max(map(len, names))
    return [
        f"Definition for table {table.name}",
        f"Record length: {places[-1]}",
        "Syskey: 0",
        f"Columns: {len(names)}",
        *(
            f"{name:<{width}}{column_line(column, place, version)}"
            for name, column, place in zip(names, table.columns, places)
        ),
        "End of definition",
    ]


def column_line(column: Column, place: int, version: str) -> str:
    """The fields behind a column's name."""
    size = INTEGERS[column.data_type][0] if column.data_type in INTEGERS else column.length
    is_moment = column.data_type == DATETIME
    values = [
        column.data_type,
        column.length,
        place,
        column.scale,
        0,
        column.is_nullable,
        0,
        size,
        size,
        size if is_moment or column.data_type in INTEGERS else 0,
        0,
        LAST_PART.get(column.length, 6) if is_moment else 0,
        0,
        0,
        1,
        0,
        column.is_key,
        column.sub_type,
        column.native_type,
        column.charset_id,
        column.num_chars,
        0,
        0,
    ]
    return "".join(f" {value:>{width}d}" for value, width in list(zip(values, WIDTHS))[: NUM_FIELDS[version] - 1])
