"""Linkexpress group extract: all tables of a replication group in one file, in commit order; or one table's full
extract.

Unit      a block of whole records, cut after a commit record where there is one
Yields    changes in file order; a commit record closes the transaction; an FFFF record says that a full extract found
          no row
Layout    0 i4 len_record, itself included . 4 i2 num_columns (items + 2; 1 = commit record)
          with null areas     commit  6 i2 0000 . 8 i2 8000
                              data    6 i2 extraction id, 0 in a full extract . 8 i2 0000 . 10 i2 operation . 12 items
          without             commit  6 i2 8000
                              data    6 i2 extraction id . 8 i2 operation . 10 items
          operation           0 row of a full extract, 1 insert, 2 update, 3 delete, FFFF full extract without rows
          items               in the contract's order, each behind a null indicator (0000, FFFF) with null areas;
                              their bytes are in item.py, the options in options.py
Images    insert, update and a full extract's row hold all columns after the change, a delete the row that went
Loads     a full extract is a load of its table and ends with its file, once all of it is landed and no record is
          rejected
Versions  the column lists in force at the time and ordinal of the file's name
Order     the time and ordinal of the file's name, then the record's place in it. The format holds no time, no
          transaction id and no position, so transaction_id is made of these too
Facts     [documented] the fields and codes . [inferred] sizes of commit and FFFF records, one commit record per
          transaction
          ASSUMED: byte order and null areas hold for a whole file and are found by exact fit over its first records;
          several fit and decode differently -> ambiguous_layout
          ASSUMED: an id of 0 belongs to full extracts and only to them; their table is named by the file's name
Rejects   bad_length, truncated, trailing_bytes, unknown_operation, unknown_extraction_id, unknown_table,
          bad_column_count, bad_null_indicator, bad_digit, bad_sign, bad_text, bad_date, bad_value_length,
          value_does_not_fit, missing_key, null_not_allowed (after-images only), missing_change_seq, ambiguous_layout,
          ambiguous_table
Source    Linkexpress Replication option manual, 6.14; docs/formats/linkexpress_group.md
"""

import re
from datetime import datetime
from itertools import product

from inlet import change
from inlet.codecs.linkexpress.annotate import annotate  # noqa: F401  part of what a codec offers
from inlet.codecs.linkexpress.block import CHANGES, cut, decode, frames, ids_of, tables_of  # noqa: F401  part of what a codec offers
from inlet.codecs.linkexpress.item import compile_layouts
from inlet.codecs.linkexpress.options import Options
from inlet.codecs.linkexpress.reject import change_seq_of, change_seq_prefix, of_file
from inlet.codecs.results import Decoded
from inlet.errors import Reject
from inlet.fields import sql_type, variant
from inlet.source import Source
from inlet.sql import literal

OPTIONS = Options
OPERATIONS = ("REFRESH", "INSERT", "UPDATE", "DELETE")  # by operation code
CONSTANTS = {"prefix": "string"}
COLUMNS = {
    "change_seq": "concat(prefix, lpad(cast(record_ordinal as string), 10, '0'))",
    "operation": f"element_at(array({', '.join(map(literal, OPERATIONS))}), operation + 1)",
    "transaction_id": "concat(prefix, '-', transaction_ordinal)",
    "transaction_event_counter": "counter",
    "transaction_last_event": "last",
    "load_id": "if(operation = 0, prefix, null)",
}
NUM_FITTED = 4_096  # records that each candidate reading is tried on
LEN_FITTED = 1 << 20


