"""Whole batches written into silver's tables as silver writes them, for tests of what follows: by Spark where rows have
VARIANT alone. And rows read back by Arrow, which takes a tenth of the time of Spark's own rows.
"""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa

from inlet import lake
from tests.streams import COLUMNS, Change

IMAGES = ("before", "after")
CHANGES = {
    "source": pa.string(),
    "source_schema": pa.string(),
    "source_table": pa.string(),
    "table_version": pa.int32(),
    "change_seq": pa.string(),
    "operation": pa.string(),
    "change_oper": pa.string(),
    "transaction_id": pa.string(),
    "transaction_event_counter": pa.int64(),
    "transaction_last_event": pa.bool_(),
    "change_timestamp": pa.timestamp("us", "UTC"),
    "before": pa.string(),
    "after": pa.string(),
    "column_states": pa.map_(pa.string(), pa.string()),
    "load_id": pa.string(),
    "change_mask": pa.binary(),
    "unit_id": pa.string(),
    "unit_offset": pa.int64(),
    "batch_id": pa.int64(),
}
CONTROL = (
    "source",
    "source_schema",
    "source_table",
    "change_seq",
    "kind",
    "load_id",
    "unit_id",
    "unit_offset",
    "batch_id",
)
BATCHES = ("batch_id", "source", "tables", "first_change_seq", "last_change_seq")


def write_silver(
    spark,
    batch_id: int,
    tables: dict[str, dict[str, list[Change]]],
    before_ledger=lambda: None,
    columns=lambda table, version: COLUMNS,
) -> None:
    """One whole batch: changes, empty loads, what the caller adds, then the ledger. In: table -> source -> changes; the
    columns that a mask counts."""
    lakehouse = spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")
    changes, control, sources = [], [], {source for of_source in tables.values() for source in of_source}
    for table, of_source in tables.items():
        for source, rows in of_source.items():
            for c in rows:
                unit = f"{source}/{c.seq}", 0
                if c.op in ("EMPTY_LOAD", "LOAD_END"):
                    control.append((source, "SHOP", table.upper(), c.seq, c.op.lower(), c.load_id, *unit, batch_id))
                else:
                    changes.append(
                        (
                            source,
                            "SHOP",
                            table.upper(),
                            c.version,
                            c.seq,
                            c.op,
                            c.op[0],
                            c.transaction_id,
                            c.counter,
                            c.last,
                            c.timestamp,
                            _json(c.before, bytes.hex),
                            _json(c.after, lambda data: data.hex().upper()),
                            list(c.states.items()) or None,
                            c.load_id,
                            None if c.mask is None else mask(c.mask, columns(table, c.version)),
                            *unit,
                            batch_id,
                        )
                    )
    _append_changes(spark, changes)
    _append(lakehouse, "silver.control_events", CONTROL, control)
    before_ledger()
    _append(
        lakehouse,
        "silver.batches",
        BATCHES,
        [
            (
                batch_id,
                s,
                [f"SHOP.{t.upper()}" for t, of_source in tables.items() if of_source.get(s)],
                *(
                    most((c.seq for of_source in tables.values() for c in of_source.get(s, [])), default=None)
                    for most in (min, max)
                ),
            )
            for s in sorted(sources)
        ],
    )


def _append(lakehouse: str, table: str, columns: tuple[str, ...], rows: list[tuple]) -> None:
    if rows:
        lake.add_rows(lakehouse, table, [dict(zip(columns, row)) for row in rows])


def _append_changes(spark, rows: list[tuple]) -> None:
    if rows:
        arrays = [pa.array(values, type_) for values, type_ in zip(zip(*rows), CHANGES.values())]
        spark.createDataFrame(pa.table(arrays, list(CHANGES))).createOrReplaceTempView("new_rows")
        spark.sql(
            f"insert into silver.changes ({', '.join(CHANGES)}) select "
            + ", ".join(f"parse_json({name})" if name in IMAGES else name for name in CHANGES)
            + " from new_rows"
        )


def mask(changed, columns: list[str]) -> bytes:
    """One bit per column: the first column's is the lowest of the first byte. Zero bytes at the end are left out."""
    bits = [name in changed for name in columns]
    return bytes(
        sum(bit << n for n, bit in enumerate(bits[start : start + 8])) for start in range(0, len(bits), 8)
    ).rstrip(b"\0")


def _json(image: dict | None, hexed) -> str | None:
    """An image; hexadecimal digits may be small or capital, a number that JSON cannot carry is text."""

    def member(value):
        if isinstance(value, bytes):
            return hexed(value)
        if isinstance(value, Decimal):
            return float(value) if Decimal(repr(float(value))) == value else str(value)
        return value.isoformat() if isinstance(value, dt.date) else value

    return None if image is None else json.dumps({n: member(v) for n, v in image.items()})


def rows(found) -> list[tuple]:
    """All rows of a DataFrame; times in UTC, structs as dicts."""
    table = found.toArrow()
    schema = pa.schema([field.with_type(_without_zone(field.type)) for field in table.schema])
    return list(zip(*(column.to_pylist() for column in table.cast(schema).columns)))


def _without_zone(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_without_zone(field.type)) for field in type_])
    return pa.timestamp("us") if pa.types.is_timestamp(type_) else type_


def by_source(found) -> dict[str, list[tuple]]:
    """The rows of a DataFrame by their first column, without it."""
    grouped: dict[str, list[tuple]] = {}
    for source, *row in rows(found):
        grouped.setdefault(source, []).append(tuple(row))
    return grouped
