"""Frames of a Linkexpress group extract: where each record lies, what it is, and its place in its transaction.

Two compiled walks: `walk` follows the length prefixes, `heads` reads what stands before a record's items. Source:
docs/formats/linkexpress_group.md. The layout is in group.py.
"""

from inlet.fields.compiled.basics import inlined, uint
from inlet.fields.compiled.cache import compiled

# a head's row
WHAT, OPERATION, TABLE, ITEMS, FAULT, FAULT_AT, TRANSACTION, COUNTER, LAST = range(9)
NUM_HEAD = 9
CHANGE, COMMIT, EMPTY_LOAD, FAULTY = range(4)
REFRESH, INSERT, UPDATE, DELETE = range(4)  # the change's operation code is the format's own
OP_COMMIT, OP_EMPTY_LOAD = 0x8000, 0xFFFF

FAULTS = (
    "",
    "truncated",
    "bad_null_indicator",
    "unknown_operation",
    "bad_column_count",
    "unknown_extraction_id",
    "trailing_bytes",
    "unknown_table",
)
OK, TRUNCATED, BAD_NULL_INDICATOR, UNKNOWN_OPERATION, BAD_COLUMN_COUNT, UNKNOWN_ID, TRAILING_BYTES, UNKNOWN_TABLE = (
    range(8)
)


@compiled(nogil=True, _nrt=False)
def walk(data, little, len_min, len_max, offsets):
    """Follow the lengths. Out: offsets[i] of each whole record and behind the last.

    Returns: (number of whole records, where the walk ended, whether the length there is impossible).
    """
    at, num = 0, 0
    offsets[0] = 0
    while at + 4 <= len(data):
        size = uint(data, at, 4, little)
        if size < len_min or size > len_max:  # read unsigned, so a negative length is a large one
            return num, at, True
        if at + size > len(data):
            break
        at += size
        num += 1
        offsets[num] = at
    return num, at, False


@inlined
def _commit(data, at, end, little, len_null):
    """A record of one column: (what, operation, table, items, fault, byte)."""
    op_at = at + 6 + len_null
    op = uint(data, op_at, 2, little)
    if len_null and uint(data, at + 6, 2, little) != 0:
        return FAULTY, op, -1, end, BAD_NULL_INDICATOR, at + 6
    if op != OP_COMMIT:
        return FAULTY, op, -1, end, UNKNOWN_OPERATION, op_at
    if op_at + 2 != end:
        return FAULTY, op, -1, end, TRAILING_BYTES, op_at + 2
    return COMMIT, op, -1, end, OK, at


@inlined
def _data(data, at, end, little, len_null, table_of, num_items, full_table):
    """A record of two columns or more, the same way."""
    items = at + 10 + len_null
    if items > end:
        return FAULTY, -1, -1, end, TRUNCATED, end
    num_columns, extraction_id = uint(data, at + 4, 2, little), uint(data, at + 6, 2, little)
    op = uint(data, items - 2, 2, little)
    if len_null and uint(data, at + 8, 2, little) != 0:
        return FAULTY, op, -1, items, BAD_NULL_INDICATOR, at + 8
    is_load = op == REFRESH or op == OP_EMPTY_LOAD
    if not is_load and op > DELETE:
        return FAULTY, op, -1, items, UNKNOWN_OPERATION, items - 2
    table = full_table if is_load else table_of[extraction_id]
    if is_load and extraction_id != 0 or not is_load and table < 0:
        return FAULTY, op, -1, items, UNKNOWN_ID, at + 6
    if table < 0:
        return FAULTY, op, -1, items, UNKNOWN_TABLE, at + 6
    if num_columns != 2 + num_items[table] and not (op == OP_EMPTY_LOAD and num_columns == 2):
        return FAULTY, op, table, items, BAD_COLUMN_COUNT, at + 4
    if op == OP_EMPTY_LOAD and items != end:
        return FAULTY, op, table, items, TRAILING_BYTES, items
    return (EMPTY_LOAD if op == OP_EMPTY_LOAD else CHANGE), op, table, items, OK, at


@compiled(nogil=True, _nrt=False)
def heads(data, offsets, num, little, has_null_areas, table_of, num_items, full_table, transaction, counter, rows):
    """Read every head. Out: rows[i] as named above. Returns: (transaction, counter) behind the last record.

    A rejected record keeps its place in the transaction: the counter counts what the source wrote.
    """
    len_null = 2 if has_null_areas else 0
    is_open = False
    for i in range(num):
        at, end = offsets[i], offsets[i + 1]
        is_commit = uint(data, at + 4, 2, little) == 1
        if is_commit:
            what, op, table, items, fault, fault_at = _commit(data, at, end, little, len_null)
        else:
            what, op, table, items, fault, fault_at = _data(
                data, at, end, little, len_null, table_of, num_items, full_table
            )
        is_load = not is_commit and (op == REFRESH or op == OP_EMPTY_LOAD)
        # nobody can say that a faulty record was none of the transaction, unless it is a row of a full extract
        is_row = is_load and full_table >= 0 and uint(data, at + 6, 2, little) == 0
        is_counted = not is_row if what == FAULTY else not is_commit and not is_load
        counter += is_counted
        row = rows[i]
        row[WHAT], row[OPERATION], row[TABLE], row[ITEMS], row[FAULT], row[FAULT_AT] = (
            what,
            op,
            table,
            items,
            fault,
            fault_at,
        )
        row[TRANSACTION], row[COUNTER], row[LAST] = (transaction, counter, 0) if is_counted else (-1, -1, -1)
        if what == COMMIT:
            if is_open:
                rows[i - 1, LAST] = 1
            transaction, counter = transaction + 1, 0
        is_open = is_counted
    return transaction, counter
