"""What a command costs where contracts are many: about twice as much for twice as many. Instructions of Inlet's Python
are counted, because seconds say little on a busy machine.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import inlet
from inlet import config
from inlet.codecs import CODECS
from inlet.commands import import_contracts, status
from inlet.commands import run as running
from inlet.gold import progress
from inlet.source import Source
from inlet.table import Table, _check_columns
from tests import lakes, projects

FOLDER = str(Path(inlet.__file__).parent)
DOUBLE = 2.3  # times the steps for twice the contracts, at most


class Compared(str):
    """Text that counts how often it is compared, which no line of Python shows."""

    num = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Compared.num += 1
        return str.__eq__(self, other)

    def lower(self):
        return self


def steps(work) -> int:
    """How many instructions of Inlet's Python a piece of work runs."""
    num = 0

    def trace(frame, event, arg):
        nonlocal num
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        frame.f_trace_opcodes = True
        num += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return num


def contract(n: int, num_columns: int = 2) -> dict:
    columns = [{"name": f"C{k}", "type": "int", "source_type": "INTEGER"} for k in range(num_columns)]
    was = {"version": 1, "until": "2026-01-01", "table": f"S.OLD_{n}", "columns": columns}
    renamed = [{**c, "name": f"D{k}", "formerly": [c["name"]]} for k, c in enumerate(columns)]
    return {
        "table": f"S.T{n}",
        "name": f"t{n}",
        "key": [c["name"] for c in renamed[: num_columns // 2]],
        "version": 2,
        "columns": renamed,
        "earlier": [was],
    }


def make(root: Path, num: int, codec: str, sources: int = 3) -> Path:
    """A project of many contracts, each in the mapping of each source."""
    (root / "pipelines" / "tables").mkdir(parents=True)
    for n in range(num):
        (root / "pipelines" / "tables" / f"t{n}.yml").write_text(yaml.safe_dump(contract(n)))
    options = projects.DEPOT["options"] if codec == "linkexpress_group" else {}
    body = {"codec": codec, "from": "landing/*", "tables": {str(n): f"S.T{n}" for n in range(num)}, "options": options}
    (root / "pipelines" / "inlet.yml").write_text(yaml.safe_dump({"sources": {f"s{k}": body for k in range(sources)}}))
    (root / "landing").mkdir()
    return root


@pytest.mark.parametrize("codec", ["qlik_json", "linkexpress_group", "goldengate_trail"])
def test_a_project_of_twice_the_contracts_is_read_in_twice_the_steps(tmp_path, codec):
    def start(root: Path) -> None:
        project = config.load(root)
        running.find_work(project, running.STEPS, [], [])
        for source in project.sources.values():
            for _ in range(len(project.tables)):  # as for each of its files
                project.tables_of(source)
            if hasattr(CODECS[codec], "check"):
                CODECS[codec].check(source, project.tables_of(source))

    few, many = (steps(lambda: start(make(tmp_path / str(num), num, codec))) for num in (100, 200))
    assert many < DOUBLE * few, f"{few:,} steps for 100 contracts, {many:,} for 200"


def test_the_state_of_twice_the_tables_is_told_in_twice_the_steps(tmp_path):
    counted = []
    for num in (100, 200):
        project = config.load(make(tmp_path / str(num), num, "qlik_json", sources=1))
        at = datetime(2026, 1, 1, tzinfo=UTC)
        lakes.write(
            project,
            "gold.applied",
            *(
                {
                    "table_name": f"t{n}",
                    "source": "s0",
                    "through_batch_id": 1,
                    "through_change_seq": "0",
                    "applied_at": at,
                }
                for n in range(num)
            ),
        )
        counted.append(steps(lambda: status.status(project)))
    assert counted[1] < DOUBLE * counted[0], counted


def test_a_ledger_is_compared_with_what_twice_the_tables_lack_in_twice_the_steps():
    def new(num: int) -> int:
        ledger = [{"source": "s", "batch_id": n} for n in range(num)]
        return steps(lambda: progress.new(ledger, {f"t{n}": {"s": (num, num)} for n in range(num)}))

    assert new(200) < DOUBLE * new(100)
    lags = {"a": {"s": (3, 9), "r": (1, 2)}, "b": {"s": (2, 4)}}
    ledger = [{"source": source, "batch_id": n} for source in "srq" for n in range(1, 6)]
    assert [(row["source"], row["batch_id"]) for row in progress.new(ledger, lags)] == [
        *(("s", n) for n in (3, 4, 5)),
        *(("r", n) for n in (2, 3, 4, 5)),
    ]


def test_a_table_of_twice_the_columns_is_checked_in_twice_the_steps():
    def check(num: int) -> int:
        fields = contract(1, num)
        return steps(lambda: [t.columns_in(t.versions[0]) for t in [Table(**fields)]])

    few, many = check(200), check(400)
    assert many < DOUBLE * few, f"{few:,} steps for 200 columns, {many:,} for 400"


def test_names_are_not_compared_each_with_each():
    names = [Compared(f"NAME_{n}") for n in range(1000)]
    Compared.num = 0
    _check_columns("", [SimpleNamespace(name=name) for name in names], names)
    Source(name="s", codec="qlik_json", **{"from": "landing"}, tables=dict.fromkeys(names, "S.T"))
    assert Compared.num < 20 * len(names)


def test_an_import_reads_each_contract_once(tmp_path, monkeypatch):
    project, num_read = config.load(make(tmp_path, 40, "qlik_json")), 0

    def counted():
        nonlocal num_read
        num_read += 1
        return made()

    made = import_contracts._yaml
    monkeypatch.setattr(import_contracts, "_yaml", counted)
    definitions = [
        {"source": "s0", "source_schema": "S", "source_table": f"T{n}", "change_seq": "", "key": [], "unit_id": None}
        | {"columns": [{"name": f"D{k}", "type": "int"} for k in range(2)]}
        for n in range(40)
    ]
    import_contracts.contracts(project, definitions, import_contracts.Answers())
    assert num_read < 3 * 40
