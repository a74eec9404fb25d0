"""`make demo`: five kinds of feeds from bytes to gold, in this folder, with answers.

It delivers a web shop's Qlik messages and change table, two depots' Linkexpress extracts, a third one's usage journals
and a carrier's GoldenGate trail in batches, runs Inlet after each, compares gold with what the simulated business knows
to be true, and asks some questions. A second run finds nothing new and says so.
"""

import sys
import time
from pathlib import Path

from inlet import config, lake
from inlet.commands import rejects, status
from inlet.commands import run as running
from inlet.log import Log, console, print_rows

ROOT = Path(__file__).resolve().parents[2]
FEED = ROOT / "build" / "feed"
SEED = 20260105
RUNS = ((1,), (2,), (3, 4))  # which batches of the feed come before each run
out = console()


def main() -> int:
    """Out: the exit code, 1 where gold differs from the source."""
    started = time.monotonic()
    project = config.load(ROOT)
    log = Log(is_human=True)
    if (FEED / "delivered").exists():
        _again(project, log, started)
        return 0
    from infra.local.feed import write_feed

    _title(
        "The feeds: a web shop (Qlik messages, and a change table), three depots (Linkexpress extracts and usage "
        "journals) and a carrier (GoldenGate trail). About three minutes on two cores."
    )
    with log.step("feed", seed=SEED) as figures:
        feed = write_feed(FEED, seed=SEED, scale=1.0)
        figures |= {"batches": len(feed.batches)} | feed.num_changes
    for number, batches in enumerate(RUNS, 1):
        _title(f"Delivery {number} of {len(RUNS)}")
        files = [file for batch in batches for file in feed.deliver(batch, ROOT / "landing")]
        log.say({"step": "delivered", "files": len(files)})
        with lake.writing(project.lakehouse_path()) as hold:
            running.run(project, running.find_work(project, running.STEPS, [], []), running.STEPS, [], log, hold)
    code = _summary(project, feed, log, started)
    if code == 0:
        (FEED / "delivered").write_text("")  # else a second run delivers and compares again
    return code


def _again(project, log: Log, started: float) -> None:
    with lake.writing(project.lakehouse_path()) as hold:
        if work := running.find_work(project, running.STEPS, [], []):
            running.run(project, work, running.STEPS, [], log, hold)
        else:
            log.say({"step": "nothing", "new": "everything delivered is in gold already"})
    _ledger(project)
    out.print(f"\nDone in {time.monotonic() - started:.1f} s. Start over with [bold]make clean demo[/].")
    _next()


def _summary(project, feed, log: Log, started: float) -> int:
    from inlet.lake.spark import session

    spark = session(project.lakehouse_path())
    _ledger(project)
    _title("Rejected, and why")
    _rows(
        [
            {k: v for k, v in rejects.reject_line(r, False).items() if k != "unit"}
            for r in rejects.rejects(project, None, None)
        ]
    )
    _title("Checks")
    _rows(
        [
            row.asDict()
            for row in spark.sql(
                "select step, severity, count(*) as expectations, count_if(success) as passed, count_if(not success) "
                "as failed from checks.results group by step, severity order by step, severity"
            ).collect()
        ]
    )
    warned = spark.sql(
        "select step, `table`, unexpected_count as rows, why from checks.results where not success order by checked_at"
    ).collect()
    if warned:
        _title("What did not hold, and why it matters")
        _rows([row.asDict() for row in warned])
    _title("Is gold what the source database holds?")
    compared = compare(project, spark, feed.expected)
    _rows(compared)
    _questions(spark)
    out.print(
        f"\nDone in {time.monotonic() - started:.1f} s, of which per step: "
        + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in _seconds(log).items())
    )
    _next()
    return int(any(row["rows that differ"] for row in compared))


def _ledger(project) -> None:
    _title("What came in, and what became of it")
    for rows in status.status(project).values():
        _rows(rows)


def compare(project, spark, tables: dict[str, dict[tuple, dict]]) -> list[dict]:
    """Current state, row by row and value by value, against the databases that the feeds were captured from. In: the
    rows of each table by source and key.
    """
    found = []
    for name, expected in sorted(tables.items()):
        table = project.tables[name]
        columns = [c.lower() for c in table.column_names]
        rows = {
            (row["source"], *(row[k.lower()] for k in table.key)): {c: row[c] for c in columns}
            for row in spark.table(f"gold.{table.name}__current").collect()
        }
        wanted = {key: {c.lower(): value for c, value in row.items()} for key, row in expected.items()}
        num_differ = len(rows.keys() ^ wanted.keys()) + sum(
            rows[key] != wanted[key] for key in rows.keys() & wanted.keys()
        )
        found.append(
            {
                "table": name,
                "rows at the source": len(wanted),
                "rows in gold": len(rows),
                "rows that differ": num_differ,
            }
        )
    return found


def _questions(spark) -> None:
    spark.catalog.setCurrentDatabase("public")
    text = (ROOT / "infra" / "local" / "queries.sql").read_text()
    for statement in filter(str.strip, text.split(";\n")):
        lines = [line for line in statement.strip().splitlines() if line.strip()]
        question = " ".join(line.removeprefix("--").strip() for line in lines if line.startswith("--"))
        _title(question)
        out.print("[dim]" + "\n".join(line for line in lines if not line.startswith("--")) + "[/]")
        _rows([row.asDict() for row in spark.sql("\n".join(lines)).limit(8).collect()])


def _seconds(log: Log) -> dict[str, float]:
    total: dict[str, float] = {}
    for step in log.steps:
        total[step["step"]] = total.get(step["step"], 0) + step["seconds"]
    return total


def _next() -> None:
    out.print(
        """
What to type next (`source .venv/bin/activate` first):
  inlet status                                   what came in, what is in gold
  inlet rejects --raw                            the broken records, with their bytes
  inlet decode landing/depot_tokyo/WAREHOUSES_20260105020000_000002.lxg   any file's changes, nothing written
  inlet sql "select order_id, status, valid_from, valid_to from orders__history order by order_id, valid_from limit 9"
  inlet init ../mine                             a project of your own""",
        markup=False,
    )


def _title(text: str) -> None:
    out.print(f"\n[bold]{text}[/]")


def _rows(rows: list[dict]) -> None:
    print_rows(out, rows)


if __name__ == "__main__":
    sys.exit(main())
