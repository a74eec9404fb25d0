"""Records as `inlet inspect` shows them to people: a heading, then a row for each field with its offset and bytes."""

from collections.abc import Iterator

from rich.text import Text

from inlet.codecs.notes import Note
from inlet.commands.inspection import Shown
from inlet.log import counted

WIDTH_OFFSET, WIDTH_NAME, LEN_ROW = 10, 26, 16
MAX_ROWS, MAX_MEANING = 4, 160
STYLES = {"offset": "dim", "name": "cyan", "group": "bold cyan", "fault": "bold red", "heading": "bold"}


def lines_of(shown: Shown, is_full: bool) -> Iterator[Text]:
    """In: whether long values are shown whole."""
    yield _heading(shown)
    if shown.record.fault:
        _, sentence = next(shown.faults())
        yield Text(f"{'':{WIDTH_OFFSET}}  {_safe(sentence)}", STYLES["fault"])
    for note in shown.record.notes:
        yield from _rows(shown, note, 0, is_full)
    yield Text("")


def _heading(shown: Shown) -> Text:
    record = shown.record
    parts = [record.title]
    if record.operation and record.operation.lower() not in record.title.lower():
        parts.append(f"({record.operation})")
    if record.table:
        parts.append(record.table)
    if record.transaction_id:
        event = f" event {record.event}" if record.event else ""
        parts.append(f"transaction {record.transaction_id}{event}{', the last' if record.is_last else ''}")
    if record.csn:
        parts.append(f"CSN {record.csn}")
    if shown.place:
        parts.append(f"message {shown.message}")
    parts.append("row" if shown.is_row else counted(record.length, "byte"))
    if record.change_seq:
        parts.append(record.change_seq)
    return Text(f"{shown.offset:>{WIDTH_OFFSET}}  " + "  ".join(map(_safe, parts)), STYLES["heading"])


def _rows(shown: Shown, note: Note, level: int, is_full: bool) -> Iterator[Text]:
    name = "  " * level + _safe(note.name)
    if note.children:
        size = f"{note.length} byte{'s' * (note.length != 1)}"
        yield _row(shown.base + note.offset, size, name, note.meaning, "group", is_full)
        for child in note.children:
            yield from _rows(shown, child, level + 1, is_full)
        return
    data = shown.bytes_of(note)
    rows = [data[at : at + LEN_ROW] for at in range(0, len(data), LEN_ROW)] or [b""]
    kept = rows if is_full or len(rows) <= MAX_ROWS + 1 else rows[:MAX_ROWS]
    style = "fault" if note.fault else "name"
    for n, row in enumerate(kept):
        first = (name, shown.meaning_of(note)) if n == 0 else ("", "")
        yield _row(shown.base + note.offset + n * LEN_ROW, row.hex(" "), *first, style, is_full)
    if len(kept) < len(rows):
        left = len(data) - LEN_ROW * len(kept)
        yield _row(shown.base + note.offset + LEN_ROW * len(kept), f"... {left:,} bytes more", "", "", style, is_full)


def _row(offset: int, bytes_: str, name: str, meaning: str, style: str, is_full: bool) -> Text:
    text = Text(f"{offset:>{WIDTH_OFFSET}}", STYLES["offset"])
    text.append(f"  {bytes_:<{3 * LEN_ROW - 1}}  ", "dim" if style == "group" else "default")
    if name or meaning:
        text.append(f"{name:<{WIDTH_NAME}}", STYLES[style])
    if meaning:
        shortened = meaning if is_full or len(meaning) <= MAX_MEANING else meaning[:MAX_MEANING]
        text.append(" " + _safe(shortened), STYLES["fault"] if style == "fault" else "default")
        if len(shortened) < len(meaning):
            text.append(f" ... {len(meaning) - len(shortened):,} characters more", "dim")
    text.rstrip()
    return text


def _safe(text: str) -> str:
    """A text that does nothing to a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
