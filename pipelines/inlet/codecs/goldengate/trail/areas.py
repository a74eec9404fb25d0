"""Where the column areas of changes are: of their own records, and of the before-images in front of them.

Bounds: `find` reads the rows that a group names, which are rows of the piece, and writes a row of `areas`, `priors` and
`in_parts` for each chosen group.
"""

from inlet.codecs.goldengate.trail.frame import END, LEN_D, D
from inlet.codecs.goldengate.trail.sequence import BASE_END, FIRST, NUM_BEFORE
from inlet.fields.compiled.cache import compiled


@compiled(nogil=True, _nrt=False)
def find(groups, rows, chosen, areas, priors, in_parts):
    """Out: areas[i], first byte and end of a change's column area, at the end of its record where it has none;
    priors[i], the same of its before-image, -1 for none; in_parts[i], whether either is one of several segments, whose
    first one is told.
    """
    for i in range(len(chosen)):
        begun, num_before = groups[chosen[i], FIRST], groups[chosen[i], NUM_BEFORE]
        row = begun + num_before
        areas[i, 0], areas[i, 1] = rows[row, D], rows[row, D] + rows[row, LEN_D]
        if rows[row, D] < 0:
            areas[i, 0] = areas[i, 1] = rows[row, END]
        priors[i, 0] = priors[i, 1] = -1
        if num_before:
            priors[i, 0], priors[i, 1] = rows[begun, D], rows[begun, D] + rows[begun, LEN_D]
        in_parts[i, 0], in_parts[i, 1] = groups[chosen[i], BASE_END] - row > 1, num_before > 1
