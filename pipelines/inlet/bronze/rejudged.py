"""The verdicts of a file that is delivered anew: what the feed's marks have judged stays judged, and only what waits
for a verdict is judged by it.
"""

import json
from typing import NoReturn

from inlet.bronze import ordered
from inlet.bronze.history import Reading
from inlet.codecs.codec import UNDECIDED
from inlet.codecs.results import ABANDONED, STANDS
from inlet.errors import ConfigError
from inlet.source import Source


def judge(source: Source, path: str, row: dict, rows: list[Reading], num_good: int, is_read_on: bool) -> dict:
    """A row of bronze.files whose verdicts judge only what waits for one. In: what its file's marks judge; the source's
    rows so far; how far the records reach that were landed of the file; whether files after it were read.

    Raises: ConfigError where what was judged before would be judged otherwise, or waits for a file after this one.
    """
    context, waiting = json.loads(row["context"]), ordered.undecided(source, rows)
    said, batch_id = verdicts(rows), row["batch_id"]
    judged, undecided = list[list](), list[list]()
    for one in json.loads(row["verdicts"]):
        of, start, end, _, by, verdict = one
        is_own = by == batch_id and of == path
        old = _verdicts_on(said, of, start, min(end, num_good) if is_own else end)
        if is_own and verdict == ABANDONED and STANDS in old or not is_own and old not in ({verdict}, {None}):
            raise ConfigError(
                f"{path} says that records of {of} from byte {start} on are {verdict}, and they were taken as "
                f"{', '.join(sorted(filter(None, old)))} before: what is in silver stays",
                "Only a lakehouse that is built anew, from the good files, is without it",
            )
        if is_own or old == {None}:
            judged.append(one)
    for one in context[UNDECIDED]:
        of, start, end, _, by = one
        old = _verdicts_on(said, of, start, end)
        if by == batch_id and of == path and is_read_on:
            if len(old) > 1 or None in old:
                _waits_for_a_verdict(path)
            judged.append([*one, *old])
        elif by == batch_id and of == path or old == {None}:
            undecided.append(one)
    if superseded := [one for one in waiting if one[0] == path]:
        if is_read_on:
            _waits_for_a_verdict(path)
        judged += [[*one, ABANDONED] for one in superseded]
    return row | {"verdicts": json.dumps(judged), "context": json.dumps(context | {UNDECIDED: undecided})}


def _waits_for_a_verdict(path: str) -> NoReturn:
    raise ConfigError(
        f"Records of {path} belong to a transaction whose end no file has told yet",
        "`inlet run` once the next file has come, then `inlet replay --file` again",
    )


def verdicts(rows: list[Reading]) -> list[list]:
    """The verdicts on each file as it was read last. In: rows of bronze.files, by batch."""
    began = {row["path"]: row["batch_id"] for row in rows if row.begins_file}
    said = [one for row in rows for one in json.loads(row["verdicts"] or "[]")]
    return sorted(one for one in said if one[4] >= began.get(one[0], 0))


def _verdicts_on(said: list[list], path: str, start: int, end: int) -> set[str | None]:
    """What was said of the bytes of a range; None among it where some were not judged."""
    found, at = set[str | None](), start
    for of, low, high, _, _, verdict in said:
        if of == path and low < end and high > start:
            found |= {verdict, None} if low > at else {verdict}
            at = max(at, high)
    return found | {None} if at < end else found
