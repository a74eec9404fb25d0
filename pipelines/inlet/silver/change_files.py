"""Changes in files that the tasks which decode them write by themselves: no change goes through the JVM.

Arrow's Parquet writer takes a fifth of the time of the JVM's, and what is constant for a unit costs it nothing. A task
gives back the name and the statistics of its file, and the run commits all files at once. A task that failed, or ran
twice, leaves a file that no commit names: no reader sees it, and `inlet maintain` removes it.
"""

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from inlet import change, lake, storage
from inlet.codecs import columns
from inlet.codecs.codec import IMAGE
from inlet.codecs.columns import WORDS
from inlet.config import Project
from inlet.silver.batch import Batch
from inlet.source import Source
from inlet.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = "silver.changes"
Changes = Callable[[Iterable[pa.RecordBatch]], Iterator[tuple[int, dict[str, Any]]]]
FEW = ("source", "source_schema", "source_table", "operation", "change_oper", "load_id", "unit_id")
GROUP_BYTES = 64 << 20  # of rows as Arrow, in one row group


def can_write(batch: Batch) -> bool:
    """True if tasks can write files of silver.changes: the lakehouse is a folder that they see as the run does, or in a
    store."""
    is_connected = getattr(batch.spark, "_sc", None) is None  # by Spark Connect: its workers see other folders
    return not is_connected and not batch.is_apart and lake.takes_files(batch.project.lakehouse_path(), TABLE)


def write(batch: Batch, units: "DataFrame", changes: Changes, table: str = TABLE) -> None:
    """Append the changes of units. In: batches of units -> (a number of changes, their columns) each, as `rows` takes
    them."""
    lakehouse, stores = batch.project.lakehouse_path(), batch.project.stores
    folder, of_batch = lake.table_path(lakehouse, table), {"batch_id": batch.batch_id, "decoded_at": datetime.now(UTC)}

    def task(batches) -> Iterator[pa.RecordBatch]:
        storage.use(stores)
        file = _File(folder)
        for num, columns_ in changes(batches):
            file.add(rows(num, columns_ | of_batch))
        yield pa.RecordBatch.from_pylist(file.close(), pa.schema([("file", pa.string()), ("statistics", pa.string())]))

    written = {row.file: row.statistics for row in units.mapInArrow(task, "file string, statistics string").collect()}
    if written:
        lake.add_files(lakehouse, table, written)


def of_blocks(project: Project, codec, decode) -> Changes:
    """Changes of an Arrow codec's blocks. In: batches of these -> (unit, its changes as the codec's CHANGES), in any
    number of lists."""

    def changes(batches) -> Iterator[tuple[int, dict]]:
        for unit, found in decode(batches):
            source = project.sources[unit["source"]]
            yield len(found), whole(codec, unit, found, source, project.tables_of(source))

    return changes


def of_messages(project: Project, walk) -> Changes:
    """Changes of messages. In: batches of these -> batches of changes, with some columns of the change table."""
    without_header = pa.array([source.name for source in project.sources.values() if not source.header], pa.string())

    def changes(batches) -> Iterator[tuple[int, dict]]:
        for found in walk(batches):
            given = dict(zip(found.schema.names, found.columns))
            if "header" in given and len(without_header):
                is_left_out = pc.is_in(given["source"].cast(pa.string()), without_header)
                given["header"] = pc.if_else(is_left_out, pa.scalar(None, IMAGE), given["header"])
            yield len(found), given

    return changes


def whole(codec, unit: dict, changes: pa.RecordBatch, source: Source, tables: dict[str, Table]) -> dict[str, Any]:
    """Changes of a unit, by column of the change table."""
    given = columns.of_changes(codec, changes, json.loads(unit["context"]), tables)
    return given | {"source": source.name, "unit_id": unit["unit_id"]} | ({} if source.header else {"header": None})


