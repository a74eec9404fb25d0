"""The lines of logdump's text, as patterns; and what people's tools put in front of such lines.

Marks of quoted text (`> `) and of comments (`# `), and times of a terminal's log (`2026-01-05 10:11:12 `,
`[10:11:12] `) in front of a line are no part of it: no line of logdump's begins with these but the one that tells a
record's time.
"""

import re

PROMPT = re.compile(r"(?:\s*Logdump(?: \d+)? ?>)+", re.ASCII)
BORDER = re.compile(r"\s*(_{20,})", re.ASCII)
TRAIL = re.compile(r"\s*Current LogTrail is\s+(\S++(?:\s++\S++)*+)\s*$", re.ASCII)
TOKEN = re.compile(
    r"\s*TokenID\s+(?:x([0-9a-fA-F]{2}) '.'|(\S)(?: \(x[0-9a-fA-F]{2}\))?,)[^,]*?Info\s+x?([0-9a-fA-F]{1,2}),?\s+"
    r"Length\s+(\d+)\s*$",
    re.ASCII,
)
TIMED = r"(\d{4}[/-]\d\d[/-]\d\d \d\d:\d\d:\d\d\.\d{3}\.?\d{3})\s+(\S+)\s+Len\s+(\d+)\s+RBA\s+(\d{1,10})\s*$"
SUMMARY, LATER_SUMMARY = re.compile(rf"\s*{TIMED}", re.ASCII), re.compile(rf"(?<!^)(?<!\w){TIMED}", re.ASCII)
NAME = re.compile(r"\s*(?:(?:Table|Database) )?Name:\s*(.*?)(?:\s+\((Ref )?TDR Index:\s*(\d+)\))?\s*$", re.ASCII)
IMAGE = re.compile(r"\s*(Before|After)\s+Image:.*?Partition\s+(x[0-9a-fA-F]+|\d+)\s+(\S+)\s+([bmes])\s*$", re.ASCII)
COLUMN = re.compile(
    r"\s*(Column|KeyCol)\s+(\d+) \(0?x([0-9a-fA-F]+)\), Len(?:gth)?\s+(\d+) \(0?x([0-9a-fA-F]+)\)\.?\s*$", re.ASCII
)
PAIR = re.compile(
    r"\b(Hdr-Ind|Partition|UndoFlag|BeforeAfter|RecLength|IOType|OrigNode|TransInd|FormatType|SyskeyLen|Incomplete|"
    r"Continued|RecCount)\s*+:\s*+\S{0,40}\s*+\(x([0-9a-f]+)\)|\b(AuditRBA|AuditPos)\s*+:\s*+(-?\d+)|"
    r"\b(IO Time)\s*+:\s*+(\S+ \S+)|\b(DDR/TDR index):\s*\((\d+), *(\d+)\)",
    re.ASCII | re.IGNORECASE,
)
HEX = re.compile(r"\s*((?:[0-9a-fA-F]{4} ){0,9}(?:[0-9a-fA-F]{4}|[0-9a-fA-F]{2}))\s*(?:([|:]) ?(.*))?$", re.ASCII)
LEN_LINE = re.compile(r"\s*(?:Before Image |After Image |Key)Len\s+\d+", re.ASCII)  # of the two images of a record
GGS_TOKENS, USER_TOKENS = re.compile(r"\s*GGS tokens:"), re.compile(r"\s*User tokens:")
NO_TEXT = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f]")  # in no line that a terminal shows
FENCE = re.compile(r"\s*(?:```|~~~)")  # around text in a ticket or on a page
LEAD = re.compile(
    r"[ \t]*(?:(?P<mark>[>#])[ \t]?(?:[>#][ \t]?)*|\[?(?:\d{4}[-/]\d\d[-/]\d\d[ T])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"(?:Z|[+-]\d\d:?\d\d)?\]?(?: ?[|:-](?=[ \t]))?(?:[ \t]|$))",
    re.ASCII,
)
TIME_LEAD = "time"  # what `lead_of` calls it


def lead_of(line: str) -> tuple[str, int]:
    """What is in front of a line (>, #, TIME_LEAD or nothing), and how many characters."""
    match = None if SUMMARY.match(line) else LEAD.match(line)
    return (match["mark"] or TIME_LEAD, match.end()) if match else ("", 0)


def begins(line: str) -> bool:
    """Does a line show that logdump's text begins or goes on: a prompt, or the first line of a record?"""
    token = TOKEN.match(line)
    is_first = token is not None and (token[2] or chr(int(token[1], 16))) == "G"
    return is_first or any(pattern.match(line) for pattern in (PROMPT, BORDER, SUMMARY, TRAIL))


def has_front(line: str) -> bool:
    """Is there anything in front of what is a line of a header, or that with the time, which is none of the leads?"""
    match = PAIR.search(line) or LATER_SUMMARY.search(line)
    return match is not None and line[: match.start()].strip() != ""
