"""Where the records of a piece of an extract lie, and what stands before their items: frame.py and table_frame.py, by
the layout of the file.
"""

from dataclasses import dataclass

import numpy as np

from inlet import change
from inlet.codecs.linkexpress import frame, reject, table_frame
from inlet.codecs.linkexpress.item import Layouts, compile_layouts, len_items
from inlet.codecs.linkexpress.options import Options, options_of
from inlet.codecs.linkexpress.settled import Settled, contradicted, option_values
from inlet.errors import ConfigError
from inlet.source import Source
from inlet.table import in_force

LEN_VENDOR_RECORD = 32_000 + 1_024 * 4  # vendor's limits: edited data, items of 2 + 2 bytes around it
LEN_COMMIT, LEN_HEAD = 8, 10  # without null areas; 2 more with them
GROUP, OPEN, JOURNAL = "group", "open", "journal"  # layouts
FULL, DIFFERENCES = "full", "differences"  # what an extract by table is
READING = ("byte_order", "null_areas", "numeric_sign", "logtype", "null_var_body")  # members of contexts, and options


@dataclass
class Frames:
    """Records of a piece of a file. `offsets` has one more: where the walk ended."""

    offsets: np.ndarray
    heads: np.ndarray
    is_bad_length: bool
    len_min: int
    len_max: int
    layouts: Layouts
    transaction_ordinal: int
    counter: int


def frames(data: bytes, context: dict, source: Source, tables: dict) -> Frames:
    """Find the records and read their heads."""
    if context.get("layout", GROUP) != GROUP:
        return _frames_of_table(data, context, source, tables)
    options, tables = options_of(source), tables_of(context, tables)
    ids, names = ids_of(source, tables), sorted(tables)
    layouts = compile_layouts(tables, frozenset(ids.values()) | {context.get("table")}, options, context)
    little, has_null_areas = context["byte_order"] == "little", context["null_areas"] == "yes"
    len_min, len_max = LEN_COMMIT + 2 * has_null_areas, _len_max(layouts, options)
    bytes_ = np.frombuffer(data, np.uint8)
    offsets, is_bad_length = _walk(bytes_, little, len_min, len_max)
    table_of = np.full(65536, -1, np.int64)
    for extraction_id, name in ids.items():
        table_of[extraction_id] = names.index(name)
    full_table = names.index(context["table"]) if context.get("table") else -1
    num = len(offsets) - 1
    heads = np.empty((num, frame.NUM_HEAD), np.int64)
    transaction, counter = frame.heads(
        bytes_,
        offsets,
        num,
        little,
        has_null_areas,
        table_of,
        np.diff(layouts.plan_starts),
        full_table,
        context["transaction_ordinal"],
        context["counter"],
        heads,
    )
    is_late = heads[:, frame.WHAT] == frame.EMPTY_LOAD  # behind another record, FFFF is no operation
    is_late[: context["record_ordinal"] == 0] = False
    heads[is_late, frame.WHAT], heads[is_late, frame.FAULT] = frame.FAULTY, frame.UNKNOWN_OPERATION
    heads[is_late, frame.FAULT_AT] = heads[is_late, frame.ITEMS] - 2
    return Frames(offsets, heads, is_bad_length, len_min, len_max, layouts, transaction, counter)


def _frames_of_table(data: bytes, context: dict, source: Source, tables: dict) -> Frames:
    """The same of an extract by table."""
    options, tables = options_of(source), tables_of(context, tables)
    layouts = compile_layouts(tables, frozenset({context["table"]}), options, context)
    little, is_journal = context["byte_order"] == "little", context["layout"] == JOURNAL
    bytes_, is_bad_length, is_first = np.frombuffer(data, np.uint8), False, context["record_ordinal"] == 0
    if is_journal or context["logtype"] == "little":
        len_before = table_frame.LEN_JOURNAL_HEAD - 2 if is_journal else table_frame.LEN_LENGTH
        len_min, len_max = len_before + table_frame.LEN_OPERATION, _len_max(layouts, options)
        offsets, is_bad_length = _walk(bytes_, little, len_min, len_max)
    else:
        len_before, place = 0, sorted(tables).index(context["table"])
        len_min = len_max = len_record(layouts, place, context)
        offsets = table_frame.walk_strides(bytes_, len_min, context["extract"] == FULL and is_first)
        is_alone = len(offsets) == 2 and offsets[1] < len_min
        if context.get("is_ended"):
            offsets, is_alone = offsets[:1], True
        is_bad_length = is_alone and len(data) > offsets[-1]
    place = sorted(tables).index(context["table"])
    num_items = int(layouts.plan_starts[place + 1] - layouts.plan_starts[place])
    heads = table_frame.heads(
        bytes_, offsets, little, len_before, context["extract"] == FULL, is_first, is_journal, num_items, place
    )
    return Frames(offsets, heads, is_bad_length, len_min, len_max, layouts, 0, 0)


