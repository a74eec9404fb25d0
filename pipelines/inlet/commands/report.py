"""`inlet report`: one page for people, made without Spark. It holds all it shows: no network, no script, no font.

What needs a person comes first. `gather` asks the lakehouse, `attention` and the words below are pure, report.html says
how it looks. All that comes from data is escaped.
"""

import statistics
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined

from inlet import storage
from inlet.commands import charts, facts, rejects, run_counts, runs, status
from inlet.commands.show import time_of
from inlet.commands.sql import command_of
from inlet.commands.text import breaks, cell, duration, size, words
from inlet.config import Project
from inlet.errors import REJECT_KINDS, EnvironmentLacks
from inlet.gold import generate
from inlet.log import counted

NUM_BATCHES, NUM_RUNS, NUM_FAILED = 60, 20, 10
OUTCOMES = ("changes", "repeats", "control", "rejected", "waiting")  # of a batch's records
HELD = "public views"  # title of the sources that the public views wait for
WAITS = (  # other titles, of `inlet status`
    "waiting files",
    "unfinished records",
    "waiting for the feed",
    "waiting for silver",
    "full loads that have not ended",
    "public though not whole",
    "suspended tables",
    "tasks",
    "last DDL",
    "records that a task counted and that were not landed",
    "rows that a task's target refused",
    "sources that cannot be listed",
)
SECTIONS = {
    "came": "What came in",
    "waits": "What waits",
    "rejects": "Rejects",
    "checks": "Checks",
    "runs": "Runs",
}  # that notes lead to


class Note(NamedTuple):
    """One thing that needs a person, or that is good to know."""

    level: str  # act, look, know
    what: str
    remedy: str = ""
    section: str = ""  # of the page, which has more of it


def write(project: Project, out: str | None = None) -> str:
    """Write the page. In: file or URL; none for report.html in the lakehouse. Out: where it is. Raises:
    EnvironmentLacks where it cannot be written."""
    path = out or project.files_path("report.html")
    text = page(gather(project, datetime.now(UTC)))
    try:
        files, name = storage.open_store(path)
        files.makedirs(files._parent(name), exist_ok=True)
        files.pipe_file(name, text.encode("utf-8", "replace"))
    except OSError as error:
        raise EnvironmentLacks(
            f"{path} cannot be written: {error.strerror or error}", "Name a file with --out"
        ) from error
    return path


def page(data: dict[str, Any]) -> str:
    return _template().render(data)


def gather(project: Project, now: datetime) -> dict[str, Any]:
    """All that the page shows, by the names that report.html has for it."""
    batches, published = facts.ledger(project), facts.points(project)
    now_status, open_rejects = status.status(project), rejects.open_rejects(project)
    last_checks, failed_checks = facts.checks(project)
    past = runs.last(project, NUM_RUNS)
    lags = facts.lags(batches, published)
    data: dict[str, Any] = {
        "name": project.root.name,
        "now": now,
        "status": now_status,
        "published": published[-1] if published else None,
        "came": _came(now_status["sources"], batches),
        "waits": _waits(now_status),
        "counts": {title: now_status[title] for title in (status.LATE, status.KNOWN) if title in now_status},
        "lags": [_lag(name, lags[name], batches, published, now) for name in project.sources if name in lags],
        "tables": _tables(facts.table_lags(project, batches)),
        "rejects": _rejects(project, open_rejects),
        "num_rejected": open_rejects.total(),
        "checks": _checks(last_checks),
        "failed_checks": _failed(failed_checks[:NUM_FAILED], last_checks),
        "sizes": [row for row in facts.sizes(project) if row["files"]],
        "runs": [run | {"by_step": {step: s for (step,), s in facts.step_seconds(run).items()}} for run in past],
        "stale": generate.stale(project),
    }
    return data | {"run_chart": _run_chart(data["runs"]), "notes": attention(data)}


def attention(data: dict[str, Any]) -> list[Note]:
    """What needs a person, the gravest first. In: what `gather` has gathered."""
    return [*_to_act_on(data), *_to_look_at(data), *_to_know(data)]