def open_file(path: str, head: bytes, is_whole: bool, source: Source, tables: dict) -> dict | Reject | None:
    """The context of a file's first byte, from its name and by exact fit over its first records.

    In: head is the file's first MiB, or what is there of it; is_whole: no more will come. Out: the context; with
    byte_order None where a whole file holds no whole record. None while no reading, or more than one, fits what is
    there. A Reject when the file cannot be ordered or read.
    """
    named = _named(path, head, source, tables)
    if isinstance(named, Reject):
        return named
    tables = tables_of(named, tables)
    candidates = [named | reading for reading in _readings(source, tables, named)]
    fits = [_Fit(head[:LEN_FITTED], context, source, tables) for context in candidates]
    may_grow = not is_whole and len(head) < LEN_FITTED
    if len(fits) > 1 and not any(fit.num_records for fit in fits) and any(fit.is_possible for fit in fits):
        return None if may_grow else named | {"byte_order": None, "null_areas": None}
    chosen = _choose(fits, head, source, tables)
    if isinstance(chosen, Reject):
        return None if may_grow else chosen
    return chosen.context | {"load_id": change_seq_prefix(named) if chosen.has_load else None}


def _named(path: str, head: bytes, source: Source, tables: dict) -> dict | Reject:
    """What the file's name says."""
    name = re.split(r"[/\\]", path)[-1]
    match = re.fullmatch(source.options_as(Options).file_name, name)
    name_parts = match.groupdict() if match else {}
    time = (name_parts.get("time") or "").ljust(change.LEN_TIME, "0")
    if not match or not _is_time(time):
        return of_file(
            "missing_change_seq",
            head,
            "a file name with a time YYYYMMDDHHmmSS or YYYYMMDDHHmmSShh (option file_name)",
            name,
        )
    candidates = _tables_named((name_parts.get("table") or "").lower(), source, tables)
    if len(candidates) > 1:
        return of_file("ambiguous_table", head, "a file name that names one table", f"{name}: {', '.join(candidates)}")
    return {
        "byte_order": None,
        "null_areas": None,
        "time": time,
        "file_ordinal": int(name_parts.get("ordinal") or 0),
        "table": candidates[0] if candidates else None,
        "load_id": None,
        "record_ordinal": 0,
        "transaction_ordinal": 0,
        "counter": 0,
    }


def _is_time(time: str) -> bool:
    try:
        return len(time) == change.LEN_TIME and bool(datetime.strptime(time[:14], "%Y%m%d%H%M%S"))
    except ValueError:
        return False


def _tables_named(word: str, source: Source, tables: dict) -> list[str]:
    """Tables of this source (all, if it maps none) that the word names, whole or by the part behind the dot."""
    return sorted(
        {
            tables[t].table
            for t in set(source.tables.values()) or tables
            if t in tables and word in (t.lower(), t.lower().split(".")[-1])
        }
    )


def _readings(source: Source, tables: dict, named: dict) -> list[dict]:
    """Every reading that the options leave open. Knobs that no column of the tables depends on are not varied."""
    options = source.options_as(Options)
    carried = set(ids_of(source, tables).values()) | {named["table"]} - {None}
    compile_layouts(tables, frozenset(carried), options, named)  # so that a wrong type is named by its column
    types = {sql_type.parse(c.source_type)[0] for t in carried for c in tables[t].columns if c.source_type}
    is_variable = options.logtype == "little" and types & {"VARCHAR", "NVARCHAR", "BLOB"}
    values = {
        "byte_order": _open(options.byte_order, ("big", "little")),
        "null_areas": _open(options.null_areas, ("yes", "no")),
        "numeric_sign": _open(options.numeric_sign, ("separate", "overpunch") if "NUMERIC" in types else ("separate",)),
        "null_var_body": _open(options.null_var_body, ("len0", "full", "absent") if is_variable else ("len0",)),
    }
    return [dict(zip(values, reading)) for reading in product(*values.values())]


def _open(option: str, values: tuple) -> tuple:
    return values if option == "auto" else (option,)


