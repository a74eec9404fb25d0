"""Where the column areas of changes are: of their own records, and of the before-images in front of them.

Bounds: what a group names are rows of the piece; of a change's record the fixed part of `H` is read, which `walk` has
made sure of. `find` writes a row of `areas`, `priors` and `in_parts` for each chosen group, `find_full` one of `out`.
"""

from inlet.codecs.goldengate.trail.columns import IS_LIST
from inlet.codecs.goldengate.trail.frame import END, LEN_D, D, H
from inlet.codecs.goldengate.trail.sequence import BASE_END, FIELD_COMP, FIRST, NUM_BEFORE, PARTITION, SYSKEY_LEN
from inlet.fields.compiled.basics import inlined
from inlet.fields.compiled.cache import compiled


@inlined
def _put(data, rows, row, area):
    """A record's column area: first byte, end, bytes of the system key. A full image of no bytes, which is too short,
    stands at the end of its record."""
    at = rows[row, H]
    area[0], area[1] = rows[row, D], rows[row, D] + rows[row, LEN_D]
    area[2] = IS_LIST if data[at + PARTITION] & FIELD_COMP else data[at + SYSKEY_LEN]
    if rows[row, D] < 0 and area[2] != IS_LIST:
        area[0] = area[1] = rows[row, END]


@compiled(nogil=True, _nrt=False)
def find(data, groups, rows, chosen, areas, priors, in_parts):
    """Out: areas[i], first byte and end of a change's column area, at the end of its record where it has none, and the
    bytes of its system key, IS_LIST where it is a list of columns; priors[i], the same of its before-image, -1 for
    none; in_parts[i], whether either is one of several segments, whose first one is told.
    """
    for i in range(len(chosen)):
        begun, num_before = groups[chosen[i], FIRST], groups[chosen[i], NUM_BEFORE]
        row = begun + num_before
        _put(data, rows, row, areas[i])
        if rows[row, D] < 0:
            areas[i, 0] = areas[i, 1] = rows[row, END]
        priors[i] = -1
        if num_before:
            _put(data, rows, begun, priors[i])
        in_parts[i, 0], in_parts[i, 1] = groups[chosen[i], BASE_END] - row > 1, num_before > 1


@compiled(nogil=True, _nrt=False)
def find_full(data, groups, rows, chosen, out):
    """Does a change have a full image, before or after?"""
    for i in range(len(chosen)):
        begun = groups[chosen[i], FIRST]
        bits = data[rows[begun, H] + PARTITION] & data[rows[begun + groups[chosen[i], NUM_BEFORE], H] + PARTITION]
        out[i] = bits & FIELD_COMP == 0
