"""What tests of GoldenGate's codecs share: contracts of an encoder's tables, files read as bronze and silver read them,
values as a decoder gives them.
"""

import datetime
import io
import random

from inlet.bronze.framing import cut_file
from inlet.bronze.judged import Judged
from inlet.codecs.codec import change_rows, decode_block
from inlet.codecs.goldengate import source_type
from inlet.codecs.goldengate.trail import files as trail
from inlet.silver import unit_rules, verdicts
from inlet.source import Source
from inlet.table import Table
from tests.encode import goldengate_columns as columns


def source_of(**options) -> Source:
    return Source(
        **{
            "name": "trail",
            "codec": "goldengate_trail",
            "from": "landing",
            "options": {"charset": "AL32UTF8"} | options,
        }
    )


def contract_of(table: columns.Table) -> Table:
    """The contract of a table that an encoder knows. Decimal texts are as wide as VARIANT takes them."""
    rows, places = [], columns.offsets(table)
    for c, start, end in zip(table.columns, places, places[1:]):
        type_ = source_type.of_defgen(c.data_type, c.sub_type, c.length, c.scale, 0)
        is_text = c.sub_type in (columns.FLOAT, columns.FIXED_PREC) and c.data_type == columns.ASCII_V
        spark = f"decimal(38,{c.scale})" if is_text else source_type.spark_type(source_type.parse(type_))
        rows.append(
            {"name": c.name, "type": spark, "source_type": f"{type_} AT {start}:{end}", "nullable": c.is_nullable}
        )
    name = table.name.split(".")[-1].lower()
    return Table(table=table.name, name=name, key=table.key, columns=rows)


def decoded_value(column: columns.Column, value):
    """A value as the decoder gives it: times are text, to as many digits as were sent."""
    if isinstance(value, datetime.datetime):
        text = value.isoformat(" ", "microseconds")
        digits = max(column.length - 20, 0)
        return text[:19] + (f".{text[20:].ljust(digits, '0')[:digits]}" if digits else "")
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value


def decoded_image(table: columns.Table, image: dict | None) -> dict | None:
    if image is None:
        return None
    return {c.name: decoded_value(c, image[c.name]) for c in table.columns if c.name in image}


def read_files(files: list[tuple[str, bytes]], source: Source, tables: dict, deliveries=None, codec=trail) -> dict:
    """Read files in their order, each delivered in pieces that end at `deliveries(data)`, as bronze lands and silver
    decodes them; the last one has settled. Every byte and record is accounted for. Out: changes, rejects and controls
    that stand, with `seqno` and `rba`; the ranges given up.
    """
    before, batch = None, 0
    found = {"changes": [], "rejects": [], "controls": [], "abandoned": [], "undecided": []}
    blocks, judged_ranges, undecided = {}, {}, []
    for path, data in files:
        context, start = None, 0
        for end in [*(deliveries(data) if deliveries else []), len(data)]:
            batch += 1
            judged = Judged(undecided, path, start, batch)
            is_whole, is_last = end == len(data), (path, data) == files[-1]
            given = start, context, is_whole and is_last, None, before, codec, is_whole and not is_last
            for block, after in cut_file(source, tables, path, io.BytesIO(data[start:end]), *given):
                judged.add(block)
                blocks[path, block.file_offset, batch] = block
                context, start = after, block.file_offset + len(block.data)
            for at, low, high, _, landed, verdict in judged.verdicts:
                judged_ranges.setdefault((at, landed), []).append((low, high, verdict))
            undecided = judged.undecided
        assert start == len(data), (path, start, len(data))
        before = context
    found["undecided"] = undecided
    for (path, offset, landed), block in sorted(blocks.items(), key=lambda item: item[0][2]):
        size = len(block.data)
        ranges = [
            [max(low - offset, 0), min(high - offset, size), verdict]
            for low, high, verdict in judged_ranges.get((path, landed), [])
            if low < offset + size and high > offset
        ]
        read = decode_block(codec, block.data, block.context, source, tables)
        unit_rules.check(read, source.codec, path, block.data, block.num_records, False)
        where = {"seqno": block.context["seqno"], "path": path}
        for row in change_rows(codec, read, block.context, tables):
            if verdicts.stands(ranges, row["unit_offset"]):
                found["changes"].append(row | where | {"rba": offset + row["unit_offset"]})
        found["rejects"] += [r for r in read.rejects if verdicts.stands(ranges, r.unit_offset)]
        found["controls"] += [(block.context["seqno"], offset + c.unit_offset, c) for c in read.controls]
        found["abandoned"] += [
            (block.context["seqno"], offset + a, offset + b) for a, b, v in ranges if v == "abandoned"
        ]
    return found


def random_deliveries(rng: random.Random):
    return lambda data: sorted(rng.randrange(len(data) + 1) for _ in range(rng.randint(0, 4)))
