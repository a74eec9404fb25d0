"""Real bytes of three formats, the whole way: random streams go through bronze, silver and gold and must equal the
reference. Every other one is delivered to an object store.

One run carries many streams, each as a source of its own. `qlik`, `linkexpress` and `goldengate` below say what each
format can carry of a stream, write it as files, and give the changes as the format must place them; everything else is
the pipeline's.
"""

import datetime as dt
import random
import shutil
import zlib
from dataclasses import replace
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from inlet import bronze, config, gold, publish, silver
from inlet.commands import show
from inlet.errors import ConfigError
from inlet.gold import generate
from inlet.publish import pins
from tests import goldengate_streams, reference, stores
from tests.conftest import ALL_ROUNDS
from tests.encode import goldengate_columns, goldengate_trail, linkexpress, linkexpress_journal, qlik
from tests.streams import Change, stream

pytestmark = [pytest.mark.smoke, pytest.mark.rounds]
NUM_BATCHES, NUM_STREAMS = (3, 12) if ALL_ROUNDS else (2, 4)  # streams of each format
REPO = Path(__file__).resolve().parents[1]
KEY = ["REGION", "ITEM"]
ITEMS = [
    ("REGION", "string", None),
    ("ITEM", "bigint", None),
    ("NAME", "string", None),
    ("PRICE", "decimal(9,2)", None),
    ("MADE", "date", None),
    ("PHOTO", "binary", None),
]
PARTS = [
    ("REGION", "string", "CHAR(5)"),
    ("ITEM", "int", "INTEGER"),
    ("NAME", "string", "VARCHAR(10)"),
    ("PRICE", "decimal(9,2)", "DECIMAL(9,2)"),
    ("MADE", "date", "DATE"),
]
GOODS = [
    ("REGION", "string", "ASCII_V(20)"),
    ("ITEM", "bigint", "INT64"),
    ("NAME", "string", "ASCII_V(40)"),
    ("PRICE", "decimal(19,2)", "INT64(11,2)"),
    ("MADE", "date", "DATETIME(10)"),
]
TABLES = {"SIM.ITEMS": ("sim_items", ITEMS), "SIM.PARTS": ("sim_parts", PARTS), "SIM.GOODS": ("sim_goods", GOODS)}
LAYOUT = {id_: [(name, source_type) for name, _, source_type in PARTS] for id_ in (0, 1)}
CHECKPOINTS = ("NOON", "DAY_END")  # names that come again and again
DEFAULTS = {"NAME": "NONE", "PRICE": Decimal("0.00"), "MADE": dt.date(2000, 1, 1)}


def random_stream(rng: random.Random) -> list[Change]:
    """Two lives of a few rows, each begun by a full load in about half of the streams."""
    parts = []
    for _ in range(2):
        load = stream(rng, length=4, loads=0, partial=0) if rng.random() < 0.5 else []
        parts.append(
            (
                [c.after for c in load if c.op == "INSERT"],
                [c for c in stream(rng, length=14, loads=0, upserts=0) if c.op in ("INSERT", "UPDATE", "DELETE")],
            )
        )
    return parts


# -- Qlik: JSON messages
# --------------------------------------------------------------------------------------------------


