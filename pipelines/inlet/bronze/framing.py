"""Framing: a stream of bytes, cut by its codec into blocks of whole records. What cannot be framed is kept as blocks
that carry the problem.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import accumulate

from inlet.bronze.files import LEN_READ
from inlet.bronze.guard import EXPECTED, KIND, why
from inlet.codecs import CODECS
from inlet.codecs.codec import OWN, offers
from inlet.codecs.results import VERDICTS, Cut, Mark
from inlet.errors import InletError, Reject
from inlet.source import Source

LEN_BLOCK = 1 << 20  # a unit of about 1 MiB: some 10,000 records, one Arrow batch when decoded
LEN_HEAD = 1 << 20


@dataclass(frozen=True)
class FileBlock:
    file_offset: int
    data: bytes
    context: dict
    num_records: int
    marks: list[Mark] | None = None  # in it, by the offset in the file; num_records: of the block


def cut_file(
    source: Source,
    tables,
    path,
    stream,
    start,
    context,
    has_settled,
    companions=None,
    before=None,
    codec=None,
    is_followed=False,
    goes_on=False,
) -> Generator[tuple[FileBlock, dict], None, list[str]]:
    """Blocks of a stream from `start` on, each with the context after it. Bytes from there on are read once, in pieces.
    Returns: the options that would tell how a file is read that waits until it is whole, where its codec knows them.

    What cannot be framed (a reject of `open_file` or `cut`, or a tail that has settled) is a block, or several, whose
    context carries the problem, so that silver rejects it and no byte is lost. In: is_followed, that no record behind
    those that are there belongs to them, though one may still be unfinished; goes_on, that these are planned, and that
    the file had more behind them.
    """
    codec = codec or CODECS[source.codec]
    offset, rest = start, stream.read(LEN_READ)
    if context is None and rest:
        opened = attempt(
            _open,
            codec,
            path,
            rest[:LEN_HEAD],
            has_settled and len(rest) <= LEN_HEAD,  # a read gives less than it is asked for only at the end
            source,
            tables,
            companions,
            before,
        )
        if opened is None and not has_settled and len(rest) <= LEN_HEAD:
            asked = attempt(codec.open_options, path, rest, source, tables) if offers(codec, "open_options") else []
            return [] if isinstance(asked, Reject) else asked
        if not isinstance(opened, dict):
            why = opened or _truncated(codec, rest[:LEN_HEAD])
            yield from unframed(offset, rest, stream, ({"companions": companions} if companions else {}), why)
            return []
        context = opened
    if context and "problem" in context:  # what follows a place that cannot be framed has no known beginning
        yield from unframed(offset, rest, stream, context)
        return []
    while rest:
        more = stream.read(LEN_READ)
        is_final, follows = not more and (has_settled or is_followed), []
        if offers(codec, "ENDS_WITH_NEXT"):
            is_final, follows = is_final and not goes_on, [not more and (is_followed or goes_on)]
        cut = attempt(_cut, codec, rest, context, source, tables, LEN_BLOCK, is_final, *follows)
        if isinstance(cut, Reject):
            yield from unframed(offset, rest + more, stream, context, cut)
            return []
        yield from _blocks_of(cut, rest, offset)
        offset, rest, context = offset + cut.consumed, rest[cut.consumed :], cut.context
        if cut.problem:
            yield from unframed(offset, rest + more, stream, context, cut.problem)
            return []
        if not more:
            break
        rest += more
    if rest and has_settled:
        place = codec.span(context, 1) if offers(codec, "TELLS_FIRST") else None  # silver.transactions asks for it
        yield from unframed(offset, rest, stream, context, _truncated(codec, rest, place))
    return []


def is_opened(context: dict) -> bool:
    """Has the codec opened the file, whatever became of its rest? In: the context at its end, of a codec whose files
    depend on each other, so that it tells at least their place.
    """
    return bool(context.keys() - OWN)


def unframed(
    offset: int, rest: bytes, stream, context: dict, why: Reject | None = None
) -> Iterator[tuple[FileBlock, dict]]:
    """All that is left, in pieces that fit in a row; their context carries the problem and stays, for what a growing
    file adds. In: the bytes at hand, and the stream of those after them; the context at `offset`; why it cannot be
    framed, where the context does not say so.
    """
    context = context | {"problem": problem_of(why)} if why else context
    while rest:
        yield FileBlock(offset, rest, context, 1), context
        offset, rest = offset + len(rest), stream.read(LEN_READ)


def _cut(codec, data: bytes, *given) -> Cut:
    """The codec's cut of these bytes. Raises: ValueError where its blocks leave bytes out or hold some twice, or where
    its marks are none, or its contexts have members of ours.
    """
    cut, end = codec.cut(data, *given), 0
    for context in (*(block.context for block in cut.blocks), cut.context):
        _check_members("cut", context, OWN - {"companions"})
    for block in cut.blocks:
        if block.offset != end or block.length <= 0 or block.num_records < 0:
            raise ValueError(
                f"cut: a block of {block.length} bytes and {block.num_records} records at {block.offset}, after one "
                f"that ends at {end}"
            )
        end += block.length
    if not end == cut.consumed <= len(data):
        raise ValueError(f"cut: blocks end at {end}, {cut.consumed} of {len(data)} bytes are consumed")
    starts, ends = [block.offset for block in cut.blocks], [block.offset + block.length for block in cut.blocks]
    totals = [0, *accumulate(block.num_records for block in cut.blocks)]
    last = Mark(0, 0, "")
    for mark in cut.marks or ():
        least, most = totals[bisect_right(ends, mark.offset)], totals[bisect_left(starts, mark.offset)]
        if (
            mark.verdict not in VERDICTS
            or not last.offset <= mark.offset <= end
            or not max(last.num_records, least) <= mark.num_records <= most
        ):
            raise ValueError(f"cut: {mark} after {last}, in {end} bytes, with {least} to {most} records up to there")
        last = mark
    return cut


def _blocks_of(cut: Cut, data: bytes, offset: int) -> Iterator[tuple[FileBlock, dict]]:
    """Blocks of data which begins at a place in the file, each with the context after it."""
    num, first = 0, 0
    offsets = [mark.offset for mark in cut.marks or ()]  # in order
    for n, block in enumerate(cut.blocks):
        end = block.offset + block.length
        after = cut.blocks[n + 1].context if n + 1 < len(cut.blocks) else cut.context
        marks = None
        if cut.marks is not None:
            behind = bisect_right(offsets, end)  # of the first block, a mark at 0 is of all records before this piece
            marks = [
                m._replace(offset=offset + m.offset, num_records=m.num_records - num) for m in cut.marks[first:behind]
            ]
            first = behind
        whole = data[block.offset : end]
        yield FileBlock(offset + block.offset, whole, block.context, block.num_records, marks), after
        num += block.num_records


def _open(codec, path, head, is_whole, source: Source, tables, companions, before) -> dict | Reject | None:
    """The context of a file's first byte."""
    opened = codec.open_file(path, head, is_whole, source, tables)
    if not isinstance(opened, dict):
        return opened
    _check_members("open_file", opened, OWN)
    opened = opened | {"companions": companions} if companions else opened
    if not offers(codec, "follow"):
        return opened
    known = before and {name: value for name, value in before.items() if name not in OWN}
    return codec.follow(opened, known)


