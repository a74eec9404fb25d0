"""`make bench`: ratios measured in one run, printed and written to docs/performance.md.

Absolute times of a busy machine mean little; each figure is a ratio between two things done one after the other here,
best of a few rounds. `--quick` runs everything small to see that it works, and writes nothing; `--only PART` writes the
rows of that part, each with its date; `--only runs` those of `runs: micro-batch` and all others of that name; with
INLET_BENCH_LARGE set, gold has tables of 2 and 16 million rows instead of 250,000 and 2 million.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from rich.console import Console

from tests.bench import (
    avro_messages,
    binary,
    change_tables,
    empty_run,
    extracts,
    gold_apply,
    journals,
    kafka,
    messages,
    old_lakehouse,
    operations,
    runs,
    texts,
    trails,
    wide,
)

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "performance.md"
BY_HAND = "\n## Where the time goes\n"  # from here on the page is written by hand
PARTS = {
    "binary": binary.measure,
    "texts": texts.measure,
    "extracts": extracts.measure,
    "journals": journals.measure,
    "change tables": change_tables.measure,
    "trails": trails.measure,
    "messages": messages.measure,
    "Avro messages": avro_messages.measure,
    "operations": operations.measure,
    "kafka": kafka.measure,
    "gold": gold_apply.measure,
    "wide tables": wide.measure,
    "empty run": empty_run.measure,
    "old lakehouse": old_lakehouse.measure,
    **runs.PARTS,
}
HOURS = ("runs: many batches",)  # what takes hours is asked for by its name
GROUPS = sorted({name.partition(": ")[0] for name in PARTS if ": " in name})
out = Console(highlight=False, width=160)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=[*PARTS, *GROUPS])
    said = parser.parse_args()
    from inlet.lake.spark import session

    lines = []
    if said.only in (None, "kafka"):
        kafka.bring_jars()
    if said.only in (None, "Avro messages"):
        avro_messages.bring_jars()
    with tempfile.TemporaryDirectory() as folder:
        lakehouse = f"{folder}/lakehouse"
        chosen = {
            name: measure
            for name, measure in PARTS.items()
            if said.only in (name, name.partition(": ")[0]) or said.only is None and name not in HOURS
        }
        spark = None if chosen.keys() <= runs.PARTS.keys() else session(lakehouse, app="inlet-bench")
        for name, measure in chosen.items():
            out.print(f"[bold]{name}[/]")
            for figure in measure(spark, Path(folder) / re.sub(r"\W+", "_", name), lakehouse, said.quick):
                out.print("  " + figure.line())
                lines.append(figure.row())
    if said.quick:
        return
    written, _, said_by_hand = PAGE.read_text().partition(BY_HAND)
    PAGE.write_text((with_rows(written, lines) if said.only else page(lines)) + BY_HAND + said_by_hand)
    out.print(f"written to {PAGE.relative_to(ROOT)}")


def with_rows(written: str, rows: list[str]) -> str:
    """The page with these rows in place of those of the same figures, or behind the others."""
    today = [f"{row.removesuffix(' |')} ({date.today():%Y-%m-%d}) |" for row in rows]
    new = {name: [row for row in today if figure_of(row) == name] for name in map(figure_of, today)}
    left, kept = dict(new), []
    for line in written.rstrip().splitlines():
        kept += left.pop(figure_of(line), []) if figure_of(line) in new else [line]
    return "\n".join([*kept, *(row for rows in left.values() for row in rows), ""])


def figure_of(row: str) -> tuple[str, ...]:
    """What a row of the table is about: what, and against what."""
    return tuple(row.split(" | ")[:2]) if row.startswith("| ") else ()


def page(rows: list[str]) -> str:
    java = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr.splitlines()[0]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return "\n".join(
        [
            '<!-- written by `make bench` down to "Where the time goes" -->',
            "# Performance",
            "",
            f"Measured on {date.today():%Y-%m-%d}: {os.cpu_count()} cores, {memory:.0f} GiB, "
            f"{platform.system()} {platform.machine()}, "
            f"Python {sys.version.split()[0]}, {java}, local Spark.",
            "",
            "Ratios between two things done in one run; above the bound is better where the bound says *at least*, "
            "below it where it says",
            "*at most*. Seconds and rates are for orientation only.",
            "",
            "| what | against | ratio | bound | measured |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    main()
