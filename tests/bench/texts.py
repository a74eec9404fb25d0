"""Text: kanji of JEF against single bytes, time per character, by the interpreter alone."""

import random
from collections.abc import Iterator

import numpy as np

from inlet.codecs.linkexpress.item import compile_layouts
from inlet.codecs.linkexpress.options import Options
from inlet.fields.compiled import interpreter
from inlet.table import Table
from tests.bench.figure import Figure, best
from tests.encode import linkexpress

LEN_TEXT = 100  # characters
NUM_DISTINCT = 50  # texts that a column repeats
ROUNDS = 9
KANJI = [bytes([lead, trail]).decode("euc_jp") for lead in range(0xB0, 0xCF) for trail in range(0xA1, 0xFF)]
COLUMNS = {  # what it is -> its set, its type, its characters
    "single-byte text": ("ebcdic_kana", f"CHAR({LEN_TEXT})", "ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789"),
    "JEF text in a column of pairs": ("jef", f"NCHAR({LEN_TEXT})", KANJI),
    "JEF text between shift codes": ("ebcdic_kana", f"CHAR({2 * LEN_TEXT + 2})", KANJI),
}


def measure(spark, folder, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    num = 2_000 if is_quick else 40_000
    (against, single), *others = [(what, _seconds(num, *column)) for what, column in COLUMNS.items()]
    for what, seconds in others:
        measured = f"{1e9 * seconds / num / LEN_TEXT:.1f} and {1e9 * single / num / LEN_TEXT:.1f} ns a character"
        yield Figure(what, against, seconds / single, "at most 2", measured)


def _seconds(num: int, charset: str, source_type: str, characters) -> float:
    """Time to read a column of so many texts."""
    rng = random.Random(1)
    texts = ["".join(rng.choices(characters, k=LEN_TEXT)) for _ in range(NUM_DISTINCT)]
    data = np.frombuffer(
        b"".join(linkexpress.encode_text(text, charset) for text in texts) * (num // NUM_DISTINCT), np.uint8
    )
    column = {"name": "S", "type": "string", "source_type": source_type}
    tables = {"B.T": Table(table="B.T", name="t", key=["S"], columns=[column])}
    layouts = compile_layouts(tables, frozenset(tables), Options(charset="ebcdic_kana"), {"byte_order": "big"})
    starts = np.arange(num) * (len(data) // num)
    ends = starts + len(data) // num
    out = np.empty(interpreter.bound(starts, ends, np.ones(num, np.int64)), np.uint8)
    lengths, faults = np.zeros(num, np.int64), np.zeros((num, 4), np.int64)
    seconds = best(
        lambda: interpreter.images(
            data,
            starts,
            ends,
            np.zeros(num, np.int64),
            layouts.plans,
            layouts.plan_starts,
            np.zeros(5, np.int64),
            layouts.singles,
            layouts.doubles,
            interpreter.scratch_of(layouts.plans),
            out,
            lengths,
            faults,
        ),
        ROUNDS,
    )
    assert not faults[:, 0].any()
    return seconds