def _check_members(what: str, context: dict, own: set[str]) -> None:
    """Raises: ValueError where a codec gives a member of a context that is not its own."""
    if found := own & context.keys():
        raise ValueError(f"{what}: the context has {', '.join(sorted(found))}, which codecs do not give")


def attempt(call, *given):
    """What a codec says of a file; where it fails instead, a Reject."""
    try:
        return call(*given)
    except InletError:
        raise
    except Exception as error:  # whatever a codec did not foresee: no file stops the others
        return Reject(KIND, 0, 0, 0, EXPECTED, why(error), b"")


def _truncated(codec, rest: bytes, span: tuple[str, str] | None = None) -> Reject:
    """In: where the record would stand, if that can be told."""
    shown_by = f"; {codec.WHOLE_BY}" if offers(codec, "WHOLE_BY") else ""
    expected, found, seq = f"the rest of the record{shown_by}", "the end of the file", span[0] if span else None
    return Reject("truncated", 0, len(rest), len(rest), expected, found, b"", change_seq=seq)


def problem_of(reject: Reject) -> dict:
    """Why bytes could not be framed, as their context says it."""
    told = {name: getattr(reject, name) for name in ("source_schema", "source_table", "column_name", "change_seq")}
    return {
        "kind": reject.kind,
        "byte_offset": reject.byte_offset - reject.unit_offset,
        "expected": reject.expected,
        "found": reject.found,
    } | {name: value for name, value in told.items() if value is not None}
