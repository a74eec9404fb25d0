"""Which bytes of which files a batch takes, with their sha-256: the plan that landing.py writes and follows.

Only whole records are taken from a file that still grows; an unfinished last record waits, and is landed as a reject
once the file has rested for `settle_minutes`. A file that is taken as a whole and has no end of its own waits as long.
A link that leaves its source's folder is not followed. A file that cannot be opened is held, and tried again by each
run; no file keeps another one from being planned.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inlet import store_errors
from inlet.bronze import deliveries, file_rows, history, kafka, ordered, places, purged
from inlet.bronze.companions import companions_of, content_of, fails, num_records
from inlet.bronze.files import GONE, has_settled, listing, utc
from inlet.bronze.framing import attempt
from inlet.bronze.history import History, Place, Reading
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.config import Project
from inlet.errors import InletError, Reject, TryAgain
from inlet.source import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Plan:
    """What one batch takes: rows of `bronze.files`."""

    batch_id: int
    files: list[dict[str, Any]] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)  # path -> bytes of an unfinished last record
    settle_minutes: dict[str, float] = field(default_factory=dict)  # path -> how long those wait
    open_options: dict[str, list[str]] = field(default_factory=dict)  # path -> options that would tell how it is read
    unlisted: dict[str, InletError] = field(default_factory=dict)  # source -> why nobody can see what it has
    held: dict[str, str] = field(default_factory=dict)  # path -> what a file waits for
    ignored: dict[tuple[str, str], int] = field(default_factory=dict)  # (source, why) -> files that are not read
    listed: dict[str, dict[str, dict]] = field(default_factory=dict)  # source -> its files, of feeds that remove some
    notes: dict[str, str] = field(default_factory=dict)  # topic -> what its owner should know

    def wait(self, source: Source, path: str, info: dict, num_bytes: int, open_options: list[str]) -> None:
        """Name a file whose last bytes are unfinished, or all of which fits several readings by the options that are
        open. Where its store tells no time they never rest.
        """
        if open_options:
            self.open_options[path] = open_options
        if info["modified"] is not None:
            self.waiting[path], self.settle_minutes[path] = num_bytes, source.settle_minutes
            return
        self.held[path] = (
            f"the rest of a record of which {num_bytes} bytes are there: its store gives no time of its last change, "
            "so that it never rests; settle_minutes: 0 says that files come whole"
        )

    def what_waits(self, path: str) -> str:
        """What of a file waits, in words."""
        if path in self.open_options:
            return f"its {self.waiting[path]:,} bytes, which fit more than one reading so far,"
        return f"its last {self.waiting[path]:,} bytes, which may be unfinished,"

    def end_of_wait(self, path: str) -> str:
        """What ends the wait of a file's last bytes, in words."""
        minutes, options = f"{self.settle_minutes[path]:g} minutes", self.open_options.get(path, [])
        is_set = "is set, an option that is" if len(options) == 1 else "are set, options that are"
        first = f"{', '.join(options)} {is_set} auto," if options else "it goes on"
        return f"until {first} or nothing was written for {minutes} (settle_minutes; 0 says that files come whole)"

    def of(self, has_messages: bool, project: Project) -> list[dict]:
        """Its files that hold messages, or blocks."""
        return [
            f for f in self.files if f["num_units"] and project.sources[f["source"]].brings_messages == has_messages
        ]


def plan_batch(
    project: Project,
    sources: list[Source],
    past: History,
    now: float | None = None,
    spark: Callable[[], "SparkSession"] | None = None,
) -> Plan:
    """What there is to land now. In: what begins a session, which is called where its tasks run on other machines and
    have much to read. Out: a Plan, without files when nothing is new."""
    new = Plan(batch_id=past.next_batch)
    last, good = dict[Place, Reading](), dict[Place, Reading]()  # of the files that are listed
    begun = dict[Place, int]()  # -> the batch that read it first
    wanted: list[ordered.Listed] = []
    unplaced: dict[str, list[str]] = {}  # source -> files that are there, of which nobody knows where they belong
    for source in sources:
        if source.broker:
            _plan_broker(project, source, past, new)
            continue
        listed = _read(source, _listed(project, source, new), new)
        readings = past.of_files([source.name], [path for path, _ in listed])
        last |= history.last(readings)
        good |= history.good(readings)
        begun |= history.begun(readings)
        wanted += _wanted(project, source, listed, last, good, unplaced, new, now)
    places.hold(project, wanted, past)
    _plan_wanted(project, wanted, file_rows.of_files(project, wanted, past, unplaced, spark), last, new)
    for source in sources:
        if source.name in new.listed and source.name not in new.unlisted:
            purged.plan(project, source, past, new)
    for row in new.files:
        row["cause"] = history.cause(row, begun.get((row["source"], row["path"])))
    return new


