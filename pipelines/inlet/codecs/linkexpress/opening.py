"""A Linkexpress extract is opened: what its name says, and the one reading of its bytes that fits.

What a source's options leave open (`auto`) is settled by exact fit over a file's first records: of all readings, the
one under which each record is read to its last byte, and the file to its end where all of it is there. Where damage
lets none fit, the one that reads by far the most. Several that decode a record differently are no choice; of those that
do not, one is where it reads by far the most of the records that not all of them read. A reading under which records
fail for their text alone is one: their rejects say so, for the option charset may be another one than the file's. But
where no record can be read, readings that differ in what follows the text are no choice.
"""

from collections.abc import Iterator
from itertools import product

from inlet.codecs.linkexpress import file_name
from inlet.codecs.linkexpress.block import decode
from inlet.codecs.linkexpress.fit import NEARLY, OPTION_OF, Fit, are_told
from inlet.codecs.linkexpress.frames import DIFFERENCES, FULL, JOURNAL, OPEN, READING, tables_of
from inlet.codecs.linkexpress.item import compile_layouts
from inlet.codecs.linkexpress.options import options_of
from inlet.codecs.linkexpress.reject import change_seq_prefix, of_file
from inlet.errors import Reject
from inlet.fields import sql_type
from inlet.source import Source

LEN_FITTED = 1 << 20
NUM_TOLD = 4  # readings that a refusal lists
SETTLED = ("layout", "extract", *READING)  # members of a context that are its reading
AFTER_TEXT = tuple(name for name in SETTLED if name != "null_var_body")  # that a record shows after a text at fault
IN_BYTE_ORDER = {
    *("SMALLINT", "INTEGER", "REAL", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "INTERVAL"),
    *("VARCHAR", "NVARCHAR", "NCHAR", "BLOB", "BYTEA", "TEXT"),
}
VARIABLE = {"VARCHAR", "NVARCHAR", "BLOB", "BYTEA", "TEXT"}


def named(path: str, head: bytes, source: Source) -> tuple[dict, str] | Reject:
    """What a file's name says: the context before its first byte, in which nothing of its bytes is known yet; the word
    that names its table, "" for none.
    """
    name = file_name.read(path, head, options_of(source))
    if isinstance(name, Reject):
        return name
    return {
        "byte_order": None,
        "null_areas": None,
        "time": name.time,
        "file_ordinal": name.ordinal,
        "table": None,
        "load_id": None,
        "record_ordinal": 0,
        "transaction_ordinal": 0,
        "counter": 0,
    }, name.table


def tables_named(word: str, source: Source, tables: dict) -> list[str]:
    """Tables of this source (all, if it maps none) that a word names, whole or by the part behind the dot."""
    word = word.lower()
    return sorted(
        {
            tables[t].table
            for t in set(source.tables.values()) or tables
            if t in tables and word in (t.lower(), t.lower().split(".")[-1])
        }
    )


def settled(
    context: dict,
    head: bytes,
    is_whole: bool,
    layouts: tuple[tuple[str, str | None], ...],
    carried: set[str],
    source: Source,
    tables: dict,
) -> dict | Reject | None:
    """The context of a file's first byte. In: what its name says; its first MiB, or what is there of it; whether no
    more will come; the layouts that it may have, and what it is in each; the tables whose rows it may hold.

    Out: the context; with byte_order None where a whole file holds no whole record. None while no reading, or more than
    one, fits what is there. A Reject where none can be chosen.
    """
    fits, tables = _fits(context, head, is_whole, layouts, carried, source, tables), tables_of(context, tables)
    is_all, may_grow = is_whole and len(head) <= LEN_FITTED, not is_whole and len(head) < LEN_FITTED
    if len(fits) > 1 and not any(fit.len_good for fit in fits) and any(fit.is_open for fit in fits):
        if len(head) >= LEN_FITTED:
            return too_long(head, _open_options(fits))
        return None if may_grow else context | {"byte_order": None, "null_areas": None}
    chosen = _choose(fits, head, is_all, source, tables)
    may_tell_more = may_grow and not all(fit.is_bad_length for fit in fits)
    if may_tell_more and (isinstance(chosen, Reject) or not chosen.may_be_taken_early(fits)):
        return None
    if isinstance(chosen, Reject):
        return chosen
    return chosen.context | {"load_id": change_seq_prefix(context) if chosen.has_load else None}


def open_options(context: dict, head: bytes, layouts, carried: set[str], source: Source, tables: dict) -> list[str]:
    """The options by which the readings differ that may still turn out to be a file's; none while no record is whole by
    any. In: as of `settled`.
    """
    fits = _fits(context, head, False, layouts, carried, source, tables)
    left = [fit for fit in fits if not fit.is_refuted]
    return _open_options(left if len(left) > 1 else fits) if any(fit.num_records for fit in left) else []


def _fits(context: dict, head: bytes, is_whole: bool, layouts, carried: set[str], source: Source, tables) -> list[Fit]:
    """How well each reading fits that the options leave open. In: as of `settled`."""
    tables = tables_of(context, tables)
    readings = list(_readings(context, layouts, carried, source, tables))
    is_all = is_whole and len(head) <= LEN_FITTED
    return [Fit(head[:LEN_FITTED], context | reading, is_all, source, tables) for reading in readings]


