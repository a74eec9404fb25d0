"""The operation model at speed: Arrow batches of messages -> the compiled walk -> Arrow batches of changes.

What the walk is sure of becomes a row; constants of a table or an operation are numbers on the way and are filled in by
SQL text afterwards. What it is not sure of is left out: other shapes and options, several records in one message, an
op_ts of another zone than UTC.
"""

from collections.abc import Iterable

from inlet import change
from inlet.codecs.goldengate.json.arrow import WALKED_DDL, walked
from inlet.codecs.goldengate.json.contracts import OPERATIONS, Contracts
from inlet.source import Source
from inlet.sql import literal
from inlet.table import Table

READ = "unit_id", "source", "value"


def fast(messages, sources: list[Source], tables: dict[str, Table], loads: list[dict]):
    """Changes of the messages that are in no doubt. In: DataFrame of bronze.messages; there are no loads. Out: CHANGES
    without batch_id, decoded_at.
    """
    contracts = Contracts(sources, tables)
    rows = messages.selectExpr(*READ).mapInArrow(walked(contracts), WALKED_DDL)
    contract = [table for _, table in contracts.places]
    constants = {
        "source": _pick([name for name, _ in contracts.places], "p"),
        "source_schema": _pick([x.schema_name for x in contract], "p"),
        "source_table": _pick([x.table_name for x in contract], "p"),
        "table_version": f"cast({_pick([x.version for x in contract], 'p')} as int)",
        "operation": _pick(OPERATIONS, "o"),
        "change_oper": _pick([change.OPERATIONS[name] for name in OPERATIONS], "o"),
        "unit_offset": "0L",
    }
    walked_columns = {column.split()[0] for column in WALKED_DDL.split(", ")}
    given = constants | {name: name for name in walked_columns}
    begun = " ".join(
        f"when {place} then change_seq >= '{x.earlier[-1].until}'"
        for place, x in enumerate(contracts.contracts)
        if x.earlier
    )
    sure = rows.where(f"case p {begun} else true end") if begun else rows  # what came before: the exact path
    return sure.selectExpr(
        *(
            f"{given.get(c.name, f'cast(null as {c.type})')} as {c.name}"
            for c in change.CHANGES
            if c.name not in ("batch_id", "decoded_at")
        )
    )


def _pick(values: Iterable[str | int], place: str) -> str:
    """The value at a place, out of constants."""
    shown = ", ".join(literal(value) if isinstance(value, str) else str(value) for value in values)
    return f"array({shown})[{place}]" if shown else "cast(null as string)"