def _wanted(
    project: Project,
    source: Source,
    listed: list[tuple[str, dict]],
    last: dict[Place, Reading],
    good: dict[Place, Reading],
    unplaced: dict,
    new: Plan,
    now: float | None,
) -> list[ordered.Listed]:
    """The files of a source that are to be looked at. In: those that are listed; the last reading of each, and the last
    one without a problem; both `unplaced` and the plan are added to.
    """
    wanted: list[ordered.Listed] = []
    resting: list[tuple[ordered.Listed, list]] = []  # files that are as they were landed, with their companions
    renewed: set[str | None] = set()  # tables of which a file is of a new load
    may_end_others = ordered.ends_with_next(source) and any((source.name, path) not in last for path, _ in listed)
    for path, info in listed:
        names = companions_of(source, path)
        if names is None:
            continue  # comes with another file
        if isinstance(names, Reject):
            new.held[path] = fails(source, names)
            continue
        known, is_settled = last.get((source.name, path)), has_settled(source, info["modified"], now)
        landed_before = good.get((source.name, path))
        if ordered.tells_no_place(source, known, landed_before):
            unplaced.setdefault(source.name, []).append(path)
        if known and not info["held"] and is_as_listed(known, info):
            tail = 0 if known["problem"] else info["size"] - known["ofs_end"]
            if tail and not is_settled:
                new.wait(source, path, info, tail, [])
            info["is_told_missing"] = ordered.is_missing(known)
            if not (
                info["is_told_missing"]
                or tail
                and (is_settled or may_end_others)
                or deliveries.has_other_settings(project, source, known)
                or deliveries.was_rewritten(source, known, landed_before)
            ):
                resting.append((ordered.Listed(source, path, info, landed_before, is_settled), names))
                continue
        companions = content_of(project, source, path, names, is_settled)
        if landed_before and isinstance(companions, str):  # what it was read with is known
            companions = {}
        if isinstance(companions, str):
            info["held"] = companions
        elif deliveries.is_new_load(source, path, companions, landed_before):
            renewed.add(deliveries.table_of_load(source, landed_before))
            landed_before = None
        elif known and deliveries.was_rewritten(source, known, landed_before) and is_as_listed(known, info):
            continue
        said = num_records(source, path, companions) if isinstance(companions, dict) else None
        info |= {"batch_id": new.batch_id, "companions": companions, "num_records": said}
        wanted.append(ordered.Listed(source, path, info, landed_before, is_settled))
    return wanted + _moved(project, source, [one for one in resting if renewed], renewed, new)


def _moved(
    project: Project, source: Source, resting: list[tuple[ordered.Listed, list]], renewed: set[str | None], new: Plan
) -> list[ordered.Listed]:
    """The files of new loads that were landed before the first one of their load told of it. In: files that are as they
    were landed, with their companions; the tables of which a file is of a new load.
    """
    found = []
    for file, names in resting:
        if deliveries.table_of_load(source, file.known) not in renewed:
            continue
        companions = content_of(project, source, file.path, names, file.has_settled)
        if not isinstance(companions, dict) or not companions:
            continue  # nothing tells it from a file of the load before
        if deliveries.is_new_load(source, file.path, companions, file.known):
            said = num_records(source, file.path, companions)
            file.info.update(batch_id=new.batch_id, companions=companions, num_records=said)
            found.append(file._replace(known=None))
    return found


def _plan_wanted(
    project: Project, wanted: list[ordered.Listed], rows: list[dict | str | None], last: dict[Place, Reading], new: Plan
) -> None:
    """Add to a plan what can land of files, and what the others wait for. In: their rows of bronze.files, or what they
    wait for.
    """
    for (source, path, info, landed_before, is_settled), row in zip(wanted, rows, strict=True):
        if isinstance(row, str):
            new.held |= {path: row} if row != GONE else {}
            continue
        if row is None:  # it grew while it was read
            new.wait(source, path, info, info["size"], [])
            continue
        if not is_settled and deliveries.was_rewritten(source, row, landed_before):
            new.held[path] = deliveries.waits_for_load(source)
            continue
        if row["ofs_end"] < info["size"] and not row["problem"]:
            new.wait(source, path, info, info["size"] - row["ofs_end"], row.get("open_options") or [])
        known = last.get((source.name, path))
        is_news = not known or known["problem"]  # an empty file, or one that is back as it was
        has_grown = known and not known["problem"] and row["ofs_end"] > known["ofs_end"]  # by blanks alone
        if row["num_units"] or row["problem"] or has_grown or is_news and row["ofs_end"] == info["size"]:
            new.files.append(
                {"verdicts": None}
                | row
                | {
                    "source": source.name,
                    "path": path,
                    "size_bytes": info["size"],
                    "modified_at": info["modified"],
                    "batch_id": new.batch_id,
                }
            )


def _read(source: Source, listed: list[tuple[str, dict]], new: Plan) -> list[tuple[str, dict]]:
    """The files of a source that are read; the others are counted."""
    codec = CODECS[source.codec]
    if offers(codec, "purged_table") and not source.brings_messages:
        new.listed[source.name] = dict(listed)
    if not offers(codec, "ignored"):
        return listed
    found = []
    for path, info in listed:
        why = attempt(codec.ignored, path, source)
        if isinstance(why, str):
            new.ignored[source.name, why] = new.ignored.get((source.name, why), 0) + 1
        else:
            found.append((path, info))
    return found


def _plan_broker(project: Project, source: Source, past: History, new: Plan) -> None:
    """Add to a plan what a broker has; where it cannot be asked, why."""
    try:
        found = kafka.plan(source, past.of_partitions(source.name))
    except InletError as error:
        new.unlisted[source.name] = error
        return
    new.files += [row | {"source": source.name, "batch_id": new.batch_id} for row in found.rows]
    new.held |= found.waits
    new.notes |= found.notes


def _listed(project: Project, source: Source, new: Plan) -> list[tuple[str, dict]]:
    """The files of a source; none where they cannot be listed, which the plan then says."""
    try:
        return list(listing(project, source))
    except InletError as error:
        new.unlisted[source.name] = error
    except (OSError, ValueError) as error:
        new.unlisted[source.name] = TryAgain(
            f"{store_errors.without_user(source.path)}: {error}", "The next run tries again"
        )
    return []


def is_as_listed(known: dict, info: dict) -> bool:
    """Is a file by its size and its time what it was when its row was written?"""
    at = known["modified_at"]
    if info["modified"] is None and not known["problem"]:  # an earlier Inlet wrote 1970 where a store told no time
        return known["size_bytes"] == info["size"]
    return (known["size_bytes"], utc(at) if at else None) == (info["size"], info["modified"])