class _Fit:
    """How well one reading fits the first records of a file."""

    def __init__(self, head: bytes, context: dict, source: Source, tables: dict):
        self.context = context
        framed = frames(head, context, source, tables)
        self.num_records = min(len(framed.heads), NUM_FITTED)
        self.is_possible = not framed.is_bad_length or self.num_records == NUM_FITTED
        self.decoded = decode(head[: int(framed.offsets[self.num_records])], context, source, tables)
        faulty = self.decoded.rejects
        starts = framed.offsets[: self.num_records].tolist()
        num_before_trouble = starts.index(faulty[0].unit_offset) if faulty else self.num_records
        self.score = (num_before_trouble, self.num_records - len(faulty))
        self.is_exact = self.is_possible and not faulty
        operations = self.decoded.changes.column("operation")
        self.has_load = bool(self.decoded.controls) or OPERATIONS.index("REFRESH") in operations.unique().to_pylist()

    def tells_the_same(self, other) -> bool:
        return self.decoded.changes.equals(other.decoded.changes) and self.decoded.controls == other.decoded.controls


def _choose(fits: list[_Fit], head: bytes, source: Source, tables: dict) -> _Fit | Reject:
    """The one reading that fits, or that reads most records before trouble. Raises nothing: no choice is a Reject."""
    best = [fit for fit in fits if fit.is_exact] or [fit for fit in fits if fit.score == max(f.score for f in fits)]
    if len(fits) == 1 or all(fit.tells_the_same(best[0]) for fit in best) and best[0].score[1]:
        return best[0]
    readings = "; ".join(
        ", ".join(f"{key} {fit.context[key]}" for key in ("byte_order", "null_areas", "numeric_sign", "null_var_body"))
        for fit in best
    )
    if best[0].score[1]:
        return of_file("ambiguous_layout", head, "one reading that fits best; set the options that are auto", readings)
    longest = max(fits, key=lambda fit: fit.num_records)
    first = (longest.decoded.rejects or decode(head, longest.context, source, tables).rejects)[0]
    return of_file(
        first.kind,
        head,
        f"a reading under which a record fits; so far {first.expected}",
        first.found,
        first.byte_offset,
    )


def constants(context: dict) -> dict:
    """What is the same for all changes of a block: the beginning of their change_seq."""
    return {"prefix": change_seq_prefix(context)}


def span(context: dict, num_records: int) -> tuple[str, str] | None:
    """Bounds of the change_seq of a block's changes."""
    first, last = change_seq_of(context, 0), change_seq_of(context, max(num_records - 1, 0))
    return (first, last) if first and last else None


def load_of(context: dict) -> str | None:
    """The id of the full load that a file is."""
    return context.get("load_id")


def changes_as_rows(decoded: Decoded, context: dict, source: Source, tables: dict) -> list[dict]:
    """Decoded changes as rows of the change table, without the columns of unit and batch: for eyes and tests, not for
    bulk.
    """
    names, rows = sorted(tables), []
    if decoded.changes.num_rows:  # a file that was refused has no time
        prefix, tables = change_seq_prefix(context), tables_of(context, tables)
    for row in decoded.changes.to_pylist():
        table, operation = tables[names[row["table_index"]]], OPERATIONS[row["operation"]]
        is_load = operation == "REFRESH"
        rows.append(
            {
                "source": source.name,
                "source_schema": table.schema_name,
                "source_table": table.table_name,
                "table_version": table.version,
                "change_seq": f"{prefix}{row['record_ordinal']:010d}",
                "operation": operation,
                "change_oper": change.OPERATIONS[operation],
                "transaction_id": None if is_load else f"{prefix}-{row['transaction_ordinal']}",
                "transaction_event_counter": row["counter"],
                "transaction_last_event": row["last"],
                "change_timestamp": None,
                "stream_position": None,
                "change_mask": None,
                "column_mask": None,
                "before": row["before"] and variant.decode(**row["before"]),
                "after": row["after"] and variant.decode(**row["after"]),
                "column_states": None,
                "load_id": prefix if is_load else None,
                "unit_offset": row["unit_offset"],
                "unit_length": row["unit_length"],
            }
        )
    return rows