def _to_act_on(data: dict[str, Any]) -> Iterator[Note]:
    now_status = data["status"]
    if data["runs"] and data["runs"][0]["exit_code"]:
        last = data["runs"][0]
        yield Note("act", f"The last run failed with exit code {last['exit_code']}: {last['error']}", section="runs")
    for row in now_status.get("sources that cannot be listed", ()):
        yield Note("act", f"{row['source']} cannot be listed: {row['why']}", "See to its address or folder")
    for row in now_status.get("suspended tables", ()):
        words = f"{row['table']} of {row['source']} is stale since {row['is stale since']}: its task has suspended it"
        yield Note("act", words, f"{row['remedy'][0].upper()}{row['remedy'][1:]}")
    for row in data["checks"]:
        if row["failed"]:
            yield Note("act", f"{counted(row['failed'], 'check')} of {row['table']} failed", section="checks")
    if data["stale"]:
        yield Note("act", "dbt models or macros are not what the contracts say or this Inlet has", "`inlet generate`")
    for row in now_status.get("gaps in the changes", ()):
        yield Note(
            "act", f"Changes of {row['table']} from {row['source']}: a {row['gap']} gap, {row['what']}", row["remedy"]
        )
    if num := sum(row["refused files"] for row in now_status["sources"]):
        yield Note("act", f"{counted(num, 'file')} refused", "`inlet rejects` says why; deliver anew")


def _to_look_at(data: dict[str, Any]) -> Iterator[Note]:
    now_status = data["status"]
    if data["num_rejected"]:
        yield Note(
            "look",
            f"{counted(data['num_rejected'], 'record')} rejected",
            "Fix the cause, then `inlet replay`",
            "rejects",
        )
    for row in now_status["public"]:
        if row["waits for"]:
            yield Note("look", f"The public views wait for {row['source']}: {row['waits for']}", section="waits")
    for row in now_status.get("full loads that have not ended", ()):
        words = f"A full load of {row['table']} from {row['source']} has not ended"
        yield Note("look", words, f"It ends {row['ends']}")
    for row in now_status.get("records that a task counted and that were not landed", ()):
        words = f"{row['source']} counted {row['records counted']} records up to {row['slot ends']}, "
        yield Note(
            "look", f"{words}{row['messages landed']} were landed", "Does the source read all topics of its task?"
        )
    for row in now_status.get("rows that a task's target refused", ()):
        yield Note("look", f"Qlik could not apply {counted(row['rows'], 'row')} of {row['table']}: {row['last error']}")
    if num := len(now_status.get("waiting files", ())):
        yield Note("look", f"{counted(num, 'file')} waiting", section="waits")
    for row in data["checks"]:
        if row["warned"] and not row["failed"]:
            yield Note("look", f"{counted(row['warned'], 'warning')} of {row['table']}", section="checks")
    if batches := [str(row["batch"]) for row in now_status.get("waiting for silver", ())]:
        yield Note("look", f"Landed and not decoded: batch {', '.join(batches)}", "`inlet run`")
    gold = [row for row in now_status["gold"] if row["through batch"] is not None]
    if behind := [row["table"] for row in gold if not row["is current"]]:
        yield Note("look", f"Gold is behind silver: {', '.join(behind)}", "`inlet run`")


def _to_know(data: dict[str, Any]) -> Iterator[Note]:
    sources = data["status"]["sources"]
    if num := sum(row["new files"] for row in sources):
        yield Note("know", f"{counted(num, 'new file')} delivered", "`inlet run`")
    for row in run_counts.late_changes(data["runs"][:1]):
        words = f"The last run took {counted(row['late changes'], 'late change')} of {row['source']}"
        yield Note("know", f"{words}: rows that were public are others from {row['altered from']} on", "", "came")
    if num := sum(row["records"] for row in run_counts.known_already(data["runs"][:1])):
        yield Note("know", f"{counted(num, 'record')} of the last run known already", "", "came")
    if not any(row["files"] or row["records"] for row in sources):
        yield Note("know", "Nothing has been landed yet", "`inlet run`")


def _came(sources: list[dict], batches: list[dict]) -> list[dict]:
    """Per source: what came in, and what became of each batch's records."""
    found = []
    for row in sources:
        mine = [batch for batch in batches if batch["source"] == row["source"]][-NUM_BATCHES:]
        shown = [(f"batch {b['batch_id']}", {name: b[f"num_{name}"] or 0 for name in OUTCOMES}) for b in mine]
        found.append(row | {"chart": charts.bars(shown)})
    return found


def _waits(now_status: dict[str, list[dict]]) -> dict[str, list[dict]]:
    """Title -> rows of what waits."""
    held = [{"source": row["source"], "wait for": row["waits for"]} for row in now_status["public"] if row["waits for"]]
    return ({HELD: held} if held else {}) | {title: now_status[title] for title in WAITS if title in now_status}


