"""Logdump's text: lines cut, spliced and damaged. Every byte is accounted for, however long blocks are; a change is the
same where its lines stand alone."""

from inlet.codecs.codec import change_rows
from inlet.codecs.goldengate.logdump import files as logdump
from inlet.errors import Reject
from tests.test_cases import decode_file

TOKENS = [
    text.encode()
    for text in (
        "\n", "\r\n", " ", "0", "ffff", "0000", ":", "|", "_" * 20, "Logdump 7 >n", "TokenID x47 'G' Record Header    "
        "Info x01  Length  162\n", "TokenID x54 'T' GGS Tokens       Info x00  Length   82\n", "GGS tokens:\n", "\0",
        "Column 0 (0x0000), Length 6 (0x0006).\n", " 0000 0000 0001 | ......\n", "Current LogTrail is ra000000007\n",
        "2022/12/26 15:03:44.000.000 Insert               Len    24 RBA 6571\n", "Name: test.ogg_test\n", "x0c",
        "```\n", "\n> ", "\n# ", "\n10:11:12 ", "That is all.\n", "\n12: ",
    )
]  # fmt: skip


def units(case: dict) -> list[bytes]:
    return [case["data"]] if case["data"] else []


def check(case: dict, units: list[bytes]) -> int:
    num = 0
    for unit in units:
        decode_file(case, unit)  # every byte and record accounted for
        context = logdump.open_file(case["path"], unit, True, case["source"], case["tables"])
        if isinstance(context, Reject):
            continue
        for len_block in (1, 1 << 20):
            cut = logdump.cut(unit, context, case["source"], case["tables"], len_block, True)
            for block in cut.blocks:
                num += _check_block(case, unit[block.offset : block.offset + block.length], block.context)
    return num


def _check_block(case: dict, data: bytes, context: dict) -> int:
    found = _rows(case, data, context)
    for row in found:
        lines = data[row["unit_offset"] : row["unit_offset"] + row["unit_length"]]
        given = context | {"trail": context["seqno"]}
        alone = _rows(case, lines + b"\n", given)
        rejects = logdump.decode(lines + b"\n", given, case["source"], case["tables"]).rejects
        is_told = not any(reject.kind == "ambiguous_layout" for reject in rejects)  # of the image before, too
        if len(alone) == 1 and is_told:  # else it needs what stands in front, to tell its byte order or its trail
            names = ("operation", "before", "after", "stream_position", "source_table")
            assert [row[name] for name in names] == [alone[0][name] for name in names]
    return len(found)


def _rows(case: dict, data: bytes, context: dict) -> list[dict]:
    found = logdump.decode(data, context, case["source"], case["tables"])
    return change_rows(logdump, found, context, case["tables"])
