"""Arrow batches of messages for compiled walks over JSON, and Arrow columns of what these write."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from inlet.codecs.codec import IMAGE

LEN_MOST = (1 << 31) - 1  # bytes that the texts of one Arrow column hold


def bytes_of(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Letters of all values, as they lie in Arrow's buffer; where each begins and the last ends."""
    ends = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    letters = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    letters.flags.writeable = False  # as a worker's are: a walk is compiled anew for others
    return letters, ends.astype(np.int64)


def parts(batch: pa.RecordBatch, size_of: Callable[[np.ndarray], int], most: int) -> Iterator[pa.RecordBatch]:
    """The batch, in pieces of which no column is larger than `most` bytes. A message that is too long for one is left
    out. In: the size of the largest column, by the ends of the messages.
    """
    if size_of(bytes_of(batch.column("value"))[1]) <= most:
        yield batch
    elif len(batch) > 1:
        middle = len(batch) // 2
        for part in (batch.slice(0, middle), batch.slice(middle)):
            yield from parts(part, size_of, most)


def len_names(names: pa.Array, ends: np.ndarray) -> int:
    """Bytes that names take at most with the images of messages. In: dictionaries of names; ends of the messages."""
    return max((len(one.as_py()) for one in names), default=0) * (len(ends) - 1)


def groups(batch: pa.RecordBatch, *columns: str) -> list[tuple[tuple, np.ndarray]]:
    """Rows of a batch by the values of these columns."""
    codes: np.ndarray = np.zeros(len(batch), np.int64)
    values: list[tuple] = [()]
    for name in columns:
        coded = batch.column(name).dictionary_encode()
        own = coded.dictionary.to_pylist()
        codes = codes * len(own) + np.asarray(coded.indices)
        values = [(*value, one) for value in values for one in own]
    return [(values[code], np.flatnonzero(codes == code)) for code in np.unique(codes)]


def text(data: np.ndarray, ends: np.ndarray, valid: np.ndarray, type_: pa.DataType) -> pa.Array:
    """A column of texts or bytes. In: where each begins and the last ends."""
    stops = ends[: len(valid) + 1].astype(np.int32)
    return pa.Array.from_buffers(type_, len(valid), [_bits(valid), pa.py_buffer(stops), pa.py_buffer(data)])


def number(values: np.ndarray, valid: np.ndarray, type_: pa.DataType) -> pa.Array:
    """A column of integers, or of what Arrow casts them to."""
    return pa.Array.from_buffers(pa.int64(), len(valid), [_bits(valid), pa.py_buffer(values.copy())]).cast(type_)


def image(value: pa.Array, names: pa.Array, valid: np.ndarray, places: np.ndarray | int) -> pa.Array:
    """A column of VARIANT. In: dictionaries of names, and which one each image has. A null has none: the names of a
    wide table are as many bytes as the values of a row."""
    of_null = pa.array([b""], pa.binary())
    metadata = pa.concat_arrays([names, of_null]).take(pa.array(np.where(valid, places, len(names))))
    filled = pa.Array.from_buffers(pa.binary(), len(value), [None, *value.buffers()[1:]])
    return pa.StructArray.from_arrays([filled, metadata], fields=list(IMAGE), mask=pa.array(~valid))


def _bits(valid: np.ndarray) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
