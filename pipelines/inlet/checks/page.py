"""Pages of checks: one of each table and run, and an index, made from checks.results by page.html. Readable without a
network, on a phone and on paper.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from inlet import storage

NO_ROWS = "no rows to check"
NUM_INDEX = 1_000  # older lines leave the index; their pages and results stay
LINE = "<tr><td>"  # how a line of the index begins


@dataclass(frozen=True)
class Checked:
    """What one run found of one table. In: rows of checks.results."""

    results: list

    @property
    def first(self):
        return self.results[0]

    @property
    def table(self) -> str:
        return self.first.table

    @property
    def run_id(self) -> int:
        return self.first.run_id

    @property
    def step(self) -> str:
        return self.first.step

    @property
    def at(self) -> str:
        return f"{self.first.checked_at:%Y-%m-%d %H:%M:%S}"

    @property
    def batches(self) -> str:
        return ", ".join(map(str, self.first.batch_ids or ["all"]))

    @property
    def is_empty(self) -> bool:
        return self.first.observed == NO_ROWS

    @property
    def failed(self) -> int:
        return sum(self.state_of(r) == "failed" for r in self.results)

    @property
    def warned(self) -> int:
        return sum(self.state_of(r) == "warned" for r in self.results)

    @property
    def state(self) -> str:
        return "failed" if self.failed else "warned" if self.warned else "held"

    @staticmethod
    def state_of(result) -> str:
        return "held" if result.success else "failed" if result.severity == "error" else "warned"


@cache
def _template() -> Any:
    text = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined).from_string(text).module


def write(docs: str, checked: dict[str, tuple[list, bool]]) -> str:
    """Write the pages of one run and its lines of the index. In: folder or URL; table -> (its results, whether it has a
    page). Out: path of the index.
    """
    lines = []
    for results, has_page in checked.values():
        of = Checked(results)
        lines.append(str(_template().line(of, has_page, NO_ROWS)))
        if has_page:
            _write(f"{docs}/{of.run_id}/{of.table}.html", str(_template().table(of)))
    index = f"{docs}/index.html"
    _write(index, str(_template().index(lines + _lines(index)[:NUM_INDEX])))
    return index


def _lines(index: str) -> list[str]:
    """What the index lists already, newest first. It is its own memory: a query over all results would grow with
    them.
    """
    files, path = storage.open_store(index)
    if not files.exists(path):
        return []
    return [line for line in files.cat_file(path).decode().splitlines() if line.startswith(LINE)]


def _write(path: str, text: str) -> None:
    files, path = storage.open_store(path)
    files.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
    files.pipe_file(path, text.encode())