def rows(num: int, given: dict[str, Any]) -> pa.RecordBatch:
    """Rows of the change table. In: their number; columns as arrays, or as one value for all rows; others are null."""
    schema = _schema()
    return pa.RecordBatch.from_arrays([_array(given.get(f.name), f.type, num) for f in schema], schema=schema)


def _schema() -> pa.Schema:
    """The change table, with texts as words of a dictionary where they are few."""
    types = lake.arrow_schema(", ".join(f"{c.name} {c.type}" for c in change.CHANGES))
    return pa.schema([(f.name, WORDS if f.name in FEW else f.type) for f in types])


def _array(value: Any, type_: pa.DataType, num: int) -> pa.Array:
    """A column of so many rows. In: an array; or one value for all of them."""
    value = value.as_py() if isinstance(value, pa.Scalar) else value
    if value is None:
        value = pa.nulls(num, type_)
    if isinstance(value, pa.StructArray):
        return _image(value)
    if isinstance(value, pa.Array):
        return value.dictionary_encode() if type_ == WORDS and value.type != WORDS else value
    if type_ == WORDS:
        return pa.DictionaryArray.from_arrays(np.zeros(num, np.int32), pa.array([value], pa.string()))
    return pa.repeat(pa.scalar(value, type_), num)


def _image(images: pa.StructArray) -> pa.StructArray:
    """Images whose parts are never null, as Parquet asks it, also where the image is."""
    if not any(images.field(n).null_count for n in range(images.type.num_fields)):
        return images
    parts = [images.field(n).fill_null(b"") for n in range(images.type.num_fields)]
    return pa.StructArray.from_arrays(parts, fields=list(images.type), mask=images.is_null())


class _File:
    """A file of the change table that a task writes."""

    def __init__(self, folder: str):
        self.folder, self.name = folder, f"part-{uuid.uuid4()}.snappy.parquet"
        self.rows, self.num_bytes = list[pa.RecordBatch](), 0
        self.writer: pq.ParquetWriter | None = None
        self.statistics = _Statistics()

    def add(self, rows: pa.RecordBatch) -> None:
        self.rows += [rows] if len(rows) else []
        self.num_bytes += rows.nbytes
        if self.num_bytes >= GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        """Write the rows as a row group, whose dictionaries have to be one each."""
        if self.writer is None:
            place = f"{self.folder}/{self.name}"
            store, path = (None, place) if storage.is_local(place) else storage.open_store(place)
            self.writer = pq.ParquetWriter(
                path, _schema(), filesystem=store, compression="snappy", store_schema=False,
                write_statistics=list(change.HEADER_COLUMNS),
            )  # fmt: skip
        table = pa.Table.from_batches(self.rows).unify_dictionaries()
        self.writer.write_table(table, row_group_size=len(table))
        self.statistics.add(table)
        self.rows, self.num_bytes = [], 0

    def close(self) -> list[dict]:
        """The file and its statistics; nothing where there were no rows."""
        if self.rows:
            self._write()
        if self.writer is None:
            return []
        self.writer.close()
        return [{"file": self.name, "statistics": self.statistics.as_json()}]


class _Statistics:
    """Statistics of a file as Delta has them, of the columns by which it prunes."""

    def __init__(self):
        self.num_rows, self.num_nulls, self.values = 0, Counter[str](), dict[str, list]()

    def add(self, rows: pa.Table) -> None:
        self.num_rows += len(rows)
        for name in change.HEADER_COLUMNS:
            column = rows.column(name)
            self.num_nulls[name] += column.null_count
            values = column.unique().dictionary_decode() if column.type == WORDS else column
            ends = pc.min_max(values).as_py().values()
            self.values[name] = [*self.values.get(name, []), *(value for value in ends if value is not None)]

    def as_json(self) -> str:
        values = {name: values for name, values in self.values.items() if values}
        least, greatest = ({name: end(of) for name, of in values.items()} for end in (min, max))
        return json.dumps(
            {"numRecords": self.num_rows, "minValues": least, "maxValues": greatest, "nullCount": self.num_nulls}
        )