def write_qlik(rng: random.Random, source: str, landing: Path) -> tuple[dict, list[Change]]:
    columns, shape, messages, expected, offset, number = (
        [n for n, _, _ in ITEMS],
        rng.choice(["envelope", "bare"]),
        [],
        [],
        0,
        0,
    )
    for part, (load, changes) in enumerate(random_stream(rng)):
        begun = dt.datetime(2026, 1, 2, 3 + 4 * part, tzinfo=dt.UTC)
        for row in {(r["REGION"], r["ITEM"]): r for r in load}.values():
            seq = f"{begun:%Y%m%d%H%M%S}00{1 + zlib.crc32(source.encode()) % 9999:04d}{0:05d}{offset:010d}"
            expected.append(Change(source, "SIM.ITEMS", seq, "REFRESH", after=row, load_id=f"L{part}"))
            messages.append((begun, {"operation": "REFRESH", "after": row}))
            offset += 1
        for change in changes:
            number += rng.randint(1, 40)
            at = begun + dt.timedelta(minutes=70, seconds=number)
            row = change.before if change.op == "DELETE" else change.after
            before = change.before and (row if change.op == "DELETE" else {n: change.before.get(n) for n in row})
            seq = f"{at:%Y%m%d%H%M%S}00{number:019d}"
            expected.append(Change(source, "SIM.ITEMS", seq, change.op, before, change.after))
            messages.append((at, {"operation": change.op, "change_seq": seq, "before": before, "after": change.after}))
            offset += 1
        expected += (
            [Change(source, "SIM.ITEMS", f"{begun:%Y%m%d%H%M%S}00" + 19 * "9", "LOAD_END", load_id=f"L{part}")]
            if load and changes
            else []
        )
    rows = [
        qlik.rows([qlik.value(said, columns, shape=shape)], source, offset=n, start=at)[0]
        for n, (at, said) in enumerate(messages)
    ]
    is_load = [said["operation"] == "REFRESH" for _, said in messages]
    for batch, found in enumerate(deliver(rng, rows, is_load)):
        if found:
            target = landing / f"{batch}" / source / f"{batch}.parquet"
            target.parent.mkdir(parents=True)
            qlik.write_parquet(found, target)
    return {"codec": "qlik_json", "from": f"landing/{source}/*.parquet", "tables": {source: "SIM.ITEMS"}}, expected


def deliver(
    rng: random.Random, rows: list[dict], is_load: list[bool], num_batches: int = NUM_BATCHES
) -> list[list[dict]]:
    """Messages of each batch: some late, some sent again at a later offset. A load's row keeps its place: it has no
    other.
    """
    batches: list[list[dict]] = [[] for _ in range(num_batches)]
    again = len(rows)
    for n, row in enumerate(rows):
        on_time = n * num_batches // len(rows)
        batches[rng.randint(on_time, num_batches - 1) if rng.random() < 0.2 else on_time].append(row)
        if not is_load[n] and rng.random() < 0.15:
            batches[rng.randint(on_time, num_batches - 1)].append(row | {"offset": again})
            again += 1
    return batches


# -- Linkexpress: group extracts
# ------------------------------------------------------------------------------------------


def write_linkexpress(rng: random.Random, source: str, landing: Path) -> tuple[dict, list[Change]]:
    if rng.random() < 0.25:
        return write_journals(rng, source, landing)
    how = {
        "null_areas": rng.random() < 0.5,
        "byte_order": rng.choice(["big", "little"]),
        "charset": rng.choice(["cp932", "ebcdic_kana"]),
    }
    by_table = rng.choice([None, None, "open", "journal"])  # the layout of extracts of one table
    how["null_areas"] |= by_table == "journal"
    files, expected, at = [], [], dt.datetime(2026, 1, 2)
    for load, changes in random_stream(rng):
        if load or rng.random() < 0.2:
            at += dt.timedelta(hours=1)
            records = [("row", whole(row, how)) for row in {(r["REGION"], r["ITEM"]): r for r in load}.values()] or [
                ("empty",)
            ]
            files.append((f"PARTS_{at:%Y%m%d%H%M%S}_{len(files):03d}", records))
        for cut in range(0, len(changes), 5):
            at += dt.timedelta(hours=1)
            records = list(records_of(rng, changes[cut : cut + 5], how))
            if by_table:
                records = [record for record in records if record != ("commit",)]
            files.append((f"{'PARTS_' if by_table else ''}{at:%Y%m%d%H%M%S}_{len(files):03d}", records))
    for number, (name, records) in enumerate(files):
        transaction = accumulate((record == ("commit",) for record in records), initial=0)
        expected += [
            change
            for n, (record, ordinal) in enumerate(zip(records, transaction))
            for change in placed(source, name, number, n, record, None if by_table else ordinal)
        ]
        prefix = f"{name.split('_')[-2]}00{number:09d}"
        expected += (
            [Change(source, "SIM.PARTS", prefix + 10 * "9", "LOAD_END", load_id=prefix)]
            if records[0][0] == "row"
            else []
        )
        if by_table:
            rows = [(record[0], *record[-1:] * (len(record) > 1)) for record in records]
            layout = "open" if records[0][0] in ("row", "empty") else by_table
            data = linkexpress.encode_table_file(rows, layout, columns=LAYOUT[1], **how)
        else:
            data = linkexpress.encode_file(records, layouts=LAYOUT, **how)
        batch = number * NUM_BATCHES // len(files)
        late = rng.randint(batch, NUM_BATCHES - 1) if rng.random() < 0.2 else batch
        put(landing / f"{late}" / source / f"{name}.lxg", data)
        if rng.random() < 0.2:
            put(landing / f"{rng.randint(late, NUM_BATCHES - 1)}" / source / f"{name}.resend.lxg", data)
    options = {
        "source_tz": "UTC",
        "charset": how["charset"],
        "byte_order": how["byte_order"],
        "null_areas": "yes" if how["null_areas"] else "no",
    }
    said = {"codec": "linkexpress_group", "from": f"landing/{source}/*.lxg", "tables": {"1": "SIM.PARTS"}}
    if by_table:
        said |= {"codec": "linkexpress_table", "tables": {"PARTS": "SIM.PARTS"}, "settle_minutes": 0}
        options |= {"difftype": by_table, "logtype": "normal"}
    return said | {"options": options}, expected


