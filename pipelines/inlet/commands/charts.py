"""Shapes of the report's charts: numbers in, places in a field of 100 by 100 out, which the page stretches to the room
there is. Axes and words are HTML beside it, so that they keep their size on a phone.
"""

from datetime import datetime
from typing import NamedTuple

MIN_SLOTS = 8  # so that two batches are no walls


class Part(NamedTuple):
    """A piece of a bar."""

    kind: str  # what the page colours it by
    x: float
    y: float
    width: float
    height: float
    title: str


class Chart(NamedTuple):
    parts: list[Part]
    path: str  # of a line; "" for bars
    top: float  # the value at the upper edge
    first: str  # what stands at the left end, and at the right
    last: str
    share: float = 100  # of the width that is drawn on


def bars(rows: list[tuple[str, dict[str, float]]], unit: str = "") -> Chart:
    """Stacked bars. In: label and the values of its pieces, for each bar.

    >>> chart = bars([("1", {"changes": 3, "rejected": 1}), ("2", {"changes": 2, "rejected": 0})])
    >>> chart.top, [(p.kind, p.y, p.height) for p in chart.parts]
    (4, [('changes', 25.0, 75.0), ('rejected', 0.0, 25.0), ('changes', 50.0, 50.0)])
    """
    top = max((sum(values.values()) for _, values in rows), default=0)
    slot = 100 / max(len(rows), MIN_SLOTS)
    parts = []
    for n, (label, values) in enumerate(rows):
        y = 100.0
        for kind, value in values.items():
            if value and top:
                height = value / top * 100
                y -= height
                title = f"{label}: {value:,.10g}{unit} {kind}"
                parts.append(Part(kind, round(n * slot, 3), round(y, 3), round(slot * 0.8, 3), round(height, 3), title))
    ends = (rows[0][0], rows[-1][0]) if rows else ("", "")
    return Chart(parts, "", top, *ends, share=round(len(rows) * slot, 2))


def steps(points: list[tuple[datetime, float]], until: datetime) -> Chart:
    """A line that keeps each value until the next. In: (when, value), oldest first; where the line ends."""
    if not points:
        return Chart([], "", 0, "", "")
    begin, end, top = points[0][0], max(until, points[-1][0]), max(value for _, value in points)
    width = (end - begin).total_seconds() or 1

    def place(at: datetime, value: float) -> tuple[float, float]:
        return round((at - begin).total_seconds() / width * 100, 2), round(100 - (value / top * 100 if top else 0), 2)

    path = ""
    for n, (at, value) in enumerate(points):
        x, y = place(at, value)
        path += f"M{x} {y}" if n == 0 else f"H{x}V{y}"
    return Chart([], path + "H100", top, f"{begin:%Y-%m-%d %H:%M}", f"{end:%Y-%m-%d %H:%M}")


def spark(values: list[float]) -> str:
    """The path of a small line without axes; "" where there is nothing to compare.

    >>> spark([1, 2, 0]), spark([5])
    ('M0 50.0L50.0 0.0L100.0 100.0', '')
    """
    if len(values) < 2:
        return ""
    top = max(values) or 1
    places = [(n / (len(values) - 1) * 100, 100 - value / top * 100) for n, value in enumerate(values)]
    return "M0 " + "L".join(f"{round(x, 2)} {round(y, 2)}" for x, y in places).removeprefix("0.0 ")
