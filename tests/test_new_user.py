"""The way of a new user, by what docs/a_source_from_zero.md says: a project, a feed of their own, questions; then a
column is added at the source, a record is damaged and a change comes late; a model of their own, the report page.
"""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from typer.testing import CliRunner

from inlet import config
from inlet.cli import app
from inlet.gold import dbt

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = (DOCS / "a_source_from_zero.md").read_text().split("## Qlik messages")[1].split("## What brings the messages")[0]
VALUE = json.loads(re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)[1])
SOURCES, CONTRACT = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
MART = """\
select loan_id, max(due) as last_due, count(*) as versions
from {{ source('public', 'loans__history') }}
group by loan_id
"""
MART_SOURCE = {"sources": [{"name": "public", "schema": "public", "tables": [{"name": "loans__history"}]}]}


def value(second: int, operation: str, data: dict, before: dict | None = None, day: int = 5, mask: str = "07") -> bytes:
    """A message as the page has it, at another time and of another content."""
    headers = VALUE["headers"] | {
        "operation": operation,
        "changeSequence": f"202601{day:02}0315{second:02}120000000000000000000",
        "timestamp": f"2026-01-{day:02}T03:15:{second:02}.120",
        "transactionId": f"{day:030X}{second:02X}",
        "changeMask": mask if operation == "INSERT" else "08",
        "columnMask": mask,
    }
    return json.dumps({"data": data, "beforeData": before, "headers": headers}).encode()


def deliver(root: Path, name: str, first: int, values: list[bytes]) -> Path:
    """A Parquet file of Kafka messages with the columns that the page requires."""
    rows = [
        {"topic": "lib.loans", "partition": 0, "offset": first + n, "timestamp": datetime.now(UTC), "value": one}
        for n, one in enumerate(values)
    ]
    path = root / "landing" / "library" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_a_new_user_goes_from_a_feed_of_their_own_to_the_report(spark, lakehouse, tmp_path):
    root = tmp_path / "mine"

    def inlet(*words, code: int = 0) -> str:
        done = CliRunner().invoke(app, [*map(str, words), "--project", str(root)])
        assert done.exit_code == code, (words, done.output, done.exception)
        return done.output

    def rows(query: str) -> list[dict]:
        return [json.loads(line) for line in inlet("sql", query, "--format", "json").splitlines() if line[0] == "{"]

    made = CliRunner().invoke(app, ["init", str(root)]).output
    assert [line.split(". ")[0].strip() for line in made.splitlines()[1:]] == ["1", "2", "3", "4"]
    (root / "pipelines" / "inlet.yml").write_text(f"lakehouse: {lakehouse}\n{SOURCES}")
    assert "Write pipelines/tables/loans.yml, or let `inlet import` write it" in inlet("doctor", code=2)
    (root / "pipelines" / "tables" / "loans.yml").write_text(CONTRACT)
    assert "1 contract" in inlet("generate")
    lent = {"LOAN_ID": 3, "TITLE": "Momo", "DUE": "2026-02-01"}
    changed = json.dumps(VALUE).encode()
    first = deliver(root, "1.parquet", 0, [value(0, "INSERT", lent), changed])
    assert "1 file at landing/library" in inlet("doctor")
    decoded = [json.loads(line) for line in inlet("decode", first).splitlines()]
    assert [(row["operation"], row["after"]["DUE"]) for row in decoded] == [
        ("INSERT", "2026-02-01"),
        ("UPDATE", "2026-03-01"),
    ]
    inlet("run")
    assert rows("select loan_id, title, due from loans") == [{"loan_id": 3, "title": "Momo", "due": "2026-03-01"}]
    log = rows(
        "select key, operation, before.due as was, after.due as due from loans__before_after order by change_seq"
    )
    assert log == [
        {"key": {"loan_id": 3}, "operation": "INSERT", "was": None, "due": "2026-02-01"},
        {"key": {"loan_id": 3}, "operation": "UPDATE", "was": "2026-02-01", "due": "2026-03-01"},
    ]

    now = lent | {"DUE": "2026-03-01"}
    back = value(0, "UPDATE", now | {"RETURNED": "2026-01-06"}, now, day=6, mask="0F")
    late = value(30, "INSERT", lent | {"LOAN_ID": 4, "TITLE": "Emil"}, day=4)
    deliver(root, "2.parquet", 2, [back, b'{"data": {"LOAN_ID": 4', late])
    assert "invalid_json" in inlet("run")
    rejected = [json.loads(line) for line in inlet("rejects", "--json").splitlines()]
    assert len(rejected) == 2
    contract = yaml.safe_load(CONTRACT)
    earlier = [{"version": 1, "until": "2026-01-06 00:00:00", "columns": list(contract["columns"])}]
    contract["columns"].append({"name": "RETURNED", "type": "date"})
    (root / "pipelines" / "tables" / "loans.yml").write_text(
        yaml.safe_dump(contract | {"version": 2, "earlier": earlier})
    )
    inlet("generate")
    inlet("replay")
    left = [json.loads(line) for line in inlet("rejects", "--json").splitlines()]
    assert [row["kind"] for row in left] == ["invalid_json"]
    assert rows("select loan_id, due, returned from loans order by loan_id") == [
        {"loan_id": 3, "due": "2026-03-01", "returned": "2026-01-06"},
        {"loan_id": 4, "due": "2026-02-01", "returned": None},
    ]
    shown = [json.loads(line) for line in inlet("show", "loans", "--changes", "--format", "json").splitlines()]
    assert [(row["key"], row["file"], row["file_offset"]) for row in shown] == [
        ({"loan_id": 4}, "lib.loans/0", 4),
        ({"loan_id": 3}, "lib.loans/0", 0),
        ({"loan_id": 3}, "lib.loans/0", 1),
        ({"loan_id": 3}, "lib.loans/0", 2),
    ]

    marts = root / "dbt" / "models" / "marts"
    (marts / "lent.sql").write_text(MART)
    (marts / "lent.yml").write_text(yaml.safe_dump(MART_SOURCE))
    assert dbt.invoke(config.load(root), ["build", "--select", "marts"]).success  # in the session that is there
    assert rows("select * from marts.lent order by loan_id") == [
        {"loan_id": 3, "last_due": "2026-03-01", "versions": 3},
        {"loan_id": 4, "last_due": "2026-02-01", "versions": 1},
    ]
    page = tmp_path / "report.html"
    inlet("report", "--out", page)
    assert "loans" in page.read_text() and "invalid_json" in page.read_text()
