"""What a person sees while a run works, and what a log collector gets: one line per step.

On a terminal: a spinner while a step works, with what it does, the seconds so far and, where its parts are counted,
the time left; then a line with its figures. Elsewhere: one JSON object per line on standard error, so that nothing has
to parse prose. There a long step says a line for each part that it has done, and one a minute.
"""

import json
import math
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

WIDE = 200  # characters where there is no terminal to ask
NARROW = 20  # with fewer no card has room: a width of 0 says that none is known
GAP = 2  # blanks between two columns
# a word of a cell is not divided up to the first length; a column of longer ones is never narrower than the second
LONG, SHORT = 40, 24
MAX_LINES = 6  # of a cell


def console(stderr: bool = False) -> Console:
    """A console that is as wide as COLUMNS says, or its terminal, and WIDE where its output goes to a file."""
    plain = Console(stderr=stderr, highlight=False)
    has_width = plain.is_terminal or os.environ.get("COLUMNS", "").isdigit()
    return plain if has_width and plain.width >= NARROW else Console(stderr=stderr, highlight=False, width=WIDE)


def print_rows(to: Console, rows: list[dict], title: str = "") -> None:
    """What Inlet says of itself: rows of the same names as a table, times to the second, nothing for null."""
    if title:
        to.print(f"[bold]{title}[/]")
    print_table(
        to,
        list(rows[0]) if rows else [],
        [[v.replace(microsecond=0) if isinstance(v, datetime) else v for v in row.values()] for row in rows],
    )


