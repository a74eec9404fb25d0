"""How many changes came late, and how many records were known already, by run: noted in the figures of its steps, which
its log shows and `runs` keeps, and summed up for `inlet status` and `inlet report`."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from inlet.commands.show import time_of
from inlet.publish.late import Late

if TYPE_CHECKING:
    from inlet.silver.batch import Account

LATE, FROM, KNOWN = "late_changes", "late_from", "known_already"  # figures
MAX_PLACES, OTHERS = 5, "other files"  # that one step names
MAX_ROWS = 10  # of files


def note_late(figures: dict, late: list[Late]) -> None:
    """Source -> how many late changes altered what was public, and from when on."""
    if late:
        figures[LATE] = {one.source: one.num_changes for one in late}
        figures[FROM] = {one.source: _when(one.first_seq) for one in late}


def _when(seq: str) -> str:
    at = time_of(seq)
    return f"{at:%Y-%m-%d %H:%M:%S}" if at else seq


def note_known(figures: dict, accounts: Mapping[str, "Account"]) -> None:
    """Source and file, or partition of a topic -> how many of its records were known already. In: by source."""
    places = Counter({f"{name}/{place}": num for name, one in accounts.items() for place, num in one.repeats.items()})
    if places:
        most = dict(places.most_common(MAX_PLACES))
        num_others = places.total() - sum(most.values())
        figures[KNOWN] = most | ({OTHERS: num_others} if num_others else {})


def late_changes(runs: list[dict]) -> list[dict]:
    """A row for each source. In: runs as they are kept, the newest first."""
    rows: dict[str, dict] = {}
    for run, step in _steps(runs, LATE):
        for source, num in step[LATE].items():
            row = rows.setdefault(source, {"source": source, "late changes": 0, "altered from": "~"})
            row["late changes"] += num
            row["altered from"] = min(row["altered from"], step[FROM][source])
            row.setdefault("last in the run of", _began(run))
    return list(rows.values())


def known_already(runs: list[dict]) -> list[dict]:
    """A row for each file, those with most first. In: as `late_changes`."""
    rows: dict[str, dict] = {}
    for run, step in _steps(runs, KNOWN):
        for place, num in step[KNOWN].items():
            row = rows.setdefault(place, {"file": place, "records": 0, "last in the run of": _began(run)})
            row["records"] += num
    return sorted(rows.values(), key=lambda row: -row["records"])[:MAX_ROWS]


def _steps(runs: list[dict], figure: str) -> list[tuple[dict, dict]]:
    return [(run, step) for run in runs for step in run["steps"] if figure in step]


def _began(run: dict) -> str:
    return run["began"][:19].replace("T", " ")
