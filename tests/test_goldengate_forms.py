"""GoldenGate's forms beside each other: the same changes are the same rows, whatever they are written in; options that
contradict each other are named."""

import io
import json
import random
from datetime import UTC, datetime
from decimal import Decimal

import fastavro
import pytest

from inlet.bronze import framing
from inlet.codecs import CODECS, codec
from inlet.commands.run import build_gold
from inlet.errors import ConfigError
from inlet.source import Source
from inlet.table import Table
from tests import projects, test_cases
from tests.encode import goldengate_columns, goldengate_forms, goldengate_json, goldengate_logdump
from tests.encode.goldengate_trail import Trail
from tests.test_toy import make, run

TABLE = "DEPOT.ITEMS"
COLUMNS = {"ITEM_ID": "long", "NAME": "string", "PRICE": "string"}
TEXTS = ["", " a ", "O'Hara", 'a "b", c=d', "<a>&]]", "ｱ山", "NULL"]


def source(name: str) -> Source:
    return Source(name="s", codec=name, **{"from": "nowhere"})


def random_changes(rng: random.Random) -> list[dict]:
    """Partial and whole images, nulls, changes of the key."""
    changes = []
    for n in range(300):
        operation = rng.choice(["INSERT", "UPDATE", "UPDATE", "UPSERT", "DELETE"])
        images = {
            image: {"ITEM_ID": rng.randrange(1000)}
            | {
                column: rng.choice([None, rng.choice(TEXTS if column == "NAME" else ["1.50", "-2"])])
                for column in ("NAME", "PRICE")
                if operation == "INSERT" or rng.random() < 0.6
            }
            for image in {"UPDATE": ["before", "after"], "DELETE": ["before"]}.get(operation, ["after"])
        }
        changes.append({"operation": operation, "seqno": 1, "rba": 1000 + 100 * n} | images)
    return changes


def messages_of(name: str, changes: list[dict]) -> list[dict]:
    if name == "goldengate_avro":
        lookups = {TABLE: goldengate_forms.avro_schema(TABLE, COLUMNS, has_flags=True)}
        values = [goldengate_forms.avro(change, TABLE, COLUMNS, has_flags=True) for change in changes]
        return [{"value": value, "lookups": lookups} for value in values]
    if name == "goldengate_xml":
        return [{"value": "\n".join(goldengate_forms.xml(change, TABLE, list(COLUMNS)) for change in changes)}]
    return [{"value": goldengate_json.value(change, TABLE)} for change in changes]


def rows_of(name: str, changes: list[dict], tables: dict) -> list[dict]:
    module, found = CODECS[name], []
    if name == "goldengate_text":
        data = goldengate_forms.extract([changes[n : n + 7] for n in range(0, len(changes), 7)], TABLE).encode()
        stream = io.BytesIO(data)
        blocks = framing.cut_file(source(name), tables, "aa000001", stream, 0, None, True, codec=module)
        found = [codec.decode_block(module, b.data, b.context, source(name), tables) for b, _ in blocks]
    else:
        messages = [test_cases._message(written) for written in messages_of(name, changes)]
        found = [module.decode_message(message, source(name), tables, []) for message in messages]
    assert [reject for decoded in found for reject in decoded.rejects] == []
    return [row for decoded in found for row in decoded.changes]


def meant(row: dict) -> tuple:
    """What is the same in every form: numbers may be texts."""
    images = [
        image and {name: value if value is None else str(value) for name, value in image.items()}
        for image in (row["before"], row["after"])
    ]
    return row["operation"], row["column_mask"], *images


