"""Operation types of a GoldenGate record (IOType): name, and what a decoder makes of each.

Facts: [documented] or, of some codes, [recalled], as the table says. Compiled code reads these tables, so this is one
of the sources that `inlet.fields.compiled.cache` looks at.
"""

from collections.abc import Iterator

import numpy as np

# what a record is
CHANGE, SEGMENT, METADATA, DDL, RESTART_ABEND, RESTART_OK, CONTROL, UNSUPPORTED, UNKNOWN = range(9)
INSERT, UPDATE, DELETE, TRUNCATE, UPSERT = range(5)
OPERATIONS = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "UPSERT")
# what stands in the column area of a change
NO_IMAGE, AFTER, BEFORE, KEY_AND_AFTER, BEFORE_AND_AFTER = range(5)

IO_TYPES: dict[int, tuple] = {  # code: name, what it is; of a change its operation and the form of its column area
    1: ("Abort", CONTROL),
    2: ("Commit", CONTROL),
    3: ("Delete", CHANGE, DELETE, BEFORE),
    4: ("EndRollback", CONTROL),
    5: ("Insert", CHANGE, INSERT, AFTER),
    6: ("Prepared", CONTROL),
    7: ("TMF-Shutdown", CONTROL),
    8: ("TransBegin", CONTROL),
    9: ("TransRelease", CONTROL),
    10: ("Update", CHANGE, UPDATE, AFTER),
    11: ("UpdateComp", UNSUPPORTED),  # byte offsets into an Enscribe record, not columns
    12: ("FileAlter", CONTROL),
    13: ("FileCreate", CONTROL),
    14: ("FilePurge", CONTROL),
    15: ("FieldComp", CHANGE, UPDATE, AFTER),
    16: ("FileRename", CONTROL),
    17: ("AuxPointer", CONTROL),
    18: ("NetworkCommit", CONTROL),
    19: ("NetworkAbort", CONTROL),
    90: ("SQLCol", CONTROL),
    100: ("GGSPurgedata", CHANGE, TRUNCATE, NO_IMAGE),
    101: ("GGSPurge", CONTROL),
    102: ("GGSCreate", CONTROL),
    103: ("GGSAlter", CONTROL),
    104: ("GGSRename", CONTROL),
    105: ("GGSSetmode", CONTROL),
    106: ("GGSChangeLabel", CONTROL),
    107: ("GGSControl", CONTROL),
    115: ("GGSPKUpdate", CHANGE, UPDATE, KEY_AND_AFTER),
    116: ("LargeObject", SEGMENT),
    117: ("GGSPKUpdate32", CHANGE, UPDATE, BEFORE_AND_AFTER),
    132: ("SequenceOp", CONTROL),
    134: ("GGSUnifiedUpdate", CHANGE, UPDATE, BEFORE_AND_AFTER),
    135: ("GGSUnifiedPKUpdate", CHANGE, UPDATE, BEFORE_AND_AFTER),
    140: ("Upsert", CHANGE, UPSERT, AFTER),
    150: ("RestartAbend", RESTART_ABEND),
    151: ("RestartOK", RESTART_OK),
    160: ("DDLOP", DDL),
    161: ("RecordFragment", SEGMENT),
    170: ("Metadata", METADATA),
    **{code: (f"NonStop{code}", CONTROL) for code in (*range(200, 206), *range(249, 255))},
}
CODES = {name: code for code, (name, *_) in IO_TYPES.items()}
RECALLED = (*range(104, 108), 117, 132, 150, 151, 161, *range(200, 256))  # codes that no public page shows
WORDS = (
    "a change",
    "a chunk of a LOB",
    "a definition",
    "DDL",
    "a restart after a failure",
    "a restart",
    "a control event",
    "a reject",
)
IMAGES = ("no image", "after-image", "before-image", "key before, after-image", "both images")  # by form
UPDATES = (10, 15)  # a before-image is a record of its own in front of these and of key updates
FULL = (3, 5, 10)  # may have a full image in place of a list of columns [documented]
WHAT_OF = np.full(256, UNKNOWN, np.int64)
OPERATION_OF = np.full(256, -1, np.int64)
FORM_OF = np.full(256, NO_IMAGE, np.int64)
HAS_FULL_IMAGE = np.isin(np.arange(256), FULL)
for _code, _type in IO_TYPES.items():
    WHAT_OF[_code] = _type[1]
    if _type[1] == CHANGE:
        OPERATION_OF[_code], FORM_OF[_code] = _type[2:]


def name_of(code: int) -> str:
    """The vendor's name of an operation type; the number of one that is not known."""
    return IO_TYPES[code][0] if code in IO_TYPES else f"IOType {code}"


def documented() -> Iterator[tuple[int, str, str, str]]:
    """Of each operation type its code and name, what becomes of it, and the mark of its evidence."""
    for code, (name, what, *of_change) in sorted(IO_TYPES.items()):
        words = WORDS[what] if not of_change else f"{OPERATIONS[of_change[0]]}, {IMAGES[of_change[1]]}"
        yield code, name, words, "recalled" if code in RECALLED else "documented"