def _lag(source: str, lag: facts.Lag, batches: list[dict], published: list[dict], now: datetime) -> dict:
    over_time = facts.lag_over_time(batches, published, source)
    if len(over_time) > 2 * NUM_BATCHES:
        over_time = over_time[-2 * NUM_BATCHES :]
    last = over_time[-1][0] if over_time else now  # a line that runs on to today would press the rest to its edge
    until = min(now, last + (last - over_time[0][0]) / 20) if over_time else now
    worst = max((seconds for _, seconds in over_time), default=None)
    return {
        "source": source,
        "seconds": lag.seconds,
        "title": _lag_title(lag),
        "what": _lag_in_words(lag),
        "worst": worst,
        "chart": charts.steps(over_time, until),
    }


def _lag_title(lag: facts.Lag) -> str:
    if not lag.newest_seq:
        return "no change decoded yet"
    if not lag.shown_seq:
        return "not public yet"
    return "behind, its order tells no time" if lag.seconds is None else duration(lag.seconds)


def _lag_in_words(lag: facts.Lag) -> str:
    """Up to where a source is decoded and public: by time, else by place in its order.

    >>> _lag_in_words(facts.lag("2026010510400000" + "0" * 19, None))
    'newest change 2026-01-05 10:40:00, nothing is public'
    >>> _lag_in_words(facts.lag("0" * 34 + "7", "0" * 34 + "7"))
    'all changes are public, up to change_seq 00000000000000000000000000000000007'
    """
    newest, shown = (cell(time_of(seq)) or f"change_seq {seq}" for seq in (lag.newest_seq, lag.shown_seq))
    if not lag.newest_seq:
        return "records have arrived, and none of them is a change"
    if lag.seconds == 0:
        return f"all changes are public, up to {shown}"
    return f"newest change {newest}, " + (f"public up to {shown}" if lag.shown_seq else "nothing is public")


def _tables(rows: list[dict]) -> list[dict]:
    return [
        {name: value for name, value in row.items() if name != "took"}
        | {
            "last": row["took"][-1] if row["took"] else None,
            "usual": statistics.median(row["took"]) if row["took"] else None,
            "spark": charts.spark(row["took"][-NUM_BATCHES:]),
        }
        for row in rows
    ]


def _rejects(project: Project, counts: Counter[tuple[str, str]]) -> list[dict]:
    examples = facts.reject_examples(project, counts)
    return [
        {
            "source": source,
            "kind": kind,
            "num": num,
            "means": REJECT_KINDS.get(kind, ""),
            "examples": examples[source, kind],
        }
        for (source, kind), num in counts.most_common()
    ]


def _checks(results: list[dict]) -> list[dict]:
    """One row per step and table: how many of its last checks held, and the others."""
    of: dict[tuple[str, str], list[dict]] = {}
    for row in results:
        of.setdefault((row["step"], row["table"]), []).append(row)
    return [
        {
            "step": step,
            "table": table,
            "held": sum(row["success"] for row in rows),
            "warned": sum(not row["success"] and row["severity"] != "error" for row in rows),
            "failed": sum(not row["success"] and row["severity"] == "error" for row in rows),
            "at": max(row["checked_at"] for row in rows),
            "others": [row for row in rows if not row["success"]],
        }
        for (step, table), rows in of.items()
    ]


def _failed(failed: list[dict], last: list[dict]) -> list[dict]:
    """Checks that did not hold, each with whether it has held since, and the command that lists its rows. In: the last
    results of each step and table."""
    since = {(row["step"], row["table"], row["expectation"], row["column"]): row for row in last}
    rows = []
    for row in failed:
        newest = since.get((row["step"], row["table"], row["expectation"], row["column"]))
        rows.append(
            row
            | {
                "holds_now": bool(newest and newest["success"]),
                "is_query": "select" in (row["column"] or ""),
                "see": command_of(row["rows_sql"]) if row["rows_sql"] else "",
            }
        )
    return rows


def _run_chart(past: list[dict]) -> charts.Chart:
    """Seconds per step of the last runs, the oldest at the left."""
    return charts.bars([(run["began"][:16].replace("T", " "), run["by_step"]) for run in reversed(past)], " s")


@cache
def _template() -> Any:
    text = (Path(__file__).parent / "report.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals["SECTIONS"] = SECTIONS
    environment.filters |= {f.__name__: f for f in (breaks, cell, duration, size, words)}
    return environment.from_string(text)