def write_journals(rng: random.Random, source: str, landing: Path) -> tuple[dict, list[Change]]:
    """Usage journals: no loads; transactions that go on in the next file or message, checkpoints anywhere. They come in
    files, whose names have the time of Tokyo, or as messages, some divided over two.
    """
    is_queue = rng.random() < 0.5
    how = linkexpress_journal.How(
        framing=rng.choice(["mq_message", "message_body"] + ["journal_stream"] * (not is_queue)),
        byte_order=rng.choice(["big", "little"]),
        tagged=rng.random() < 0.5,
        has_checkpoint=True,
    )
    journals = list(journals_of(rng))
    units, expected, checkpoints, arrivals, messages = [], [], [], {}, []
    while journals:
        num = rng.randint(1, 6)
        units.append(journals[:num])
        journals = journals[num:]
    for n, unit in enumerate(units):
        data = linkexpress_journal.encode_file([unit] if is_queue else unit, {"PARTS": LAYOUT[1]}, how)
        batch, first = n * NUM_BATCHES // len(units), dt.datetime(2026, 1, 2) + dt.timedelta(hours=n)
        prefix = f"{first - dt.timedelta(hours=9):%Y%m%d%H%M%S}00{n:09d}"
        if is_queue:
            prefix = f"{0:016d}{len(messages):012d}"
            is_divided = [type(one) for one in unit] == [linkexpress_journal.Change] and rng.random() < 0.3
            pieces = linkexpress_journal.divided(data, how, 40) if is_divided else [data]
            messages += [(batch, piece) for piece in pieces]
        else:
            put(landing / f"{batch}" / source / f"{first:%Y%m%d%H%M%S}_{n:03d}.jnl", data)
        for ordinal, journal in enumerate(unit):
            seq = prefix + f"{ordinal}".zfill(35 - len(prefix))
            arrivals[seq] = batch
            if isinstance(journal, linkexpress_journal.Checkpoint):
                checkpoints.append((seq, journal.name))
                continue
            row = journal.row | {"MADE": journal.row["MADE"] and dt.date.fromisoformat(journal.row["MADE"])}
            lost = [name for name, value in row.items() if value == linkexpress_journal.MISSING]
            row = {name: value for name, value in row.items() if name not in lost}
            images = {"before" if journal.operation == "delete" else "after": row}
            images["states"] = dict.fromkeys(lost, "missing")
            images |= {"transaction_id": f"{journal.trnid:016X}"}
            expected.append(Change(source, "SIM.PARTS", seq, journal.operation.upper(), **images))
    for batch in range(NUM_BATCHES if is_queue else 0):
        rows = qlik.rows([data for _, data in messages], "journals")
        own = [row for row, (of, _) in zip(rows, messages) if of == batch]
        if own:
            (landing / f"{batch}" / source).mkdir(parents=True)
            qlik.write_parquet(own, landing / f"{batch}" / source / f"{batch}.parquet")
    options = {"source_tz": "Asia/Tokyo", "tagged": "yes" if how.tagged else "no", "framing": how.framing}
    options |= {"charset": "cp932", "has_checkpoint": "yes", "validity_order": "native"} | (
        {"divided": "yes"} if is_queue else {}
    )
    path = f"landing/{source}/*.jnl"
    said = {
        "codec": "linkexpress_journal",
        "from": {"transport": "parquet", "path": f"landing/{source}/*.parquet"} if is_queue else path,
        "tables": {"PARTS": "SIM.PARTS"},
        "settle_minutes": 0,
        "publish_at": "checkpoint" if int(source[-3:]) % 2 else "transaction",
        "options": options,
    }
    return said | {"checkpoints": checkpoints, "arrivals": arrivals}, expected


