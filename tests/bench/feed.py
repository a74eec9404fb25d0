"""Qlik messages of many small tables, a file a batch, and a project that reads them: what both sides of the bench part
`runs` are given.
"""

import datetime as dt
from pathlib import Path

import yaml

from inlet import config
from inlet.commands.init import init
from inlet.gold import generate
from tests.bench.messages import COLUMNS, row
from tests.encode import qlik

NAMES = [name for name, _ in COLUMNS]
SOURCE = "bench"


class Feed:
    """Tables of one source, the rows that live, and the changes that are not delivered yet."""

    def __init__(self, root: Path, lakehouse: str = "lakehouse"):
        self.root, self.lakehouse = root, lakehouse
        self.live: dict[str, dict[int, dict]] = {}
        self.offsets: dict[str, int] = {}
        self.num_changes = self.num_files = 0
        self.waiting: list[tuple[str, dict]] = []

    def add_tables(self, names: list[str]) -> config.Project:
        """Write contracts and models of further tables. Out: the project with them."""
        if not self.root.exists():
            init(self.root)
        self.live |= {name: {} for name in names}
        tables = {f"bench.{name}": f"BENCH.{name.upper()}" for name in self.live}
        source = {"codec": "qlik_json", "from": "landing/*.parquet", "tables": tables}
        (self.root / "pipelines" / "inlet.yml").write_text(
            yaml.safe_dump({"lakehouse": self.lakehouse, "sources": {SOURCE: source}})
        )
        columns = [{"name": n, "type": t} for n, t in COLUMNS]
        for name in names:
            contract = {"table": f"BENCH.{name.upper()}", "name": name, "key": ["ID"], "columns": columns}
            (self.root / "pipelines" / "tables" / f"{name}.yml").write_text(yaml.safe_dump(contract))
        (self.root / "landing").mkdir(exist_ok=True)
        project = config.load(self.root)
        generate.write(project)
        return project

    def insert(self, name: str, num: int) -> None:
        """New rows of a table."""
        first = max(self.live[name], default=0) + 1
        for number in range(first, first + num):
            self._add(name, "INSERT", None, row(number))

    def change(self, name: str, num: int) -> None:
        """Changes of a table: of ten, eight update rows, one inserts a row and one deletes one."""
        for _ in range(num):
            rows, kind = self.live[name], self.num_changes % 10
            if kind == 8:
                self.insert(name, 1)
                continue
            before = rows[sorted(rows)[self.num_changes * 7919 % len(rows)]]
            if kind == 9:
                self._add(name, "DELETE", before, None)
            else:
                self._add(name, "UPDATE", before, before | {"QUANTITY": self.num_changes, "STATE": "CHANGED"})

    def _add(self, name: str, operation: str, before: dict | None, after: dict | None) -> None:
        self.num_changes += 1
        if after is None:
            del self.live[name][before["ID"]]
        else:
            self.live[name][after["ID"]] = after
        change = {
            "operation": operation,
            "before": before,
            "after": after,
            "change_seq": f"2026010203040500{self.num_changes:019}",
            "transaction_id": f"{self.num_changes:032}",
            "transaction_event_counter": 1,
            "transaction_last_event": True,
            "change_timestamp": "2026-01-02T03:04:05.000",
            "stream_position": "00000000.00bb2531.00000001",
        }
        self.waiting.append((name, change))

    def deliver(self) -> Path:
        """Write a file of the changes that wait."""
        self.num_files += 1
        messages = []
        for name in dict.fromkeys(name for name, _ in self.waiting):
            values = [qlik.value(change, NAMES) for table, change in self.waiting if table == name]
            offset = self.offsets.get(name, 0)
            start = qlik.START + dt.timedelta(hours=self.num_files)
            messages += qlik.rows(values, f"bench.{name}", offset=offset, start=start)
            self.offsets[name] = offset + len(values)
        self.waiting = []
        path = self.root / "landing" / f"{self.num_files:06}.parquet"
        qlik.write_parquet(messages, path)
        return path
