"""Which version of which table a record of a trail is of: by the index or the name in its header, by the definition
that is in force there, and by the contract."""

from dataclasses import dataclass

import numpy as np

from inlet.codecs.goldengate.options import TextOptions
from inlet.codecs.goldengate.trail import areas, frame, io_types, metadata, sequence
from inlet.codecs.goldengate.trail import text_columns as text
from inlet.codecs.goldengate.trail.layout import Layouts, compile_layouts
from inlet.codecs.goldengate.trail.piece import Piece
from inlet.source import Source
from inlet.table import Table

MAX_SPAN = 1 << 18  # of keys that are counted and not sorted
NO_INDEX = (
    "bad_header",
    "an index of 2 bytes at the end of the header, as Partition 0x08 says",
    "a header that ends before",
)

NO_NAME = "bad_header", "the name of a table", "none"


@dataclass
class Target:
    """What the records of one name are: the trail's name, SCHEMA.TABLE, its contract, the definition in force."""

    name: str
    table: str
    contract: Table | None
    definition: list | None
    why: tuple[str, str, str] | None = None  # kind, expected and found, where none of its records can be read


@dataclass
class Places:
    """Of each group: the layout that reads it, -1 for none; which target it is of, -1 for none; why it cannot be
    read."""

    layout: np.ndarray
    target: np.ndarray
    targets: list[Target]
    whys: dict[int, tuple[str, str, str]]  # by group, of those that the contract's versions do not read


def resolve(read: Piece, source: Source, contracts: dict[str, Table]) -> tuple[Places, Layouts]:
    """Find the layouts of a piece's changes. Out: with the plans of the tables that it has changes of."""
    num = len(read.groups)
    places = Places(np.full(num, -1, np.int64), np.full(num, -1, np.int64), [], {})
    named = (read.groups[:, sequence.WHAT] == io_types.CHANGE) | (read.groups[:, sequence.WHAT] == sequence.FAULTY)
    rows = read.rows[:, frame.H][read.groups[:, sequence.BASE_END] - 1]
    chosen = np.flatnonzero(named & (rows >= 0) & (_lengths(read) >= sequence.TAIL))
    behind = np.array([n for n, _ in read.definitions])
    epochs = np.searchsorted(behind, chosen) - 1  # which definitions are in force
    last_rows = read.groups[chosen, sequence.BASE_END] - 1
    is_ddl = read.bytes_[rows[chosen] + sequence.IO_TYPE] == sequence.DDL_CODE
    has_index = ((read.bytes_[rows[chosen] + sequence.PARTITION] & sequence.HAS_INDEX) != 0) & ~is_ddl
    has_room = read.rows[last_rows, frame.LEN_H] >= sequence.TAIL + sequence.LEN_INDEX
    whole, lacking = has_index & has_room, has_index & ~has_room
    _by_index(places, read, source, contracts, chosen[whole], epochs[whole])
    own = ~has_index & ~is_ddl
    _by_name(places, read, source, contracts, chosen[own], epochs[own])
    _by_ddl(places, read, source, contracts, chosen[is_ddl])
    if lacking.any():
        places.target[chosen[lacking]] = len(places.targets)
        places.targets.append(Target("", "", None, None, NO_INDEX))
    used = frozenset(target.contract.table for target in places.targets if target.contract)
    layouts = compile_layouts(contracts, used, source.options_as(TextOptions))
    own = np.flatnonzero((read.groups[:, sequence.WHAT] == io_types.CHANGE) & (places.target >= 0))
    _of_one_version(places, own, layouts)
    for t, target in enumerate(places.targets):
        if target.contract is not None and target.contract.earlier:
            _versions(places, read, target, own[places.target[own] == t], layouts)
    _without_places(places, read, layouts)
    return places, layouts


def _without_places(places: Places, read: Piece, layouts: Layouts) -> None:
    """No layout reads a full image where the contract does not tell its places, or tells others than are known."""
    is_without = np.zeros(len(layouts.names) + 1, bool)  # -1, of no layout, is the last one
    is_without[list(layouts.no_full_image)] = True
    own = np.flatnonzero(is_without[places.layout])
    own = own[read.groups[own, sequence.OPERATION] != io_types.TRUNCATE]
    has_full = np.empty(len(own), bool)
    areas.find_full(read.bytes_, read.groups, read.rows, own, has_full)
    for n in own[has_full]:
        places.whys[int(n)] = layouts.no_full_image[int(places.layout[n])]
        places.layout[n] = -1


def _lengths(read: Piece) -> np.ndarray:
    return read.rows[:, frame.LEN_H][read.groups[:, sequence.BASE_END] - 1]