def journals_of(rng: random.Random):
    """The journals of a stream, in their order."""
    transaction, records = 0, []
    for _, changes in random_stream(rng):
        for record in records_of(rng, changes, {"null_areas": True}):
            records += [record] if record != ("commit",) else []
            if record == ("commit",) and records:
                transaction += 1
                for n, (word, _, row) in enumerate(records):
                    state = 5 if len(records) == 1 else 1 if n == 0 else 4 if n == len(records) - 1 else 2
                    text = row | {"MADE": row["MADE"] and row["MADE"].isoformat()}
                    if word != "delete" and rng.random() < 0.2:
                        text["NAME"] = linkexpress_journal.MISSING
                    yield linkexpress_journal.Change("PARTS", word, text, transaction, state)
                    if rng.random() < 0.3:
                        yield linkexpress_journal.Checkpoint(rng.choice(CHECKPOINTS))
                records = []


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def whole(row: dict, how: dict) -> dict:
    """All columns, as this format and character set can carry them."""
    row = {**DEFAULTS, **{n: row[n] for n in row if n != "PHOTO"}}
    row["REGION"] = row["REGION"].upper()
    row["NAME"] = row["NAME"] and row["NAME"].replace("ä\0b", "ｱｲｳ").upper()
    return {n: DEFAULTS.get(n) if v is None and not how["null_areas"] else v for n, v in row.items()}


def records_of(rng: random.Random, changes: list[Change], how: dict):
    """Records of a difference file; a key change is a delete and an insert; a commit closes each transaction."""
    for change in changes:
        old, new = change.before and whole(change.before, how), change.after and whole(change.after, how)
        is_move = change.op == "UPDATE" and old and (old["REGION"], old["ITEM"]) != (new["REGION"], new["ITEM"])
        if is_move or change.op == "DELETE":
            yield "delete", 1, old
        if is_move or change.op == "INSERT":
            yield "insert", 1, new
        elif change.op == "UPDATE":
            yield "update", 1, new
        if rng.random() < 0.5 or change is changes[-1]:
            yield ("commit",)


def placed(source: str, name: str, number: int, record_number: int, record: tuple, transaction: int | None):
    """The change of one record, with the place in the order and the transaction that its file and number give it."""
    prefix = f"{name.split('_')[-2]}00{number:09d}"
    said = {"source": source, "table": "SIM.PARTS", "seq": f"{prefix}{record_number:010d}"}
    of_transaction = None if transaction is None else f"{prefix}-{transaction}"
    if record[0] == "row":
        yield Change(op="REFRESH", after=record[1], load_id=prefix, **said)
    elif record[0] == "empty":
        yield Change(op="EMPTY_LOAD", **said)
    elif record[0] == "delete":
        yield Change(op="DELETE", before=record[2], transaction_id=of_transaction, **said)
    elif record[0] in ("insert", "update"):
        yield Change(op=record[0].upper(), after=record[2], transaction_id=of_transaction, **said)


# -- GoldenGate: trails
# --------------------------------------------------------------------------------------------


