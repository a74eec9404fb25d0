"""What of files could not be framed, as bronze keeps it: blocks whose context carries a problem. reframing.py frames
them again.
"""

import json
from typing import NamedTuple

from inlet import lake
from inlet.bronze.files import is_compressed
from inlet.bronze.history import FRAMED_AGAIN, History, Place, Reading
from inlet.config import Project

PIECE = ["unit_id", "source", "path", "file_offset", "size_bytes", "context", "batch_id"]


class Rest(NamedTuple):
    """What of a file could not be framed."""

    pieces: list[dict]  # PIECE, in order, each byte once
    units: set[str]  # of these, and of pieces that hold the same bytes
    last: Reading  # the file's newest one without a problem

    @property
    def start(self) -> int:
        return self.pieces[0]["file_offset"]

    @property
    def size_bytes(self) -> int:
        return sum(piece["size_bytes"] for piece in self.pieces)

    @property
    def is_whole(self) -> bool:
        """Do its pieces follow each other, up to all that is landed of the file?"""
        ends = [piece["file_offset"] + piece["size_bytes"] for piece in self.pieces]
        is_last = is_compressed(self.last["path"]) or ends[-1] == self.last["ofs_end"]
        return is_last and ends[:-1] == [piece["file_offset"] for piece in self.pieces[1:]]


def pieces(project: Project, units: set[str]) -> list[dict]:
    """The blocks that could not be framed, of all files of which one is among these units: PIECE. Read without
    Spark.
    """
    if not any("@" in unit for unit in units):  # as the id of every block has
        return []
    rows = lake.peek(project.lakehouse_path(), "bronze.blocks", PIECE, "where context like '%\"problem\"%'")
    found = [row | {"context": json.loads(row["context"])} for row in rows]
    found = [row for row in found if "problem" in row["context"]]
    files = {(row["source"], row["path"]) for row in found if row["unit_id"] in units}
    return [row for row in found if (row["source"], row["path"]) in files]


def rests(project: Project, past: History, units: set[str], before: int | None = None) -> dict[Place, Rest]:
    """By (source, path), what is not framed of the files of these units, but for what a replay has framed since, or a
    batch that read the file again. An earlier Inlet framed pieces alone, so all of a file count that no row of
    bronze.files of a replay stands for. In: units; the batch before which pieces were landed. Read without Spark.
    """
    last, framed, unframed = {}, dict[Place, int](), pieces(project, units)
    sources, paths = ({piece[name] for piece in unframed} for name in ("source", "path"))
    for row in past.of_files(sources, paths) if unframed else ():
        if row["problem"] or before is not None and row["batch_id"] >= before:
            continue
        last[row.place] = row
        if row.cause == FRAMED_AGAIN or row.begins_file:
            framed[row.place] = row["batch_id"]
    found: dict[Place, list[dict]] = {}
    for piece in unframed:
        place = piece["source"], piece["path"]
        if framed.get(place, -1) <= piece["batch_id"] and (before is None or piece["batch_id"] < before):
            found.setdefault(place, []).append(piece)
    of_files = {
        place: Rest(_each_once(own), {piece["unit_id"] for piece in own}, last[place]) for place, own in found.items()
    }
    return {place: rest for place, rest in of_files.items() if not units.isdisjoint(rest.units)}


def _each_once(pieces: list[dict]) -> list[dict]:
    """Pieces in order, without those of bytes that come before."""
    found: list[dict] = []
    end = 0
    for piece in sorted(pieces, key=lambda piece: (piece["file_offset"], piece["batch_id"])):
        if not found or piece["file_offset"] >= end:
            found.append(piece)
            end = piece["file_offset"] + piece["size_bytes"]
    return found
