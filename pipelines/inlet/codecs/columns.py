"""What a codec of Arrow batches declares its columns of the change table to be: SQL for Spark, and the same over Arrow
arrays for tasks that write files by themselves. Each function here gives both, and both give the same values; a value
of which a part is null is null.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlet import change
from inlet.sql import literal
from inlet.table import Table

Given = Mapping[str, Any]  # name -> array of CHANGES, or scalar of CONSTANTS
WORDS = pa.dictionary(pa.int32(), pa.string())
LEN_HEX = 16
TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}  # of CONSTANTS


class Column(NamedTuple):
    """One column of the change table."""

    sql: str  # over CHANGES and CONSTANTS
    arrow: Callable[[Given], Any]  # the same: an array, or a scalar where it is the same for all changes of a unit


def same(name: str) -> Column:
    """A column of CHANGES or CONSTANTS as it is."""
    return Column(name, lambda given: given[name])


def joined(*parts: Column, by: str = "") -> Column:
    """Texts and numbers as one text."""
    between = f", {literal(by)}, " if by else ", "
    return Column(
        f"concat({between.join(part.sql for part in parts)})",
        lambda given: pc.binary_join_element_wise(*(part.arrow(given).cast(pa.string()) for part in parts), by),
    )


def digits(name: str, length: int) -> Column:
    """A number that is not negative and has at most so many digits, as so many."""
    return Column(
        f"lpad(cast({name} as string), {length}, '0')",
        lambda given: pc.utf8_lpad(given[name].cast(pa.string()), length, "0"),
    )


def total(one: str, other: str) -> Column:
    """The sum of two numbers."""
    return Column(f"{one} + {other}", lambda given: pc.add(given[one], given[other]))


def word(words: Sequence[str], name: str, first: int = 0) -> Column:
    """One of some words by its number, which is that of a word or null. In: the number of the first word."""
    place = f"{name} + {1 - first}" if first != 1 else name
    return Column(
        f"element_at(array({', '.join(map(literal, words))}), {place})",
        lambda given: pa.DictionaryArray.from_arrays(
            pc.subtract(given[name].cast(pa.int32()), pa.scalar(first, pa.int32())), pa.array(words, pa.string())
        ),
    )


def initial(of_word: Column) -> Column:
    """The first letter of a word."""

    def arrow(given: Given) -> Any:
        words = of_word.arrow(given)
        if not isinstance(words, pa.DictionaryArray):
            return pc.utf8_slice_codeunits(words, 0, 1)
        return pc.utf8_slice_codeunits(words.dictionary, 0, 1).dictionary_encode().take(words.indices)

    return Column(f"left({of_word.sql}, 1)", arrow)


def instant(name: str) -> Column:
    """A time of microseconds since 1970 in UTC."""
    return Column(f"timestamp_micros({name})", lambda given: given[name].cast(pa.timestamp("us", tz="UTC")))


def first_of(one: Column, other: Column) -> Column:
    """The first of two that is not null."""
    return Column(f"coalesce({one.sql}, {other.sql})", lambda given: pc.coalesce(one.arrow(given), other.arrow(given)))


def only_of(name: str, code: int, value: Column) -> Column:
    """A value where a column has a code; else null."""
    return Column(
        f"if({name} = {code}, {value.sql}, null)",
        lambda given: pc.if_else(pc.equal(given[name], code), value.arrow(given), pa.scalar(None, pa.string())),
    )


def hexadecimal(name: str) -> Column:
    """A number of 64 bits as 16 hexadecimal digits."""

    def arrow(given: Given) -> pa.Array:
        numbers = given[name]
        text = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(">i8").tobytes().hex().upper().encode()
        ends = pa.py_buffer(np.arange(0, len(text) + 1, LEN_HEX, dtype=np.int32))
        texts = pa.Array.from_buffers(pa.string(), len(numbers), [None, ends, pa.py_buffer(text)])
        return pc.if_else(numbers.is_valid(), texts, pa.scalar(None, pa.string())) if numbers.null_count else texts

    return Column(f"lpad(hex({name}), {LEN_HEX}, '0')", arrow)


def of_changes(codec, changes: pa.RecordBatch, context: dict, tables: dict[str, Table]) -> dict[str, Any]:
    """The columns of the change table that a codec of Arrow batches gives, by name: an array, or a scalar where it is
    the same for all changes. In: the changes of a unit that could be framed, its context; its source's contracts."""
    given: dict[str, Any] = dict(zip(changes.schema.names, changes.columns))
    given |= {name: pa.scalar(v, TYPES[codec.CONSTANTS[name]]) for name, v in codec.constants(context).items()}
    if "table_index" in given:
        contracts = [table for _, table in sorted(codec.tables_of(context, tables).items())]
        of_contracts = {
            "source_schema": pa.array([t.schema_name for t in contracts], pa.string()).dictionary_encode(),
            "source_table": pa.array([t.table_name for t in contracts], pa.string()).dictionary_encode(),
            "table_version": pa.array([t.version for t in contracts], pa.int32()),
        }
        given |= {name: values.take(given["table_index"]) for name, values in of_contracts.items()}
    given |= {name: column.arrow(given) for name, column in declared(codec).items()}
    return {c.name: given[c.name] for c in change.CHANGES if c.name in given}


def declared(codec) -> dict[str, Column]:
    """What a codec declares, with the first letter of the operation."""
    return {"change_oper": initial(codec.COLUMNS.get("operation", same("operation")))} | codec.COLUMNS


def rows(codec, changes: pa.RecordBatch, context: dict, tables: dict[str, Table]) -> list[dict]:
    """The same as dicts, images as they are stored."""
    if not len(changes):
        return []
    values = of_changes(codec, changes, context, tables)
    columns = [v.to_pylist() if isinstance(v, pa.Array) else [v.as_py()] * len(changes) for v in values.values()]
    return [dict(zip(values, row)) for row in zip(*columns)]