def write_goldengate(rng: random.Random, source: str, landing: Path) -> tuple[dict, list[Change]]:
    """A trail of several files, which grow from batch to batch, cut anywhere."""
    table = goldengate_columns.Table(
        "SIM.GOODS",
        (
            goldengate_columns.varchar("REGION", 20, is_key=True, is_nullable=False),
            goldengate_columns.integer("ITEM", is_key=True, is_nullable=False),
            goldengate_columns.varchar("NAME", 40),
            goldengate_columns.number("PRICE", 2),
            goldengate_columns.moment("MADE", 10),
        ),
    )
    settings = {"byte_order": rng.choice(["big", "little"]), "name_form": rng.choice(["name", "index"])}
    stream_ = [replace(c, table="SIM.GOODS", **of_goods(c)) for c in stream(rng, length=30, loads=0, states=0)]
    sent = goldengate_streams.send(
        rng,
        goldengate_trail.Trail([table], **settings),
        goldengate_streams.transactions_of(stream_),
        goldengate_streams.How(restarts=0.2, rolls=0.05),
    )
    largest, expected = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), []
    for said in sent.changes:
        largest = max(largest, said["io_time"])
        seq = f"{largest:%Y%m%d%H%M%S}{largest.microsecond // 10_000:02d}{said['seqno']:09d}{said['rba']:010d}"
        expected.append(
            Change(
                source, "SIM.GOODS", seq, said["operation"], said["before"], said["after"], said["transaction_id"],
                said["counter"], said["last"],
            )
        )  # fmt: skip
    whole_length = sum(len(data) for _, data in sent.trail.files)
    places = sorted(rng.randrange(whole_length) for _ in range(NUM_BATCHES - 1))
    for batch, left in enumerate([*places, whole_length]):
        for name, data in sent.trail.files:
            if left > 0:
                put(landing / f"{batch}" / source / name, data[:left])
            left -= len(data)
    return {"codec": "goldengate_trail", "from": f"landing/{source}/*"}, expected


def of_goods(change: Change) -> dict:
    """A change without what a trail's table has not: masks, and the photo; a delete has no image of after."""
    images = {
        name: image and {n: image[n] for n in image if n != "PHOTO"}
        for name, image in (("before", change.before), ("after", change.after))
    }
    return images | {"mask": None} | ({"after": None} if change.op == "DELETE" else {})


