"""Files that could not be read at all: one reject a file, resolved by the batch that has the file whole."""

import json
from collections.abc import Sequence

from inlet import lake
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.errors import FILE_KINDS
from inlet.silver.batch import Batch
from inlet.sql import literal

LOST = "offsets_missing"


def reject(batch: Batch, files: Sequence[dict]) -> None:
    """Files that could not be read at all are rejects too."""
    rows = []
    for row in files:
        if row["problem"]:
            problem = json.loads(row["problem"])
            rows.append(
                (
                    row["source"],
                    problem["kind"],
                    problem["byte_offset"],
                    problem["expected"],
                    f"{row['path']}: {problem['found']}{_step(problem)}",
                    f"{row['source']}/{row['path']}",
                    place(batch, row["source"], problem),
                    *(problem["table"].split(".", 1) if "." in problem.get("table", "") else (None, None)),
                )
            )
    if rows:
        rejects = batch.spark.createDataFrame(
            rows,
            "source string, kind string, byte_offset bigint, expected string, found string, unit_id string, "
            "change_seq string, source_schema string, source_table string",
        )
        batch.append(rejects.selectExpr("*", "0L as unit_offset", "0L as unit_length"), "silver.rejects")


def place(batch: Batch, source: str, problem: dict) -> str | None:
    """Where messages lie that a broker has lost, if the codec can tell."""
    codec = CODECS[batch.project.sources[source].codec]
    has_place = problem["kind"] == LOST and offers(codec, "place_of")
    return codec.place_of(problem["byte_offset"]) if has_place else None


def _step(problem: dict) -> str:
    """What to do about a file that no delivery under its name cures by itself."""
    return f"; {problem['remedy']}" if problem["kind"] == "file_rewritten" else ""


def resolve(batch: Batch, files: Sequence[dict]) -> None:
    """Rejects of files that could not be read, and that this batch has, say so."""
    units = {f"{row['source']}/{row['path']}" for row in files if not row["problem"]}
    curable = [kind for kind in FILE_KINDS if kind != LOST]  # what a broker has lost does not come back
    of_files = f"kind in ({', '.join(map(literal, curable))})"
    earlier = f"where {of_files} and resolved_by is null and batch_id < {batch.batch_id}"
    rows = lake.peek(batch.project.lakehouse_path(), "silver.rejects", ["unit_id"], earlier)
    if read_now := sorted(units & {row["unit_id"] for row in rows}):
        batch.spark.sql(f"""
            update silver.rejects set resolved_by = {batch.batch_id} {earlier}
              and unit_id in ({", ".join(map(literal, read_now))})""")
