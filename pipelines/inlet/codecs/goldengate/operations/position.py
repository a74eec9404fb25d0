"""Where a message of GoldenGate stands in its source: `pos`, the trail's sequence number and the RBA of its record.

[documented] 20 digits: 10 of the sequence number, 10 of the RBA. [messages seen] 23 digits; a sign; a minus between the
two; a sequence number below zero, padded to ten characters, `00000000-1`. Read: any number of digits, of which the last
10 are the RBA; a minus before them, or in a padded sequence number, which is the sequence number's; `seqno-RBA`. Ten
digits, a minus and nine digits are refused: they are `seqno-RBA` as well as an RBA below zero.

ASSUMED: position alone orders. op_ts falls while pos rises, and messages come out of pos order; so the 16 digits of
time of change_seq are zeros for each source of messages, and no time is read from it (docs/adr/0014). Hence `until` of
a contract's earlier versions is a change_seq there, and no time.

The row model writes a change of the key as a D and an I of one pos (pkUpdateHandling=delete-insert) [vendor sample], so
its INSERT stands one byte behind its pos: the record before it is longer than a byte, and so is its own.

>>> position("00000000020000002052"), position("-0000000010000002052"), position("2-52")
((2, 2052), (-1, 2052), (2, 52))
>>> position("00000000-10000001391"), position("0000000-120000001391")
((-1, 1391), (-12, 1391))
>>> position("0000000000-000000001")
"""

import re

from inlet import change

LEN_RBA = 10
DIGITS = re.compile(r"(-?)([0-9]+)")
PADDED = re.compile(rf"(?=.{{{2 * LEN_RBA}}}$)0+(-[1-9][0-9]*)([0-9]{{{LEN_RBA}}})")
PARTED = re.compile(r"([0-9]+)-([0-9]{1,10})")
TWO_READINGS = re.compile(r"[0-9]{10}-[0-9]{9}")
LEN_MAX = 40  # of what is read as numbers


def position(pos: str) -> tuple[int, int] | None:
    """(sequence number, RBA); None where the text is none of the forms that are read."""
    if len(pos) > LEN_MAX or TWO_READINGS.fullmatch(pos):
        return None
    if match := DIGITS.fullmatch(pos):
        sequence, rba = int(match[2][:-LEN_RBA] or 0), int(match[2][-LEN_RBA:])
        if match[1]:
            return (-sequence, rba) if sequence else None
        return sequence, rba
    match = PADDED.fullmatch(pos) or PARTED.fullmatch(pos)
    return (int(match[1]), int(match[2])) if match else None


def change_seq(sequence: int, rba: int, is_behind: bool) -> str | None:
    """The place in the order; None where nine digits and ten do not hold it. In: is_behind, the INSERT of the row
    model."""
    if not (0 <= sequence < 10**9 and 0 <= rba + is_behind < 10**LEN_RBA):
        return None
    return change.change_seq(change.NO_TIME, sequence, rba + is_behind)