# -- the run
# --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ran(spark, lakehouse, tmp_path_factory) -> SimpleNamespace:
    """All batches went through the pipeline: the project; table -> source -> changes; source -> (place, name) of its
    checkpoints; what was public after each batch."""
    root = tmp_path_factory.mktemp("pipeline")
    sources, changes, checkpoints, arrivals, shown = {}, {table: {} for table in TABLES}, {}, {}, []
    for n in range(NUM_STREAMS):
        for table, write in (
            ("SIM.ITEMS", write_qlik),
            ("SIM.PARTS", write_linkexpress),
            ("SIM.GOODS", write_goldengate),
        ):
            name = f"{write.__name__.removeprefix('write_')}_{n:03d}"
            sources[name], changes[table][name] = write(random.Random(name), name, root / "delivery")
            checkpoints[name] = sources[name].pop("checkpoints", [])
            arrivals[name] = sources[name].pop("arrivals", {})
    with stores.s3("landing") as (endpoint, client):
        in_store = [name for n, name in enumerate(sources) if n // 3 % 2]
        for name in in_store:
            sources[name] = yaml.safe_load(yaml.safe_dump(sources[name]).replace("landing/", "s3://landing/"))
        project = make_project(root, lakehouse, sources, {"s3://": {"endpoint": endpoint, "region": stores.REGION}})
        for batch in range(NUM_BATCHES):
            bring(root / "delivery" / str(batch), root / "landing", in_store, client)
            with pytest.MonkeyPatch.context() as patch:
                if batch == 1:  # its files are read by Spark's tasks
                    patch.setattr("inlet.bronze.small_batches.NUM_FILES", 0)
                shown.append(run_batch(project, spark))
    return SimpleNamespace(project=project, changes=changes, checkpoints=checkpoints, arrivals=arrivals, shown=shown)


def bring(batch: Path, landing: Path, in_store: list[str], client) -> None:
    """Deliver the files of a batch: to the folder, or to the bucket."""
    for folder in batch.iterdir():
        if folder.name not in in_store:
            shutil.copytree(folder, landing / folder.name, dirs_exist_ok=True)
        for file in folder.iterdir() if folder.name in in_store else ():
            client.upload_file(str(file), "landing", f"{folder.name}/{file.name}")


def run_batch(project: config.Project, spark) -> tuple[publish.Point, list[dict[str, list[tuple]]]]:
    """Out: as `public_parts`."""
    new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    bronze.land(project, spark, new)
    silver.run(project, spark, new.batch_id)
    gold.run(project, spark, gold.pending(project))
    return public_parts(project, spark)


@pytest.fixture(scope="module")
def expected(ran) -> dict[str, dict[str, list[Change]]]:
    """table -> source -> changes, after all batches went through the pipeline."""
    return ran.changes


def public_parts(project: config.Project, spark) -> tuple[publish.Point, list[dict[str, list[tuple]]]]:
    """The new point of SIM.PARTS alone, and source -> its rows: those that are public, and those at each of
    CHECKPOINTS."""
    of_parts = project.model_copy(update={"tables": {"SIM.PARTS": project.tables["SIM.PARTS"]}})
    point = publish.run(of_parts, spark)
    asked = "sim_parts", *(f"sim_parts_at_checkpoint('{name}')" for name in CHECKPOINTS)
    columns = ", ".join(n for n, *_ in PARTS)
    spark.sql("use public")
    rows = spark.sql(
        " union all ".join(f"select {n} as asked, source, {columns} from {of}" for n, of in enumerate(asked))
        + " order by asked, source, region, item"
    ).collect()
    spark.sql("use default")
    return point, [by_source(row[1:] for row in rows if row.asked == n) for n in range(len(asked))]


def make_project(root: Path, lakehouse: str, sources: dict, storage: dict | None = None) -> config.Project:
    (root / "pipelines" / "tables").mkdir(parents=True)
    about = {"lakehouse": lakehouse, "sources": sources, "storage": storage or {}}
    (root / "pipelines" / "inlet.yml").write_text(yaml.safe_dump(about))
    for table, (name, columns) in TABLES.items():
        said = [
            {"name": n, "type": type_, "source_type": source_type, "encoding": "hex" if type_ == "binary" else None}
            for n, type_, source_type in columns
        ]
        (root / "pipelines" / "tables" / f"{name}.yml").write_text(
            yaml.safe_dump({"table": table, "name": name, "key": KEY, "columns": said})
        )
    shutil.copytree(REPO / "dbt", root / "dbt", ignore=shutil.ignore_patterns("target", "gold"))
    project = config.load(root)
    generate.write(project)
    return project


def plain(row) -> tuple:
    return tuple(bytes(v) if isinstance(v, bytearray) else v for v in row)


def by_source(rows) -> dict[str, list[tuple]]:
    found: dict[str, list[tuple]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(plain(row[1:]))
    return found


@pytest.mark.parametrize("table", TABLES)
def test_history_equals_the_reference(spark, expected, table):
    name, columns = TABLES[table][0], [n for n, _, _ in TABLES[table][1]]
    found = by_source(
        spark.sql(
            f"select source, {', '.join(columns)}, valid_from_seq, valid_to_seq, is_complete, conflict from "
            f"gold.{name}__history order by source, REGION, ITEM, valid_from_seq"
        ).collect()
    )
    for source, changes in expected[table].items():
        versions = reference.fold(changes, KEY, columns)[0]
        wanted = [
            (*(v.values.get(n) for n in columns), v.valid_from_seq, v.valid_to_seq, v.is_complete, v.conflict)
            for v in versions
        ]
        assert found.get(source, []) == wanted, source + "\n" + "\n".join(map(str, reference.in_order(changes)))


@pytest.mark.parametrize("table", TABLES)
def test_current_equals_the_reference(spark, expected, table):
    name, columns = TABLES[table][0], [n for n, _, _ in TABLES[table][1]]
    found = by_source(
        spark.sql(
            f"select source, {', '.join(columns)} from gold.{name}__current order by source, REGION, ITEM"
        ).collect()
    )
    for source, changes in expected[table].items():
        wanted = [
            tuple(v.values.get(n) for n in columns) for v in reference.current(reference.fold(changes, KEY, columns)[0])
        ]
        assert found.get(source, []) == wanted, source


def assert_before_after(spark, name: str, columns: list[str], expected: dict[str, list]) -> None:
    """Is gold's table of both images what the reference makes of the changes of each source?"""
    found = by_source(
        spark.sql(
            f"select source, change_seq, operation, before, after, not_supplied from gold.{name}__before_after "
            "order by source, change_seq"
        ).collect()
    )
    for source, changes in expected.items():
        assert [
            (seq, operation, before and plain(before), after and plain(after), absent)
            for seq, operation, before, after, absent in found.get(source, [])
        ] == [
            (
                w["seq"],
                w["op"],
                w["before"] and tuple(w["before"].values()),
                w["after"] and tuple(w["after"].values()),
                [n.lower() for n in w["not_supplied"]],
            )
            for w in reference.before_after(changes, KEY, columns)
        ], source


@pytest.mark.parametrize("table", TABLES)
def test_before_after_equals_the_reference(spark, expected, table):
    assert_before_after(spark, TABLES[table][0], [n for n, _, _ in TABLES[table][1]], expected[table])


def test_nothing_was_rejected_and_every_account_balances(spark, expected):
    names = ", ".join(f"'{source}'" for sources in expected.values() for source in sources)
    assert spark.sql(f"select * from silver.rejects where source in ({names})").collect() == []
    assert (
        spark.sql(
            f"select count(distinct source) from silver.batches where source in ({names}) "
            "and num_records + num_settled = num_changes + num_repeats + num_control + num_rejected + num_waiting"
        ).first()[0]
        == 3 * NUM_STREAMS
    )


@pytest.mark.parametrize("table", ["SIM.ITEMS", "SIM.PARTS"])
def test_what_was_sent_again_is_counted_as_a_repeat_and_written_once(spark, expected, table):
    found = {
        row[0]: row[1:]
        for row in spark.sql(
            "select source, sum(num_changes), sum(num_repeats) from silver.batches group by source"
        ).collect()
    }
    for source, changes in expected[table].items():
        assert found[source][0] == len([c for c in changes if c.op not in ("EMPTY_LOAD", "LOAD_END")]), source
    assert sum(found[source][1] for source in expected[table]) > NUM_STREAMS


def test_the_ledger_spans_empty_loads_and_ends_of_loads(spark, expected):
    names = ", ".join(f"'{source}'" for sources in expected.values() for source in sources)
    num_events, num_outside = spark.sql(
        "select count(*), count_if((e.change_seq between b.first_change_seq and b.last_change_seq) is not true) "
        "from silver.control_events e join silver.batches b on b.source = e.source and b.batch_id = e.batch_id "
        f"where e.kind in ('empty_load', 'load_end') and e.change_seq is not null and e.source in ({names})"
    ).first()
    assert num_events > 0 and num_outside == 0


# -- checkpoints
# ----------------------------------------------------------------------------------------------------------------


def rows_upto(changes: list[Change], seq: str) -> list[tuple]:
    """Rows of SIM.PARTS as the reference folds them from the changes up to a place."""
    folded = reference.fold([c for c in changes if c.seq <= seq], KEY, [n for n, *_ in PARTS])[0]
    return [tuple(v.values.get(n) for n, *_ in PARTS) for v in reference.current(folded)]


def is_within(changes: list[Change], seq: str) -> bool:
    """Does a place lie within a transaction?"""
    spans: dict[str, list[str]] = {}
    for change in changes:
        spans.setdefault(change.transaction_id, []).append(change.seq)
    return any(min(seqs) < seq < max(seqs) for seqs in spans.values())


def test_rows_are_those_of_the_reference_at_checkpoints_and_are_public_up_to_them(ran):
    """Of usage journals, in every batch: `<t>_at_checkpoint`, `publish_at: checkpoint`, and why that waits."""
    num_asked = num_within = num_held = 0
    for name, source in ran.project.sources.items():
        if source.codec != "linkexpress_journal":
            continue
        changes, batch_of = ran.changes["SIM.PARTS"][name], ran.arrivals[name]
        last_of = {c.transaction_id: c.seq for c in changes}
        for batch, (point, (public, *at_checkpoints)) in enumerate(ran.shown):
            known = [(seq, word) for seq, word in ran.checkpoints[name] if batch_of[seq] <= batch]
            mine = [c for c in changes if batch_of[c.seq] <= batch]
            whole = [c.seq for c in mine if batch_of[last_of[c.transaction_id]] <= batch]
            free = [seq for seq, _ in known if not is_within(changes, seq)]
            is_at_checkpoint = source.publish_at == "checkpoint"
            upto = max(free if is_at_checkpoint else whole + free, default="")
            assert point.points[name] == upto
            assert public.get(name, []) == rows_upto(mine, upto)
            waits = is_at_checkpoint and mine[-1].seq > upto
            why = {"the next checkpoint; changes up to ": waits, "transaction ": len(whole) < len(mine)}
            held = point.held.get(name, "")
            assert any(held.startswith(words) for words, holds in why.items() if holds) == any(why.values()), held
            for word, rows in zip(CHECKPOINTS, at_checkpoints):
                if places := [seq for seq, of in known if of == word and seq <= upto]:
                    assert rows.get(name, []) == rows_upto(mine, places[-1])
                    num_asked += rows_upto(mine, places[-1]) != rows_upto(mine, upto)
                else:
                    assert name not in rows
            num_held, num_within = num_held + waits, num_within + len(known) - len(free)
    few = (5, 2, 1) if ALL_ROUNDS else (0, 0, 0)
    assert all(n > least for n, least in zip((num_asked, num_within, num_held), few)), (num_asked, num_within, num_held)


def test_checkpoints_are_listed_and_named_in_pins_and_without_spark_too(spark, ran):
    point, (_, *at_checkpoints) = ran.shown[-1]
    listed = spark.sql("select source, change_seq, name from public._checkpoints order by all").collect()
    assert [tuple(row) for row in listed] == [
        (source, seq, name)
        for source, found in sorted(ran.checkpoints.items())
        for seq, name in found
        if seq <= point.points[source]
    ]
    pins.pin(ran.project, spark, "pinned_parts", pins.find(ran.project, "pinned_parts"))
    names = ", ".join(n for n, *_ in PARTS)
    table = ran.project.tables["SIM.PARTS"]
    for name, expected_rows in zip(CHECKPOINTS, at_checkpoints):
        found = show.show(ran.project, table, checkpoint=name, limit=0)
        at = [found.columns.index(n) for n in ("source", *(n.lower() for n, *_ in PARTS))]
        assert by_source([tuple(row[n] for n in at) for row in found.rows]) == expected_rows
        of_one = show.show(ran.project, table, checkpoint=name, limit=0, source=max(expected_rows))
        assert by_source([tuple(row[n] for n in at) for row in of_one.rows]) == {
            max(expected_rows): expected_rows[max(expected_rows)]
        }
        spark.sql("use pinned_parts")
        rows = spark.sql(f"select source, {names} from sim_parts_at_checkpoint('{name}') order by source, region, item")
        assert by_source(rows.collect()) == expected_rows
    spark.sql("use default")
    with pytest.raises(ConfigError, match="No checkpoint up to the published point is called YEAR_END.*DAY_END, NOON"):
        show.show(ran.project, table, checkpoint="YEAR_END")
    for database in ("public", "pinned_parts"):
        spark.sql(f"use {database}")
        with pytest.raises(Exception, match=f"is called YEAR_END; {database}._checkpoints has them"):
            spark.sql("select * from sim_parts_at_checkpoint('YEAR_END')").collect()
    spark.sql("use default")
    pins.unpin(ran.project, spark, "pinned_parts")