def too_long(head: bytes, options: list[str]) -> Reject:
    """A file whose first record goes on behind what readings are tried on. In: the options by which they differ."""
    told = ", ".join(options)
    expected = f"a first record of less than {LEN_FITTED:,} bytes; or set the options that are auto: {told}"
    return of_file("ambiguous_layout", head, expected, "one that goes on")


def _readings(
    context: dict, layouts: tuple[tuple[str, str | None], ...], carried: set[str], source: Source, tables: dict
) -> Iterator[dict]:
    """Every reading that the options leave open. Knobs that no column of the tables depends on are not varied."""
    options = options_of(source)
    compile_layouts(tables, frozenset(carried), options, context)  # so that a wrong type is named by its column
    types = {sql_type.parse(c.source_type)[0] for t in carried for c in tables[t].columns if c.source_type}
    orders, in_order = _open(options.byte_order, ("big", "little")), types & IN_BYTE_ORDER
    in_order |= types & {"CHARACTER"} if options.charset == "utf_16" else set()
    signs = _open(options.numeric_sign, ("separate", "overpunch") if "NUMERIC" in types else ("separate",))
    bodies = _open(options.null_var_body, ("len0", "full", "absent") if types & VARIABLE else ("len0",))
    for layout, extract in layouts:
        null_areas, logtypes = _open(options.null_areas, ("yes", "no")), _open(options.logtype, ("normal", "little"))
        if layout == JOURNAL:
            null_areas, logtypes = ("yes",), ("normal",)
        elif layout != OPEN and options.logtype == "auto" and not types & VARIABLE:
            logtypes = ("normal",)
        elif (JOURNAL, DIFFERENCES) in layouts and (OPEN, DIFFERENCES) not in layouts:
            null_areas = ("yes",)
        for order, areas, sign, logtype in product(orders, null_areas, signs, logtypes):
            if extract == FULL and logtype == "normal" and not in_order and order != orders[0]:
                continue  # its codes read the same both ways
            for body in bodies if logtype == "little" else bodies[:1]:
                yield dict(zip(SETTLED, (layout, extract, order, areas, sign, logtype, body)))


def _open(option: str, values: tuple) -> tuple:
    return values if option == "auto" else (option,)


def _choose(fits: list[Fit], head: bytes, is_all: bool, source: Source, tables: dict) -> Fit | Reject:
    """The one reading that fits, or that reads by far the most. Raises nothing: no choice is a Reject.

    Records that say their length prove a reading; those of one size fit by chance. Unless options say how they are
    read, they are taken where nothing else is possible.
    """
    most = max(fit.len_fitting for fit in fits)
    near = sorted((fit for fit in fits if fit.len_fitting >= NEARLY * most), key=lambda fit: -fit.len_good)
    best = (
        [fit for fit in fits if fit.is_to_the_end and (is_all or fit.is_exact)]
        or [fit for fit in fits if fit.is_exact]
        or [fit for fit in near if not fit.decoded.rejects]
        or near
    )
    if not are_told(fits) and not all(fit.has_lengths for fit in best):
        others = [fit for fit in fits if fit.is_open]
        if not best[0].is_to_the_end and not best[0].is_credible:
            others += [fit for fit in fits if fit.len_good > (1 - NEARLY) * most]
            others += [fit for fit in fits if fit.has_lengths and not fit.num_records and not best[0].is_likely]
        best = list(dict.fromkeys([*best, *others]))
    same = [fit for fit in best if fit.tells_the_same(best[0])]
    is_one = best[0].len_good and all(fit in same or best[0].outweighs(fit) for fit in best)
    if not best[0].len_good and best[0].is_but_for_text:
        is_one = all(fit.decoded.rejects == best[0].decoded.rejects for fit in best) and not _varied(best, AFTER_TEXT)
    orders = {fit.context["byte_order"] for fit in same}
    if len(fits) == 1 or is_one and (len(orders) == 1 or best[0].is_all_fitted):
        return best[0]
    if any(fit.len_good for fit in best):
        others = [fit for n, fit in enumerate(best) if not any(fit.tells_the_same(one) for one in best[:n])]
        others = best if len(others) == 1 else others
        options = ", ".join(_open_options(others))
        return of_file(
            "ambiguous_layout",
            head,
            "one reading that fits best" + (f"; set the options that are auto: {options}" if options else ""),
            _tried(others),
        )
    longest = max(fits, key=lambda fit: (fit.is_but_for_text, fit.num_records))
    first = (longest.decoded.rejects or decode(head, longest.context, source, tables).rejects)[0]
    return of_file(
        first.kind,
        head,
        f"a reading under which a record fits; so far {first.expected}",
        f"{first.found}; tried {_tried(fits)}",
        first.byte_offset,
    )


def _open_options(fits: list[Fit]) -> list[str]:
    """The options by which readings differ: `extract` is none, for a file is what it is."""
    return [OPTION_OF.get(name, name) for name in _varied(fits) if name != "extract"]


def _varied(fits: list[Fit], names: tuple[str, ...] = SETTLED) -> list[str]:
    """In which members readings differ."""
    return [name for name in names if len({fit.context[name] for fit in fits}) > 1]


def _tried(fits: list[Fit]) -> str:
    """Readings in words, the one that got farthest first."""
    varied, ordered = _varied(fits), sorted(fits, key=lambda fit: -fit.len_good)
    more = f"; and {len(ordered) - NUM_TOLD} more" if ordered[NUM_TOLD:] else ""
    return "; ".join(fit.told(varied) for fit in ordered[:NUM_TOLD]) + more