def print_table(to: Console, columns: list[str], rows: list, null: str = "", is_upright: bool = False) -> None:
    """A table: numbers to the right with separators, ids as they are, null as `null` says. Where the columns have no
    room, or that is asked for, each row is a card with a line for each value. In: rows as lists, because two columns
    may have one name."""
    if not rows:
        to.print("none")
        return
    cells = [
        [Text(null, "dim") if value is None else Text(_cell(name, value)) for name, value in zip(columns, row)]
        for row in rows
    ]
    widths = None if is_upright else column_widths(columns, [[cell.plain for cell in row] for row in cells], to.width)
    if widths is None:
        for number, row in enumerate(cells, 1):
            upright = Table(
                title=f"row {number}",
                title_justify="left",
                title_style="dim",
                show_header=False,
                box=None,
                pad_edge=False,
            )
            upright.add_column(style="dim", overflow="fold")
            upright.add_column(overflow="fold")
            for name, cell in zip(columns, row):
                if cell.plain or is_upright or null:
                    upright.add_row(Text(name), cell)
            _print(to, upright)
        return
    table = Table(header_style="dim", box=None, pad_edge=False)
    for name, values, width in zip(columns, zip(*rows), widths):
        is_number = any(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold", width=width)
    for row in cells:
        table.add_row(*row)
    _print(to, table)


def column_widths(columns: list[str], rows: list[list[str]], room: int) -> list[int] | None:
    """How wide each column of a table is, so that no name and no word of up to LONG characters is divided; None where
    there is no room for that.

    >>> column_widths(["id", "note"], [["7", "what a person says of it"]], 20)
    [2, 16]
    >>> column_widths(["valid_from_seq", "valid_to_seq"], [["1", "2"]], 27) is None
    True
    """
    room -= GAP * (len(columns) - 1)
    least, most = [], []
    for values in zip(columns, *rows):
        words = max(cell_len(word) for value in values for word in value.split() or [""])
        longest = max(cell_len(line) for value in values for line in value.splitlines() or [""])
        name = max((cell_len(word) for word in values[0].split()), default=1)
        least.append(max(name, words if words <= LONG else SHORT, -(-longest // MAX_LINES)))
        most.append(max(longest, 1))
    if sum(least) > room:
        return None
    widths, left = list(least), room - sum(least)
    lacking = sorted(range(len(columns)), key=lambda n: most[n] - least[n])
    for done, n in enumerate(lacking):  # those that lack least get all of it
        more = min(most[n] - least[n], left // (len(columns) - done))
        widths[n], left = least[n] + more, left - more
    return widths


def _print(to: Console, table: Table) -> None:
    """Print a table; a file gets no blanks at the ends of its lines."""
    if to.is_terminal:
        to.print(table)
        return
    for line in to.render_lines(table, pad=False):
        to.print("".join(piece.text for piece in line).rstrip(), markup=False, emoji=False, soft_wrap=True)


def as_json(value):
    """How values without a JSON form are printed: bytes as hex, decimals and times as text."""
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"  # str() turns to exponents: 0E-9
    return value.isoformat() if isinstance(value, date) else str(value)


def json_of(value) -> str:
    """A value as JSON. NaN, Infinity and -Infinity are texts of these names, as Spark's to_json has them: JSON has no
    such numbers, and null is another value.
    """
    try:
        return json.dumps(value, ensure_ascii=False, default=as_json, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, default=as_json)


def _finite(value):
    if isinstance(value, dict):
        return {name: _finite(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(_finite, value))
    return json.dumps(value) if isinstance(value, float) and not math.isfinite(value) else value


def as_text(value):
    """A value of any type for a cell: structs, lists and maps as JSON, bytes as hex, decimals with all their digits,
    others as they are.
    """
    if isinstance(value, (dict, list)):
        return json_of(value)
    return as_json(value) if isinstance(value, (bytes, bytearray, Decimal)) else _finite(value)


def _cell(name: str, value) -> str:
    value = as_text(value)
    if isinstance(value, datetime):
        return str(value.replace(tzinfo=None))
    is_count = (
        isinstance(value, int)
        and not isinstance(value, bool)
        and not name.lower().endswith(("id", "no", "code", "year"))
    )
    return f"{value:,}" if is_count else str(value)


class Doing:
    """What the step at hand is about, told anew whenever the spinner of a terminal is drawn."""

    def __init__(self, step: str, place: dict):
        self.step, self.place, self.began = step, place, time.monotonic()
        self.what, self.done, self.of, self.first, self.at = "", 0, 0, self.began, self.began

    def now(self, what: str, done: int, of: int, since: float | None) -> None:
        if done != self.done or since:
            self.at = time.monotonic()
        self.what, self.done, self.of, self.first = what, done, of, since or self.began

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self.began, 1)

    def __rich__(self) -> Text:
        parts = [self.what] + [f"{self.done} of {self.of} done"] * bool(self.of) + [f"{self.seconds:.0f} s"]
        if left := time_left(self.at - self.first, self.done, self.of, time.monotonic() - self.at):
            parts.append(left)
        text = Text.assemble((self.step, "bold"), f" {_plain(self.place)} ... ")
        return text.append("  ".join(filter(None, parts)), "dim")


def time_left(seconds: float, done: int, of: int, ago: float = 0) -> str:
    """How long the rest takes if it goes on as it has so far; "" before anything is done, and where it takes longer.
    In: seconds until the last part was done; how long ago that was.

    >>> time_left(60, 2, 6), time_left(60, 1, 41, 10), time_left(5, 0, 6), time_left(5, 1, 2, 9)
    ('about 2 min left', 'about 40 min left', '', '')
    """
    rest = seconds / done * (of - done) - ago if 0 < done < of else 0
    if rest < 1:
        return ""
    return f"about {rest / 60:.0f} min left" if rest >= 90 else f"about {rest:.0f} s left"


def counted(num: int, what: str) -> str:
    """
    >>> counted(1, "file"), counted(2_000, "record")
    ('1 file', '2,000 records')
    """
    return f"{num:,} {what}" + "s" * (num != 1)


def _by_name(counts: Mapping[str, int]) -> str:
    """Counts, the greatest first: `bad_date 2, missing_key 1`."""
    return ", ".join(f"{name} {num:,}" for name, num in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


class Log:
    """In: whether to speak to a person; by default, whether standard error is a terminal; seconds between the lines of
    a long step where there is no terminal."""

    def __init__(self, is_human: bool | None = None, every: float = 60):
        self.console = console(stderr=True)
        self.is_human = self.console.is_terminal if is_human is None else is_human
        self.every = every
        self.steps: list[dict] = []
        self.doing: Doing | None = None

    @property
    def is_drawing(self) -> bool:
        return self.console.is_terminal and self.is_human

    def now(
        self, doing: str, done: int = 0, of: int = 0, since: float | None = None, finished: dict | None = None
    ) -> None:
        """What the step at hand is about. In: how many of its parts are done, and since when (monotonic) the first of
        them was begun, where that was before the step; figures of a part that has just ended, which gets a line where
        there is no terminal."""
        if self.doing:
            self.doing.now(doing, done, of, since)
            if finished and not self.is_drawing:
                self.say({"step": self.doing.step} | finished | ({"done": done, "of": of} if of else {}))

    @contextmanager
    def working(self, step: str, **place):
        """Says what a step is about while it works: by a spinner, or by a line a minute."""
        self.doing, ended = Doing(step, place), threading.Event()
        if self.is_drawing:
            spinner = self.console.status(self.doing, refresh_per_second=4)
            spinner.start()
        else:
            threading.Thread(target=self._say_at_times, args=(self.doing, ended), daemon=True).start()
        try:
            yield
        finally:
            ended.set()
            self.doing = None
            if self.is_drawing:
                spinner.stop()

    def _say_at_times(self, doing: Doing, ended: threading.Event) -> None:
        while not ended.wait(self.every):
            so_far = {"done": doing.done, "of": doing.of} if doing.of else {}
            self.say(
                {"step": doing.step} | doing.place | {"doing": doing.what, "so_far": f"{doing.seconds} s"} | so_far
            )

    @contextmanager
    def step(self, name: str, **place):
        """Time one step. Yields a dict to put its figures into; it is written even when the step fails."""
        figures: dict = {}
        start, is_done = time.monotonic(), False
        try:
            with self.working(name, **place):
                yield figures
            is_done = True
        finally:
            entry = {"step": name} | place | figures | {"seconds": round(time.monotonic() - start, 2)}
            entry |= {} if is_done else {"failed": True}
            self.steps.append(entry)
            self.say(entry)

    def say(self, entry: dict) -> None:
        """One line about one thing."""
        if self.is_human:
            figures = {k: v for k, v in entry.items() if k not in ("step", "seconds")}
            seconds = f"{entry['seconds']:7.2f} s" if "seconds" in entry else " " * 9
            self.console.print(f"{seconds}  [bold]{entry.get('step', ''):<8}[/] {escape(_plain(figures))}")
        else:
            line = json.dumps({"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())} | entry, default=str)
            print(line + "\n", end="", file=sys.stderr, flush=True)  # at once, for another thread may say one, too

    def error(self, message: str, remedy: str) -> None:
        """What ended the command, as the last line: a sentence for a person, else a line as the others are."""
        if self.is_human:
            print(f"inlet: {message}. {remedy}" if remedy else f"inlet: {message}", file=sys.stderr)
        else:
            self.say({"step": "error", "level": "error", "message": message, "remedy": remedy or None})


def _plain(figures: dict) -> str:
    shown = {k.replace("_", " "): _figure(k, v) for k, v in figures.items()}
    return "  ".join(f"{k} {v}" for k, v in shown.items() if v not in (None, ""))


def _figure(name: str, value):
    if isinstance(value, dict):
        is_counts = all(isinstance(one, int) for one in value.values())
        return _by_name(value) if is_counts else ", ".join(f"{name} {one}" for name, one in value.items())
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) and name != "seed" else value
