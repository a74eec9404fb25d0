"""The state tables of a lakehouse after years of runs, made without Spark: a stream of files each batch, every batch
decoded, checked, folded and published; gold's own tables are left out. Each table is a few files of many batches, as
maintenance leaves them.
"""

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake

from inlet import lake
from inlet.checks import owed, results
from inlet.config import Project
from tests import lakes

NUM_COMMITS = 20
NUM_RESULTS = {"bronze": 7, "silver": 16, "gold": 5}  # of a batch, as Inlet's own suites give
CHECKED = {"bronze": "bronze.files", "silver": "silver.changes", "gold": "gold.items__current"}
CHECKS_BEGAN = int((lakes.BEGAN + timedelta(days=2)).timestamp() * 1e6)


def write(project: Project, source: str, num_files: int, num_batches: int) -> None:
    """In: how many files were read, and in how many batches; of table DEPOT.ITEMS, which is `items`."""
    tables = {
        "bronze.files": _files(source, num_files, num_batches),
        "silver.batches": _ledger(source, num_batches),
        "checks.results": _results(num_batches),
        "silver.waiting": _settled_parts(source, num_files, num_batches),
    }
    for name, rows in tables.items():
        for start in range(0, rows.num_rows, -(-rows.num_rows // NUM_COMMITS)):
            some = rows.slice(start, -(-rows.num_rows // NUM_COMMITS))
            write_deltalake(project.lakehouse_path(*name.split(".")), some, mode="append")
    at = lakes.BEGAN + timedelta(days=1)
    applied = {"table_name": "items", "source": source, "through_batch_id": num_batches, "applied_at": at}
    lakes.write(project, "gold.applied", applied)
    lakes.write(project, "gold.published", lakes.point(1, at) | {"batches": {source: num_batches}})
    for table in ("bronze.replays", "silver.rejects", "silver.control_events"):
        lakes.write(project, table)
    for step, table in CHECKED.items():  # the last check, which left nothing to be checked
        run_id = CHECKS_BEGAN + num_batches + 1
        row = {"run_id": run_id, "step": step, "table": table, "severity": "error", "success": True}
        rows, notes = [row | {"batch_ids": [num_batches]}], owed.notes_of_passed(project, step, run_id, set(), [])
        app_id = f"inlet-checks-{step}"
        lake.add_rows(project.lakehouse_path(), results.TABLE, rows, results.RESULTS, app_id, run_id, notes)


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


def _settled_parts(source: str, num: int, num_batches: int) -> pa.Table:
    """A part a file, which waited for one batch. Its rows come in the order of batches."""
    number = _numbers(num)
    key = pc.cast(number, pa.string())
    columns = {
        "source": source,
        "part_key": key,
        "unit_id": pc.binary_join_element_wise(source, key, "/"),
        "unit_offset": 0,
        "unit_length": 50,
    }
    batches = pc.add(pc.divide(number, -(-num // num_batches)), 1)
    began = _table("silver.waiting", num, columns | {"is_settled": False, "batch_id": batches})
    batches = pc.min_element_wise(pc.add(batches, 1), num_batches)
    ended = _table("silver.waiting", num, columns | {"is_settled": True, "batch_id": batches})
    return pa.concat_tables([began, ended]).sort_by("batch_id")


def _results(num_batches: int) -> pa.Table:
    """The results of each step and batch, all passed."""
    tables = []
    for step, num in NUM_RESULTS.items():
        rows = num * num_batches
        batches = pc.add(pc.divide(_numbers(rows), num), 1)
        columns = {
            "run_id": pc.add(batches, CHECKS_BEGAN),
            "step": step,
            "table": CHECKED[step],
            "severity": "error",
            "success": True,
            "batch_ids": pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), batches),
        }
        tables.append(_table("checks.results", rows, columns))
    return pa.concat_tables(tables).sort_by("run_id")
