"""What the path of a file says: whether it is of a change table, a load or a control table, and which folder names its
table.
"""

import re
import zlib
from typing import Any

from inlet.codecs.qlik import control_tables
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.members import Refused

LOAD = re.compile(r"LOAD_?([0-9]{1,8})(?:_([0-9]{1,6}))?(?:\..*)?", re.IGNORECASE)
FIRST_OF_SEGMENTS, NUM_SEGMENTS, LEN_SEGMENT = 50_000, 100, 500  # numbers of a load's files, of five digits


def by_name(path: str, options: Options) -> dict | Refused:
    """What a file's path says: the context before anything of its bytes is known; why it is not read."""
    *folders, name = re.split(r"[/\\]", path)
    suffix, load = options.suffix.lower(), LOAD.fullmatch(name)
    of_changes = next((one for one in reversed(folders) if one.lower().endswith(suffix)), None)
    context: dict[str, Any] = {"name": name, "row_ordinal": 0}
    for folder in reversed(folders):
        word = folder[: -len(suffix)] if folder == of_changes else folder
        if control := control_tables.name_of(word):
            return context | {"kind": "control", "word": control, "is_change_table": folder == of_changes}
        if folder == of_changes:
            break
    if of_changes is not None:
        return context | {"kind": "changes", "word": of_changes[: -len(suffix)]}
    if load and folders:
        number = int(load[1])
        if load[2]:
            segment, number = number, int(load[2])
            is_known = segment < NUM_SEGMENTS and number < LEN_SEGMENT
            number += FIRST_OF_SEGMENTS + segment * LEN_SEGMENT
        else:
            is_known = number < FIRST_OF_SEGMENTS
        if not is_known:
            of_segment = f"a segment below {NUM_SEGMENTS} with a number below {LEN_SEGMENT}"
            expected = f"a number below {FIRST_OF_SEGMENTS}, or {of_segment}"
            return Refused("missing_change_seq", (), expected, name)
        return context | {"kind": "load", "word": folders[-1], "number": number}
    expected = (
        f"a file in a folder SCHEMA.TABLE{options.suffix} or below (option suffix), or SCHEMA.TABLE/LOAD...; Apply "
        "Changes on a file target says no operation: switch Store Changes on"
    )
    return Refused("unknown_table", (), expected, path[-80:])


def segment_of(number: int) -> tuple[int, int]:
    """The segment of a load's file, -1 where it has none, and its number in it. In: its number in places.

    >>> segment_of(2), segment_of(FIRST_OF_SEGMENTS + 3 * LEN_SEGMENT + 12)
    ((-1, 2), (3, 12))
    """
    return (-1, number) if number < FIRST_OF_SEGMENTS else divmod(number - FIRST_OF_SEGMENTS, LEN_SEGMENT)


def number_of(word: str, options: Options) -> int:
    """Six digits by which places of a table's loads differ from those of other tables; `own_place` tells where two
    tables have the same."""
    return options.load_numbers.get(word, zlib.crc32(word.encode()) % 10**6)
