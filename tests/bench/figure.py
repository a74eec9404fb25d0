"""One measured ratio, and how to take the best of a few rounds."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    what: str
    against: str
    ratio: float
    bound: str  # "at least 0.75", "at most 1.5", or ""
    measured: str

    def holds(self) -> bool | None:
        words = self.bound.split()
        return (
            None
            if not words
            else self.ratio >= float(words[2])
            if words[1] == "least"
            else self.ratio <= float(words[2])
        )

    def line(self) -> str:
        verdict = {None: "", True: "holds", False: "[red]missed[/]"}[self.holds()]
        return (
            f"{self.ratio:6.2f}  {self.what} / {self.against}   ({self.bound or 'no bound'} {verdict}; {self.measured})"
        )

    def row(self) -> str:
        missed = "" if self.holds() is not False else " **missed**"
        return f"| {self.what} | {self.against} | {self.ratio:.2f} | {self.bound}{missed} | {self.measured} |"


def best(action: Callable[[], object], rounds: int = 3) -> float:
    """Seconds of the fastest round."""
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        taken.append(time.perf_counter() - started)
    return min(taken)
