"""What takes long the first time, done ahead: `python -m inlet.commands.warm` compiles the walks that decode, once for
all processes to come.

Numba keeps what it compiles beside the sources. Left to a run, every Spark worker would compile the same at the same
time: 25 s of a core each.
"""

import threading
from contextlib import contextmanager

INSERT_AND_COMMIT = bytes.fromhex(
    "0000001200030001000000010000000000010000000a000100008000"
)  # a Linkexpress extract of one row
# a change table of one row
CHANGE_TABLE = b"header__change_seq,header__change_oper,header__change_mask,K\n" + b"0" * 35 + b",I,08,1\n"
# usage journals of one row: a message, and one of a stream whose items have no tags
MESSAGE = bytes.fromhex(
    "0000005e0000002000010101000000010000000000000000000000000000000"
    "00000003e000387002600" + "42" + 37 * "20" + "850002000001" + "1200040000000001"
)
JOURNAL = bytes.fromhex("0000003800030000" + "42" + 37 * "20" + "00000001" + "000000000001")
# a trail of two updates: a full before-image and a list of columns after it; both lists in one, as of a key update
AT_TIME = "02f36d926b141f35" + 12 * "00"
TRAIL = bytes.fromhex(
    f"4701003e480000264500004200080aff{AT_TIME}005200000001412e420044000008" + "0000000000000001" + "5a01003e"
    f"470100404800002645040041000a0fff{AT_TIME}025200000001412e42004400000a" + "00000006000000000001" + "5a010040"
    f"4701004c4800002645040041001673ff{AT_TIME}035200000001412e420044000016" + "000a" + "00000006000000000001"
    "00000006000000000002" + "5a01004c"
)


def compile_walks() -> None:
    """Compile the walks, or find them compiled: each is called once, with what a worker calls it with."""
    from inlet.table import Table

    table = Table(table="A.B", name="b", key=["K"], columns=[{"name": "K", "type": "int", "source_type": "INTEGER"}])
    _messages({table.table: table})
    _extracts({table.table: table})
    _change_tables({table.table: table})
    _journals({table.table: table})
    column = {"name": "K", "type": "int", "source_type": "INT32(11) AT 0:8"}
    _trails({table.table: Table(table="A.B", name="b", key=["K"], columns=[column])})


def _messages(tables: dict) -> None:
    import pyarrow as pa

    from inlet.codecs.goldengate.json import arrow, contracts
    from inlet.codecs.qlik import avro_fast, json_arrow, json_contracts, json_fast
    from inlet.source import Source

    source = Source(name="s", codec="qlik_json", **{"from": "nowhere"}, tables={"topic": "A.B"})
    known = json_contracts.Contracts([source], tables)
    message = {
        "unit_id": "u",
        "source": source.name,
        "topic": "topic",
        "partition": 0,
        "offset": 0,
        "timestamp": 0,
        "value": b"{}",
    }
    types = {
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "value": pa.binary(),
    }
    messages = pa.RecordBatch.from_pylist(
        [message], pa.schema([(name, types.get(name, pa.string())) for name in message])
    )
    list(json_arrow.walk(known, json_arrow.load_spans([], known, [source]))([messages]))
    list(json_fast.refreshes(known, {source.name: source}, tables, lambda *of: None)([messages]))
    in_avro = messages.append_column("headers", pa.nulls(1))
    list(avro_fast.Texts([Source(name="s", codec="qlik_avro", **{"from": "nowhere"})], tables, {}).batches(in_avro))
    operations = Source(name="s", codec="goldengate_json", **{"from": "nowhere"})
    list(arrow.walked(contracts.Contracts([operations], tables))([messages]))


def _extracts(tables: dict) -> None:
    from inlet.source import Source

    source = Source(
        name="s",
        codec="linkexpress_group",
        **{"from": "nowhere"},
        tables={"1": "A.B"},
        options={"source_tz": "UTC", "byte_order": "big", "null_areas": "yes", "charset": "cp932"},
    )
    _read(source, tables, "20260101000000_000001.lxg", INSERT_AND_COMMIT)


def _change_tables(tables: dict) -> None:
    from inlet.source import Source

    source = Source(name="s", codec="qlik_change_table", **{"from": "nowhere"}, options={"before_images": "none"})
    _read(source, tables, "A.B__ct/1.csv", CHANGE_TABLE)


def _trails(tables: dict) -> None:
    import numpy as np

    from inlet.codecs.goldengate.trail import sequence
    from inlet.source import Source

    sequence.number_of_id(np.frombuffer(b"1.2.3", np.uint8))  # of contexts that an earlier Inlet has written
    source = Source(name="s", codec="goldengate_trail", **{"from": "nowhere"}, options={"charset": "AL32UTF8"})
    _read(source, tables, "aa000000001", TRAIL)


def _read(source, tables: dict, name: str, data: bytes) -> None:
    """Cut and decode a file."""
    import io

    from inlet.bronze.framing import cut_file
    from inlet.codecs import CODECS

    for block, _ in cut_file(source, tables, name, io.BytesIO(data), 0, None, True):
        CODECS[source.codec].decode(block.data, block.context, source, tables)


def _journals(tables: dict) -> None:
    from inlet.codecs.linkexpress.journal import files
    from inlet.codecs.linkexpress.journal.open_transactions import Cells
    from inlet.source import Source

    Cells({}, 1).step("00" * 8, 1)  # of journals that the plain reader reads
    options = {"source_tz": "UTC", "charset": "cp932", "sysitems": ["RESOURCE", "DBOP"]}
    source = Source(name="s", codec="linkexpress_journal", **{"from": "nowhere"}, tables={"B": "A.B"}, options=options)
    both = {"byte_order": "big", "compressed": "yes", "numeric_sign": "separate"}
    for framing, data, reading in (
        ("message_body", MESSAGE, {"tagged": "yes", "varying_length": "data", "nchar_length": "characters"}),
        ("journal_stream", JOURNAL, {"tagged": "no", "sysitems_position": "first", "validity_order": "native"}),
    ):
        known = {"time": "2026010100000000", "file_ordinal": 1, "record_ordinal": 0, "open": {}, "framing": framing}
        context = known | {"reading": both | reading}
        files.cut(data, context, source, tables, 1, True)
        files.decode(data, context, source, tables)


@contextmanager
def importing_checks():
    """Import Great Expectations, 5 s of a core, beside what is done meanwhile: the start of the JVM, which is mostly
    waited for.
    """
    import pandas  # noqa: F401  what both sides import is there before they part
    import pyspark.sql  # noqa: F401

    from inlet.checks import suite

    thread = threading.Thread(target=suite.quiet, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


if __name__ == "__main__":
    compile_walks()
