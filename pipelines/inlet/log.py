"""What a person sees while a run works, and what a log collector gets: one line per step.

On a terminal: a spinner while a step works, then a line with its figures. Elsewhere: one JSON object per line on standard
error, so that nothing has to parse prose.
"""

import json
import sys
import time
from contextlib import contextmanager

from rich.console import Console


class Log:
    """In: whether to speak to a person; by default, whether standard error is a terminal."""

    def __init__(self, is_human: bool | None = None):
        self.console = Console(stderr=True, highlight=False)
        self.is_human = self.console.is_terminal if is_human is None else is_human
        self.steps: list[dict] = []

    @contextmanager
    def step(self, name: str, **place):
        """Time one step. Yields a dict to put its figures into; it is written even when the step fails."""
        figures: dict = {}
        start, is_done = time.monotonic(), False
        spinner = self.console.status(f"[bold]{name}[/] {_plain(place)} ...") if self.console.is_terminal and self.is_human else None
        if spinner:
            spinner.start()
        try:
            yield figures
            is_done = True
        finally:
            if spinner:
                spinner.stop()
            entry = {"step": name} | place | figures | {"seconds": round(time.monotonic() - start, 2)}
            self.steps.append(entry)
            self.say(entry if is_done else entry | {"failed": True})

    def say(self, entry: dict) -> None:
        """One line about one thing."""
        if self.is_human:
            figures = {k: v for k, v in entry.items() if k not in ("step", "seconds")}
            seconds = f"{entry['seconds']:7.2f} s" if "seconds" in entry else " " * 9
            self.console.print(f"{seconds}  [bold]{entry.get('step', ''):<8}[/] {_plain(figures)}")
        else:
            print(json.dumps({"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())} | entry, default=str), file=sys.stderr)


def _plain(figures: dict) -> str:
    return "  ".join(f"{k.replace('_', ' ')} {v:,}" if isinstance(v, int) and not isinstance(v, bool) else f"{k.replace('_', ' ')} {v}"
                     for k, v in figures.items() if v not in (None, ""))
