"""The state tables of a lakehouse after years of runs, made without Spark: a stream of files each batch, every batch
decoded, checked, folded and published; gold's own tables are left out. Each table is a few files of many batches, as
maintenance leaves them.
"""

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake

from inlet.config import Project
from tests import lakes

NUM_COMMITS = 20


def write(project: Project, source: str, num_files: int, num_batches: int) -> None:
    """In: how many files were read, and in how many batches; of table DEPOT.ITEMS, which is `items`."""
    tables = {
        "bronze.files": _files(source, num_files, num_batches),
        "silver.batches": _ledger(source, num_batches),
        "checks.results": _results(num_batches),
    }
    for name, rows in tables.items():
        for start in range(0, rows.num_rows, -(-rows.num_rows // NUM_COMMITS)):
            some = rows.slice(start, -(-rows.num_rows // NUM_COMMITS))
            write_deltalake(project.lakehouse_path(*name.split(".")), some, mode="append")
    at = lakes.BEGAN + timedelta(days=1)
    applied = {"table_name": "items", "source": source, "through_batch_id": num_batches, "applied_at": at}
    lakes.write(project, "gold.applied", applied)
    lakes.write(project, "gold.published", lakes.point(1, at) | {"batches": {source: num_batches}})
    for table in ("bronze.replays", "silver.rejects", "silver.waiting", "silver.control_events"):
        lakes.write(project, table)


def path(number: int) -> str:
    return f"landing/depot/2026/{number:012}.jsonl"


def _table(name: str, num: int, columns: dict) -> pa.Table:
    """In: columns by name, a value for all rows or an array; those that are not named are null."""
    types = {n: lakes.TYPES[t] for n, t in lakes.DECLARED[name].items() if t in lakes.TYPES}
    arrays = {
        n: columns[n].cast(t) if isinstance(columns.get(n), pa.Array) else pa.repeat(pa.scalar(columns.get(n), t), num)
        for n, t in types.items()
    }
    return pa.table(arrays)


def _numbers(num: int) -> pa.Array:
    return pa.array(range(num), pa.int64())


def _files(source: str, num: int, num_batches: int) -> pa.Table:
    number = _numbers(num)
    text = pc.utf8_lpad(pc.cast(number, pa.string()), 12, "0")
    name = pc.binary_join_element_wise("landing/depot/2026/", text, ".jsonl", "")
    columns = {
        "source": source,
        "path": name,
        "ofs_start": 0,
        "ofs_end": 4096,
        "size_bytes": 4096,
        "num_units": 10,
        "sha256": pc.binary_join_element_wise("0123456789abcdef" * 3, text, "beef", ""),
        "context": pc.binary_join_element_wise('{"offsets": {"', name, '/0": [0, 9, true]}}', ""),
        "batch_id": pc.add(pc.divide(number, -(-num // num_batches)), 1),
        "modified_at": lakes.BEGAN,
        "landed_at": lakes.BEGAN,
    }
    return _table("bronze.files", num, columns)


def _ledger(source: str, num: int) -> pa.Table:
    zeros = {n: 0 for n in lakes.DECLARED["silver.batches"] if n.startswith(("num_", "bytes_"))}
    columns = {
        "batch_id": pc.add(_numbers(num), 1),
        "source": source,
        "codec": "qlik_json",
        "tables": ["DEPOT.ITEMS"],
        "num_records": 100,
        "num_changes": 100,
        "first_change_seq": lakes.seq(1),
        "last_change_seq": lakes.seq(2),
        "finished_at": lakes.BEGAN,
    }
    return _table("silver.batches", num, zeros | columns)


def _results(num_batches: int) -> pa.Table:
    """One result of each step and batch, all passed."""
    run_id = int((lakes.BEGAN + timedelta(days=2)).timestamp() * 1e6)
    batches = pc.add(_numbers(num_batches), 1)
    lists = pa.ListArray.from_arrays(pa.array(range(num_batches + 1), pa.int32()), batches)
    return pa.concat_tables(
        _table(
            "checks.results",
            num_batches,
            {
                "run_id": pc.add(batches, run_id),
                "step": step,
                "table": table,
                "severity": "error",
                "success": True,
                "batch_ids": lists,
            },
        )
        for step, table in (("bronze", "bronze.files"), ("silver", "silver.changes"), ("gold", "gold.items__current"))
    )