def test_the_same_changes_are_the_same_rows_in_every_form():
    tables = {TABLE: Table(**projects.ITEMS)}
    changes = random_changes(random.Random(1))
    expected = rows_of("goldengate_json", changes, tables)
    assert [row["operation"] for row in expected] == [change["operation"] for change in changes]
    for name in ("goldengate_avro", "goldengate_xml"):
        found = rows_of(name, changes, tables)
        assert [meant(row) for row in found] == [meant(row) for row in expected], name
        assert [row["change_seq"] for row in found] == [row["change_seq"] for row in expected], name
    told = [change for change in changes if change["operation"] != "UPSERT"]  # text has no word for it, and no pos
    found = rows_of("goldengate_text", told, tables)
    assert [meant(row) for row in found] == [meant(row) for row in expected if row["operation"] != "UPSERT"]


GG_ITEMS = {
    "table": TABLE,
    "name": "gg_form_items",
    "key": ["ITEM_ID"],
    "columns": [
        {"name": "ITEM_ID", "type": "bigint", "source_type": "INT64", "nullable": False},
        {"name": "NAME", "type": "string", "source_type": "ASCII_V(40)"},
        {"name": "PRICE", "type": "decimal(19,2)", "source_type": "INT64(11,2)"},
    ],
}
LIVES = [  # changes of three rows
    {"operation": "INSERT", "after": {"ITEM_ID": 1, "NAME": "O'Hara", "PRICE": "1.50"}},
    {"operation": "INSERT", "after": {"ITEM_ID": 2, "NAME": "<a>&]]", "PRICE": None}},
    {"operation": "UPDATE", "after": {"ITEM_ID": 1, "PRICE": "-2.00"}},
    {"operation": "UPDATE", "after": {"ITEM_ID": 2, "NAME": None}},
    {"operation": "INSERT", "after": {"ITEM_ID": 3, "NAME": "ｱ山", "PRICE": "7.00"}},
    {"operation": "DELETE", "before": {"ITEM_ID": 3}},
]
LEFT = [(1, "O'Hara", Decimal("-2.00")), (2, None, None)]


def logdump_of(changes: list[dict]) -> str:
    """What logdump prints of a trail that holds the changes."""
    columns = [
        goldengate_columns.integer("ITEM_ID", is_key=True, is_nullable=False),
        goldengate_columns.varchar("NAME", 40),
        goldengate_columns.number("PRICE", 2),
    ]
    trail = Trail([goldengate_columns.Table(TABLE, tuple(columns))])
    for n, change in enumerate(changes):
        write, image = getattr(trail, change["operation"].lower()), change.get("after") or change["before"]
        price = {"PRICE": image["PRICE"] and Decimal(image["PRICE"])} if "PRICE" in image else {}
        write(TABLE, image | price, io_time=datetime(2026, 1, 2, 3, n, tzinfo=UTC))
    return goldengate_logdump.logdump(trail.records)


def files_of(changes: list[dict]) -> dict[str, tuple[dict, bytes]]:
    """For each form its source and a file that holds the changes."""
    schema, container = json.loads(goldengate_forms.avro_schema(TABLE, COLUMNS, has_flags=True)), io.BytesIO()
    data = [goldengate_forms.avro(change, TABLE, COLUMNS, has_flags=True) for change in changes]
    fastavro.writer(container, schema, [fastavro.schemaless_reader(io.BytesIO(one), schema, None) for one in data])
    names, lines = list(COLUMNS), [goldengate_json.value(change, TABLE) for change in changes]
    delimited_ = {
        "field_delimiter": ";",
        "quote": '"',
        "metadata_fields": ["op_type", "table", "op_ts", "current_ts", "pos", "tokens"],
    }
    return {
        "goldengate_json": ({"transport": "lines"}, b"\n".join(lines) + b"\n"),
        "goldengate_avro": ({"transport": "avro"}, container.getvalue()),
        "goldengate_xml": (
            {"transport": "whole_file"},
            "\n".join(goldengate_forms.xml(change, TABLE, names) for change in changes).encode(),
        ),
        "goldengate_delimited": (
            {"transport": "lines", "options": delimited_},
            "".join(goldengate_forms.delimited(change, TABLE, names, ";") for change in changes).encode(),
        ),
        "goldengate_text": ({}, goldengate_forms.extract([changes], TABLE).encode()),
        "goldengate_logdump": ({"options": {"seqno": 1, "is_complete": True}}, logdump_of(changes).encode()),
    }


