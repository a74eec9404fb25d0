"""A block of a trail -> its changes, rejects and control records. Nothing here looks at one record after the other in
Python, except at those that are no changes. Format: files.py.
"""

import numpy as np

from inlet.codecs.goldengate.trail import io_types, metadata, piece, reject, sequence
from inlet.codecs.goldengate.trail.change_rows import changes
from inlet.codecs.goldengate.trail.control_events import controls
from inlet.codecs.goldengate.trail.images import Images
from inlet.codecs.goldengate.trail.layout import lobs_of
from inlet.codecs.goldengate.trail.tables import resolve
from inlet.codecs.results import Decoded
from inlet.source import Source

FAULTY_CHUNK = sequence.FAULTY, sequence.BAD_SEGMENT


def decode(data: bytes, context: dict, source: Source, tables: dict) -> Decoded:
    """A block -> its changes, rejects and control records. Rejected records do not stop the others."""
    read = piece.read(data, context, sequence.BLOCK_ENDS)
    _reject_chunks(read, source, tables)
    found = decoded(Images(read, *resolve(read, source, tables)), source)
    if read.end < len(data):
        found.rejects = [*found.rejects, piece.no_frame(read)]
    return found


def _reject_chunks(read: piece.Piece, source: Source, tables: dict) -> None:
    """Chunks behind the row of a file before, of a table that has no LOBs, belong to nothing."""
    is_chunk = read.groups[:, sequence.WHAT] == sequence.LOB_CHUNK
    for n in np.flatnonzero(is_chunk & (read.groups[:, sequence.IS_IN_LOB] == sequence.IN_NEXT_FILE)):
        contract = tables.get(metadata.table_of(read.name_of(int(n)), source))
        if contract is not None and not any(map(lobs_of, contract.versions)):
            at = read.starts[n]
            read.groups[n, [sequence.WHAT, sequence.FAULT, sequence.FAULT_AT]] = FAULTY_CHUNK + (at,)


def decoded(found: Images, source: Source) -> Decoded:
    """What the groups of a piece are."""
    read = found.piece
    rejects = [reject.of_group(found, int(n), source) for n in np.flatnonzero(found.is_rejected)]
    is_control = (read.groups[:, sequence.WHAT] != io_types.CHANGE) & ~found.is_rejected
    sizes = np.diff(read.starts)
    return Decoded(
        changes(found, source.header),
        rejects,
        controls(found, np.flatnonzero(is_control), source),
        int(sizes[is_control].sum()),
        int(is_control.sum()),
    )