def _by_index(
    places: Places, read: Piece, source: Source, contracts: dict, chosen: np.ndarray, epochs: np.ndarray
) -> None:
    """Targets of records that name their table by the index of its definition in the file."""
    at = read.rows[read.groups[chosen, sequence.BASE_END] - 1, frame.H] + sequence.TAIL
    low, high = (read.bytes_[at + n].astype(np.int64) for n in ((0, 1) if read.little else (1, 0)))
    distinct, which = _distinct(epochs << 16 | high << 8 | low)
    places.target[chosen] = len(places.targets) + which
    for key in distinct:
        known, index = read.definitions[int(key) >> 16][1], int(key) & 0xFFFF
        name, mark = known["tables"].get(str(index), (None, None))
        if name is None:
            found = "none" if known["num_definitions"] else "none, or one in damaged records"
            why = ("definition_missing", f"a definition with TDR index {index} in the file, before this record", found)
            target = Target("", "", None, None, why)
        else:
            definition = known["definitions"][name]
            target = _target(name, definition, source, contracts)
            if definition[0] != mark:
                found = f"index {index}, whose definition another one has followed"
                target.why = ("definition_differs", "the definition of the table that is in force", found)
                target.contract = None
        places.targets.append(target)


def _distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As np.unique with the inverse, without sorting where the keys are close to each other."""
    low = int(keys.min(initial=0))
    if int(keys.max(initial=0)) - low > MAX_SPAN:
        return np.unique(keys, return_inverse=True)
    is_there = np.bincount(keys - low) > 0
    return low + np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[keys - low]


def _by_name(
    places: Places, read: Piece, source: Source, contracts: dict, chosen: np.ndarray, epochs: np.ndarray
) -> None:
    """Targets of records that hold the name of their table."""
    if not len(chosen):
        return
    rows = read.groups[chosen, sequence.BASE_END] - 1
    firsts, which = text.names_of(read.bytes_, read.rows, rows)
    distinct, which = _distinct(epochs * len(firsts) + which)
    places.target[chosen] = len(places.targets) + which
    for key in distinct:
        epoch, n = divmod(int(key), len(firsts))
        name = metadata.name_of(read.payload(read.rows[firsts[n]], frame.H)[sequence.TAIL :])
        definition = read.definitions[epoch][1]["definitions"].get(name)
        places.targets.append(_target(name, definition, source, contracts))


def _by_ddl(places: Places, read: Piece, source: Source, contracts: dict, chosen: np.ndarray) -> None:
    """Targets of truncates by DDL, which name their table in their text."""
    for n in chosen:
        name = metadata.ddl_table(metadata.ddl_of(read.payload(read.rows[read.groups[n, sequence.FIRST]], frame.D)))
        definition = read.definitions_before(int(n))["definitions"].get(name)
        places.target[n] = len(places.targets)
        places.targets.append(_target(name, definition, source, contracts))


def _target(name: str, definition: list | None, source: Source, contracts: dict[str, Table]) -> Target:
    table = metadata.table_of(name, source) if name else ""
    if not table.strip(" ."):
        return Target(name, "", None, None, NO_NAME)
    contract = contracts.get(table)
    how = f"`inlet import DEFGEN_FILE --source {source.name}` makes one"
    why = None if contract else ("definition_missing", f"a contract of {table}: {how}", "none")
    return Target(name, table, contract, definition, why)


def _of_one_version(places: Places, own: np.ndarray, layouts: Layouts) -> None:
    """The layouts of the records whose contract has one version, which holds wherever they are."""
    found = np.full(len(places.targets), -1, np.int64)
    for t, target in enumerate(places.targets):
        if target.contract is None or target.contract.earlier:
            continue
        version = _named(metadata.version_for(target.contract, target.definition, ""))
        found[t] = layouts.of.get(version, -1)
        if found[t] < 0:
            _set(places, own[places.target[own] == t], version, layouts)
    places.layout[own] = found[places.target[own]]


def _versions(places: Places, read: Piece, target: Target, own: np.ndarray, layouts: Layouts) -> None:
    """The layouts of the records of a table. The order only grows, so where the first and the last one are of one
    version all are."""
    if not len(own):
        return
    first, last = (_version(read, target, int(own[n])) for n in (0, -1))
    if first == last:
        _set(places, own, first, layouts)
        return
    for n in own:
        _set(places, np.array([n]), _version(read, target, int(n)), layouts)


def _version(read: Piece, target: Target, group: int):
    """(table, version) that reads a group, or why none does."""
    assert target.contract is not None
    return _named(metadata.version_for(target.contract, target.definition, read.change_seq(group)))


def _named(found: Table | tuple[str, str, str]) -> tuple:
    return (found.table, found.version) if isinstance(found, Table) else found


def _set(places: Places, groups: np.ndarray, version: tuple, layouts: Layouts) -> None:
    if version in layouts.of:
        places.layout[groups] = layouts.of[version]
    else:
        places.whys.update(dict.fromkeys(map(int, groups), version))