def test_every_form_goes_the_whole_way_to_the_same_rows(spark, lakehouse, tmp_path):
    changes = [change | {"seqno": 1, "rba": 1000 + 100 * n} for n, change in enumerate(LIVES)]
    sources, files = {}, files_of(changes)
    for name, (said, data) in files.items():
        folder = tmp_path / "landing" / name
        folder.mkdir(parents=True)
        (folder / "aa000001").write_bytes(data)
        place = (
            {"path": f"landing/{name}", "transport": said["transport"]} if "transport" in said else f"landing/{name}/*"
        )
        sources[name] = {"codec": name, "from": place, "settle_minutes": 0, "options": said.get("options", {})}
    project = make(tmp_path, lakehouse, sources, [GG_ITEMS])
    accounts = run(project, spark)
    assert {name: (a.num_changes, a.num_rejected, a.num_waiting) for name, a in accounts.items()} == {
        name: (len(LIVES), 0, 0) for name in files
    }
    build_gold(project, spark, ["gg_form_items"])
    rows = spark.sql("select source, item_id, name, price from gold.gg_form_items__current order by 1, 2").collect()
    for name in files:
        assert [tuple(row)[1:] for row in rows if row["source"] == name] == LEFT, name


WRAPPED = b"".join(bytes([4]) + b"ST" + bytes([n]) + bytes([2]) + b"x" for n in (4, 5))  # table, fingerprint, payload


@pytest.mark.parametrize(
    ("options", "message", "names"),
    [
        ({}, {"value": b"\x06S.Tx"}, ["S.T"]),
        ({"schemas": {"S.T": ["t_2", "t_1"], "S.U": ["u"]}}, {"value": b"\x06S.Tx"}, ["t_1", "t_2"]),
        ({"schemas": {"S.T": ["t"], "S.U": ["u"]}, "is_packed": True}, {"value": b"\x06S.Tx"}, ["t", "u"]),
        ({"schema_of": "topic"}, {"value": b"x"}, ["topic"]),
        ({"framing": "confluent"}, {"value": bytes([0, 0, 0, 1, 2]) + b"x"}, ["258"]),
        ({"framing": "wrapped"}, {"value": WRAPPED}, ["-3", "2"]),
        ({}, {"value": b"x", "headers": [{"key": "avro.schema", "value": "5f4d"}]}, ["5f4d"]),
        ({}, {"value": bytes([0, 0, 0, 1, 2])}, []),
        ({}, {"value": None}, []),
    ],
)
def test_a_message_of_avro_tells_the_names_of_its_schemas(options, message, names):
    of = Source(name="s", codec="goldengate_avro", **{"from": "nowhere", "options": options})
    assert CODECS["goldengate_avro"].lookups(test_cases._message(message), of) == names


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("goldengate_delimited", {"metadata_fields": ["pos", "pos"]}, "pos stands there twice"),
        ("goldengate_delimited", {"field_delimiter": ";\n"}, "cannot be told apart"),
        ("goldengate_delimited", {"field_delimiter": "\\q"}, r"expected \\n, .*found '\\\\q'"),
        ("goldengate_avro", {"wrapper": ["table", "payload"]}, "each once, found table, payload"),
        ("goldengate_text", {"operation_indicator": False}, "needs rows_are"),
        ("goldengate_text", {"delimiter": "'"}, "no quote and no line end"),
        ("goldengate_text", {"file_name": "a.*"}, "a group ordinal or time"),
        ("goldengate_text", {"members": {"pos": "p"}}, "members: is not known"),
    ],
)
def test_options_that_cannot_be_meant_are_named(name, options, why):
    with pytest.raises(ConfigError, match=why):
        Source(name="s", codec=name, **{"from": "nowhere", "options": options}).options_as(CODECS[name].OPTIONS)
