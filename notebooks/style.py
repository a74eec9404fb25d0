"""How the notebooks look: tables, commands, bytes, and one style for all plots."""

import os
import shlex
import subprocess
import tempfile
from datetime import date, datetime
from decimal import Decimal
from html import escape

import matplotlib.pyplot as plt
from matplotlib import dates

BLUE, ORANGE, GREEN, RED, PURPLE, GREY, LIGHT = (
    "#2f6db3",
    "#e08a1e",
    "#3a9679",
    "#c8453b",
    "#7d5ba6",
    "#7b8794",
    "#d5dbe1",
)
SERIES = [BLUE, ORANGE, GREEN, PURPLE, RED, GREY, "#8cb4dc", "#b5c98a"]
SOURCE = {
    "shop": BLUE,
    "depot_tokyo": ORANGE,
    "depot_osaka": GREEN,
    "depot_nagoya": RED,
    "carrier": PURPLE,
    "returns": GREY,
}
STATUS = {"open": "#8cb4dc", "paid": BLUE, "shipped": GREEN, "refunded": ORANGE}
OUTCOME = {"changes": BLUE, "repeats": "#8cb4dc", "control": LIGHT, "rejected": RED}

plt.rcParams.update(
    {
        "figure.figsize": (9, 3.2),
        "figure.dpi": 100,
        "figure.constrained_layout.use": True,
        "font.size": 10,
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": GREY,
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "grid.color": "#e6e9ed",
        "axes.prop_cycle": plt.cycler(color=SERIES),
        "legend.frameon": False,
        "xtick.color": "#4a5560",
        "ytick.color": "#4a5560",
    }
)


class Table:
    """Rows that Jupyter shows as a table, and a page of Markdown too."""

    def __init__(self, columns: list[str], rows: list, more: int = 0):
        self.columns, self.rows, self.more = columns, rows, more
        self.numeric = [
            any(isinstance(row[n], (int, float, Decimal)) and not isinstance(row[n], bool) for row in rows)
            for n in range(len(columns))
        ]

    def _cells(self):
        return [[_text(name, value) for name, value in zip(self.columns, row)] for row in self.rows]

    def _repr_markdown_(self) -> str:
        lines = [self.columns, ["---:" if is_number else "---" for is_number in self.numeric]]
        lines += [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in self._cells()]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines) + (
            f"\n\n*and {self.more:,} rows more*" if self.more else ""
        )

    def _repr_html_(self) -> str:
        def line(tag: str, cells: list[str]) -> str:
            sides = ["right" if is_number else "left" for is_number in self.numeric]
            return "".join(
                f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>' for side, cell in zip(sides, cells)
            )

        body = "".join(f"<tr>{line('td', cells)}</tr>" for cells in self._cells())
        more = f"<p><em>and {self.more:,} rows more</em></p>" if self.more else ""
        return f"<table><thead><tr>{line('th', self.columns)}</tr></thead><tbody>{body}</tbody></table>{more}"


def table(rows, limit: int = 12) -> Table:
    """In: a Spark DataFrame, or a list of dicts. Out: its first rows, to be shown."""
    if hasattr(rows, "collect"):
        columns, rows = rows.columns, [tuple(row) for row in rows.collect()]
    else:
        columns, rows = list(rows[0]) if rows else [], [tuple(row.values()) for row in rows]
    return Table(columns, rows[:limit], max(0, len(rows) - limit))


def _text(name: str, value) -> str:
    """A value as a cell: numbers with separators but for ids, times without empty fractions, bytes as hex."""
    if value is None:
        return "NULL"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    if isinstance(value, (bytes, bytearray)):
        return value.hex(" ").upper()
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}" + (f".{value.microsecond // 1000:03d}" if value.microsecond else "")
    if isinstance(value, (bool, date, str)):
        return str(value)
    if isinstance(value, int) and name.endswith(("_id", "_no", "number", "batch")):
        return str(value)
    return f"{value:,}" if isinstance(value, (int, Decimal)) else f"{value:,.2f}"


COLORS = ("FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")  # a kernel sets them, and then a pipe is taken for a terminal


def shell(command: str, cwd: str | None = None, quiet: bool = False) -> None:
    """Run a command and print what it says; when quiet, only what it says where it fails."""
    print(f"$ {command}")
    done = subprocess.run(
        shlex.split(command),
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={name: value for name, value in os.environ.items() if name not in COLORS} | {"NO_COLOR": "1"},
    )
    if done.returncode or not quiet:
        print(done.stdout.rstrip().replace(tempfile.gettempdir(), "/tmp"))
    if done.returncode:
        raise RuntimeError(f"{command} ended with exit code {done.returncode}")


def hex_dump(data: bytes, start: int = 0, mark: range = range(0), width: int = 16) -> None:
    """Print bytes, sixteen a line, with their offsets; those of `mark` (offsets, too) in brackets."""
    for line in range(0, len(data), width):
        piece = data[line : line + width]
        cells = [f"[{byte:02X}]" if start + line + n in mark else f" {byte:02X} " for n, byte in enumerate(piece)]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        print(f"{start + line:>8,}  {''.join(cells):{width * 4}}  {text}")


def time_axis(axes, hours: int = 12) -> None:
    """Days and hours below a plot, in UTC."""
    axes.xaxis.set_major_locator(dates.HourLocator(byhour=range(0, 24, hours)))
    axes.xaxis.set_major_formatter(dates.DateFormatter("%d %b\n%H:%M"))


def legend(axes, columns: int = 1, **how) -> None:
    """A legend to the right of the plot."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), ncols=columns, **how)
