"""`inlet status --watch`: the status on a terminal, told anew again and again."""

import signal
import time
from datetime import datetime
from io import StringIO

from deltalake.exceptions import DeltaError
from rich.console import Console
from rich.live import Live
from rich.text import Text

from inlet.commands import status
from inlet.config import Project
from inlet.errors import ConfigError, InletError
from inlet.log import print_rows


def watch(project: Project, to: Console, interval: float) -> None:
    """Show the status until Ctrl-C; what it was then stays. In: seconds between two looks. Raises: ConfigError off a
    terminal."""
    if not to.is_terminal:
        raise ConfigError(
            "--watch needs a terminal", "`inlet status` shows it once, `inlet status --json` for programs"
        )
    signal.signal(signal.SIGINT, signal.default_int_handler)
    shown = Text("")
    try:
        with Live(console=to, screen=True, auto_refresh=False) as live:
            while True:
                shown = drawn(project, to.width)
                live.update(shown, refresh=True)
                time.sleep(interval)
    except KeyboardInterrupt:
        to.print(shown)


def drawn(project: Project, width: int) -> Text:
    """The status as lines of a terminal. What may pass by itself, a log that is written just now say, is said."""
    lines = Console(file=StringIO(), force_terminal=True, width=width, highlight=False)
    lines.print(f"[bold]{datetime.now():%H:%M:%S}[/]  [dim]Ctrl-C ends[/]")
    try:
        for title, rows in status.status(project).items():
            print_rows(lines, rows, title)
    except (InletError, DeltaError) as error:
        lines.print(str(error), markup=False)
    return Text.from_ansi(lines.file.getvalue())  # type: ignore[attr-defined]
