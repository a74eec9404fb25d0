"""The operation model at speed: Arrow batches of messages -> the compiled walk -> Arrow batches of changes.

What the walk is sure of becomes a row; constants of a table or an operation are numbers on the way and are filled in by
SQL text afterwards. What it is not sure of is left out: other shapes and options, several records in one message, an
op_ts of another zone than UTC.

Mark        the place in the order of the change that the walk reads from a message, where that begins with texts up to
            `pos`. A message that says its `pos` elsewhere has none, and its batch is looked through for repeats; so is,
            whatever its marks, what the exact path reads
"""

import re
from collections.abc import Iterable

from inlet import change
from inlet.codecs.goldengate.json.arrow import WALKED_DDL, walked
from inlet.codecs.goldengate.json.contracts import OPERATIONS, Contracts
from inlet.codecs.goldengate.json.options import Options
from inlet.codecs.goldengate.operations.position import LEN_MAX as LEN_POS
from inlet.codecs.goldengate.operations.position import LEN_RBA
from inlet.source import Source
from inlet.sql import literal
from inlet.table import Table

READ = "unit_id", "source", "value"
LEN_SEQUENCE = 9  # digits of a sequence number in change_seq
MOST_BEFORE = 16  # members before pos
MOST_DIGITS = 28  # of pos, zeros before it aside: the sequence number is one that a decimal holds
SEQUENCE = f"cast(concat(if(startswith(pos, '-'), '-', ''), left(digits, {MOST_DIGITS - LEN_RBA})) as decimal(20,0))"
IS_HELD = f"sequence between 0 and {10**LEN_SEQUENCE - 1}"
SEQ = (
    f"concat('{change.NO_TIME}', lpad(cast(cast(sequence as bigint) as string), {LEN_SEQUENCE}, '0'), "
    f"right(digits, {LEN_RBA}))"
)
NAME = re.compile(r"[^\"\\\x00-\x1f]+")  # of a member that JSON spells as it is


def marked(messages, sources: list[Source]):
    """Messages with `seq`, the change_seq that the text tells without a parse, and `mark`, which is the same: each
    change has a place of its own. A message of another shape has neither.
    """
    options = {source.name: source.options_as(Options) for source in sources}
    pos = _by_source({name: _pos(of.names["pos"]) for name, of in options.items()})
    shift = _by_source({name: f"{of.sequence_shift}BD" for name, of in options.items()})
    return (
        messages.selectExpr("*", f"{pos} as pos")
        .selectExpr("*", f"lpad(ltrim('-0', pos), {MOST_DIGITS}, '0') as digits")
        .selectExpr("*", f"{SEQUENCE} + {shift} as sequence")
        .selectExpr("*", f"if(length(ltrim('-0', pos)) <= {MOST_DIGITS} and {IS_HELD}, {SEQ}, null) as seq")
        .drop("pos", "digits", "sequence")
        .selectExpr("*", "seq as mark")
    )


def _by_source(values: dict[str, str]) -> str:
    """SQL for what is one thing or another by source."""
    names: dict[str, list[str]] = {}
    for name, sql in values.items():
        names.setdefault(sql, []).append(name)
    cases = " ".join(f"when source in ({', '.join(map(literal, of))}) then {sql}" for sql, of in names.items())
    return f"case {cases} end" if len(names) > 1 else next(iter(names))


def _pos(name: str) -> str:
    """SQL for the digits of `pos`, maybe with a minus, of a message that begins with texts up to it; else null."""
    if not NAME.fullmatch(name):
        return "cast(null as string)"
    text = r'"[^"\\]*"'
    before = rf"^\{{(?:\s*{text}\s*:\s*{text}\s*,){{0,{MOST_BEFORE}}}?\s*"
    pos = rf'"{_escaped(name)}"\s*:\s*"(-?[0-9]{{1,{LEN_POS}}})"'
    return f"nullif(regexp_extract(cast(value as string), {literal(before + pos)}, 1), '')"


def _escaped(name: str) -> str:
    """A pattern of Java for these letters."""
    return re.sub(r"([^\w])", r"\\\1", name, flags=re.ASCII)


def survey_sql() -> dict[str, str]:
    """Aggregates over marked messages that tell whether a change can be there twice: it cannot if every message has a
    mark and all are distinct.
    """
    return {
        "num_records": "count(*)",
        "num_distinct_seq": "count(distinct mark)",
        "min_seq": "min(seq)",
        "max_seq": "max(seq)",
        "may_have_refresh": "false",
    }


def fast(messages, sources: list[Source], tables: dict[str, Table], loads: list[dict]):
    """Changes of the messages that are in no doubt. In: DataFrame of bronze.messages; there are no loads. Out: CHANGES
    without batch_id, decoded_at.
    """
    contracts = Contracts(sources, tables)
    rows = messages.selectExpr(*READ).mapInArrow(walked(contracts), WALKED_DDL)
    contract = [table for _, table in contracts.places]
    constants = {
        "source": _pick([name for name, _ in contracts.places], "p"),
        "source_schema": _pick([x.schema_name for x in contract], "p"),
        "source_table": _pick([x.table_name for x in contract], "p"),
        "table_version": f"cast({_pick([x.version for x in contract], 'p')} as int)",
        "operation": _pick(OPERATIONS, "o"),
        "change_oper": _pick([change.OPERATIONS[name] for name in OPERATIONS], "o"),
        "unit_offset": "0L",
    }
    walked_columns = {column.split()[0] for column in WALKED_DDL.split(", ")}
    given = constants | {name: name for name in walked_columns}
    begun = " ".join(
        f"when {place} then change_seq >= '{x.earlier[-1].until}'"
        for place, x in enumerate(contracts.contracts)
        if x.earlier
    )
    sure = rows.where(f"case p {begun} else true end") if begun else rows  # what came before: the exact path
    return sure.selectExpr(
        *(
            f"{given.get(c.name, f'cast(null as {c.type})')} as {c.name}"
            for c in change.CHANGES
            if c.name not in ("batch_id", "decoded_at")
        )
    )


def _pick(values: Iterable[str | int], place: str) -> str:
    """The value at a place, out of constants."""
    shown = ", ".join(literal(value) if isinstance(value, str) else str(value) for value in values)
    return f"array({shown})[{place}]" if shown else "cast(null as string)"
