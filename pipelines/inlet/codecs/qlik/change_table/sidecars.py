"""The sidecars of files (`.dfm`): where each is looked for, and what it says of its file.

A file's own sidecar has the file's name. Another one may take its place once the file has waited `settle_minutes` for
its own: that of the partition, of the table's full load, or the last one before it (option without_sidecar). It tells
the table, the columns and how text is delimited, but not how many records the file has.
"""

import posixpath
from typing import NamedTuple

from inlet.change import NO_TIME
from inlet.codecs.qlik import column_lists, dfm
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.load_time import FIRST
from inlet.codecs.qlik.members import Refused
from inlet.codecs.results import Companion
from inlet.errors import Reject
from inlet.fields.wrong import Wrong

OWN, LOAD = "sidecar", "load"  # companions: the file's sidecar, and that of the first file of its load


class Found(NamedTuple):
    """The sidecar that a file is read with."""

    sidecar: dfm.Sidecar
    path: str
    is_own: bool


def companions(path: str, options: Options, is_load: bool) -> list[Companion] | None:
    """The sidecars of a file; None for a sidecar."""
    if path.lower().endswith(dfm.SUFFIX):
        return None
    if options.sidecar == "none":
        return []
    paths, others = _places(path, options)
    choice = options.without_sidecar
    is_needed = choice in ("wait", "last")
    told = f"option without_sidecar: {choice}"
    found = [Companion(OWN, paths, others, choice == "last", is_needed, told)]
    if is_load and options.load_time is None:
        first = [
            one
            for name in dfm.FIRST_LOADS
            for one in _places(posixpath.join(posixpath.dirname(path), name[:-4] + ".x"), options)[0]
        ]
        found.append(Companion(LOAD, first, is_needed=False, option="option load_time"))
    return found


def _places(path: str, options: Options) -> tuple[list[str], list[str]]:
    """Where a file's own sidecar may lie, and those that may take its place."""
    places = dfm.companions(path, options.sidecar, options.suffix) or []
    own = posixpath.basename(places[0])
    return [p for p in places if posixpath.basename(p) == own], [p for p in places if posixpath.basename(p) != own]


def of_file(name: str, given: dict[str, dict], options: Options) -> Found | None:
    """The sidecar that came with a file. Raises: Refused."""
    one = given.get(OWN)
    if one is None:
        if options.sidecar != "none" and options.without_sidecar == "reject":
            raise Refused("definition_missing", (), "its .dfm (option without_sidecar: reject)", "none")
        return None
    sidecar, short = _read(one), posixpath.basename(one["path"])
    is_own = name.split(".")[0].lower() == short.split(".")[0].lower()
    if is_own and _plain(sidecar.file) != _plain(name):
        raise Refused("contradiction", (), f"the file that {short} names, {sidecar.file}", name)
    return Found(sidecar, one["path"], is_own)


def num_records(path: str, given: dict[str, dict], options: Options) -> int | Reject | None:
    """How many records a file has; None where no sidecar of its own says so; a Reject where one cannot be read."""
    try:
        found = of_file(posixpath.basename(path), given, options)
        if LOAD in given:
            _read(given[LOAD])
    except Refused as no:
        return None if no.kind == "contradiction" else Reject(no.kind, 0, 0, 0, no.expected, no.found, b"")
    return found.sidecar.num_records if found and found.is_own else None


def load_time(given: dict[str, dict], options: Options) -> str:
    """When a full load began, 16 digits. Raises: Refused where nothing tells."""
    if options.load_time is not None:
        return NO_TIME if options.load_time == FIRST else options.load_time
    written = _read(given[LOAD]).written_at if LOAD in given else ""
    found = column_lists.time16(written, options.load_lead_seconds)
    own = _read(given[OWN]).written_at if OWN in given else ""
    if found and own and column_lists.time16(own) < column_lists.time16(written):
        raise Refused(
            "contradiction", (), f"a file of the load that began at {written}", f"one of an earlier load, {own}"
        )
    if not found:
        expected = (
            "when the full load began: option load_time, or startWriteTimestamp of the .dfm of LOAD00000001 (option "
            "sidecar says where it lies)"
        )
        raise Refused("missing_change_seq", (), expected, "neither")
    return found


def _read(one: dict) -> dfm.Sidecar:
    """Raises: Refused, which names the sidecar."""
    try:
        return dfm.read(bytes.fromhex(one["data"]))
    except Wrong as wrong:
        name = posixpath.basename(one["path"])
        raise Refused(
            wrong.kind, (), f"{name}: {wrong.expected}", f"{wrong.found}, at its byte {wrong.offset}"
        ) from None


def _plain(name: str) -> str:
    return name.lower().removesuffix(".gz")
