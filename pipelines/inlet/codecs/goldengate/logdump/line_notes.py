"""What each line of logdump's text says, for `inlet inspect`. The lines: logdump/patterns.py."""

from collections.abc import Callable
from re import Match, Pattern

from inlet.codecs.goldengate.logdump import patterns
from inlet.codecs.goldengate.logdump.lines import lines_of
from inlet.codecs.notes import Note, printable


def _token(match: Match[str]) -> str:
    return f"{match[2] or chr(int(match[1], 16))}, info {match[3]}, length {match[4]}"


def _name(match: Match[str]) -> str:
    index = f", {'defined as' if match[2] else 'defined by'} TDR index {match[3]}" if match[3] else ""
    return f"{match[1] or 'none'}{index}"


def _pairs(line: str) -> str:
    """The fields of a header, in hex where logdump has them so."""
    return ", ".join(" ".join(filter(None, pair)) for pair in patterns.PAIR.findall(line))


LINES: tuple[tuple[Pattern[str], str, Callable[[Match[str]], str]], ...] = (
    (patterns.NO_TEXT, "no text", lambda match: printable(match.string.encode("latin-1"))),
    (patterns.PROMPT, "prompt", lambda match: match.string.strip()),
    (patterns.TRAIL, "trail file", lambda match: match[1]),
    (patterns.FENCE, "fence", lambda match: ""),
    (patterns.TOKEN, "token", _token),
    (patterns.BORDER, "border", lambda match: "a record"),
    (patterns.SUMMARY, "time", lambda match: f"{match[1]}, {match[2]}, {match[3]} bytes of data, RBA {match[4]}"),
    (patterns.NAME, "table", _name),
    (patterns.IMAGE, "image", lambda match: f"{match[1].lower()}, Partition {match[2]}, TransInd {match[4]}"),
    (
        patterns.COLUMN,
        "column",
        lambda match: f"{'of the key, ' * (match[1] == 'KeyCol')}index {match[2]}, length {match[4]}",
    ),
    (patterns.LEN_LINE, "length", lambda match: match.string.strip()),
    (patterns.GGS_TOKENS, "GGS tokens", lambda match: ""),
    (patterns.USER_TOKENS, "user tokens", lambda match: ""),
    (patterns.HEX, "bytes", lambda match: printable(bytes.fromhex(match[1]))),
)


def _note(at: int, end: int, line: str) -> Note:
    own = line[patterns.lead_of(line)[1] :]
    if not own.strip():
        return Note(at, end - at, "blank line")
    for pattern, name, meaning in LINES:
        match = pattern.search(own) if pattern is patterns.NO_TEXT else pattern.match(own)
        if match:
            return Note(at, end - at, name, meaning(match))
    if patterns.PAIR.search(own):
        return Note(at, end - at, "header", _pairs(own))
    return Note(at, end - at, "other text", printable(own.encode("latin-1")))


def line_notes(data: bytes) -> tuple[str, list[Note]]:
    """What a record calls its operation, and its lines, each with what it is; of what is no record, no operation."""
    text = data.decode("latin-1")
    found = [(at, end, line) for at, line, end in lines_of(text)]
    start = found[0][0] if found else len(data)
    marks = [Note(0, start, "byte-order mark")] if start else []
    summaries = (patterns.SUMMARY.match(line[patterns.lead_of(line)[1] :]) for _, _, line in found)
    operation = next((match[2] for match in summaries if match), "")
    return operation, marks + [_note(at, end, line) for at, end, line in found]