def _walk(data: np.ndarray, little: bool, len_min: int, len_max: int) -> tuple[np.ndarray, bool]:
    """Places of records that say their length, and where the last whole one ends; is the length there impossible?"""
    offsets = np.empty(len(data) // len_min + 2, np.int64)
    num, _, is_bad_length = frame.walk(data, little, len_min, len_max, offsets)
    return offsets[: num + 1], is_bad_length


def _len_max(layouts: Layouts, options: Options) -> int:
    return options.max_record_bytes or max(LEN_VENDOR_RECORD, layouts.len_record + LEN_HEAD + 2)


def reading_in_force(context: dict, source: Source, tables: dict) -> Settled:
    """How a file is read by the options of now. In: the context of a block, whose reading they may contradict."""
    if context["byte_order"] is None:
        return Settled(context)
    options, layout = options_of(source), context.get("layout", GROUP)
    fixed = ("null_areas", "logtype") if layout == JOURNAL else ()  # of the journal form
    now = context | option_values(options, [name for name in READING if name in context and name not in fixed])
    difftype = getattr(options, "difftype", "auto")
    if difftype == "journal" and layout == OPEN:  # its full extracts have them
        now |= {"null_areas": "yes"}
    form = "journal" if layout == JOURNAL else "open"
    if difftype not in ("auto", form) and context["extract"] == DIFFERENCES:
        return contradicted(context, {"difftype": form}, {"difftype": difftype})
    if now != context and _borders(context, source, tables) != _borders(now, source, tables):
        return contradicted(context, context, {name: now[name] for name in READING if name in context})
    return Settled(now)


def _borders(context: dict, source: Source, tables: dict) -> tuple:
    """What decides where records end."""
    if context.get("layout", GROUP) != OPEN or context["logtype"] == "little":
        return ("lengths", context["byte_order"])
    tables = tables_of(context, tables)
    layouts = compile_layouts(tables, frozenset({context["table"]}), options_of(source), context)
    return ("size", len_record(layouts, sorted(tables).index(context["table"]), context))


def len_record(layouts: Layouts, place: int, context: dict) -> int:
    """Bytes of a record of one size, of the table at a place."""
    plans = layouts.plans[layouts.plan_starts[place] : layouts.plan_starts[place + 1]]
    return table_frame.LEN_OPERATION + len_items(plans, context["null_areas"] == "yes")


def check(source: Source, tables: dict) -> None:
    """Raises: ConfigError where extracts cannot be read by the options and the contracts that are the source's own."""
    named = {name for name, table in tables.items() if source.name in table.sources or name in source.tables.values()}
    compile_layouts(tables, frozenset(named), options_of(source), {"byte_order": None})


def tables_of(context: dict, tables: dict) -> dict:
    """The contracts in force for a file: its name tells when it was written."""
    return in_force(tables, reject.change_seq_prefix(context).ljust(change.LEN_SEQ, "9"))


def ids_of(source: Source, tables: dict) -> dict[int, str]:
    """Extraction id -> SCHEMA.TABLE. Raises: ConfigError."""
    for word, name in source.tables.items():
        if not (word.isdigit() and 0 < int(word) < 65536):
            raise ConfigError(
                f"sources.{source.name}.tables: expected an extraction id 1-65535, found {word!r}",
                "The id is the one that the group's definition gives the table",
            )
        if name not in tables and source.wants(name):
            raise ConfigError(
                f"sources.{source.name}.tables maps {word} to {name}, which has no contract for this source",
                f"Write pipelines/tables/{name.split('.')[-1].lower()}.yml",
            )
    return {int(word): name for word, name in source.tables.items() if name in tables}
