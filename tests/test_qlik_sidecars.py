"""Sidecars of Qlik's files (`.dfm`): where each is looked for, how long its file waits, what the option says then; the
number of records that it tells; column lists that the contract does not know. Without Spark.
"""

import io
import json
import os
from unittest.mock import Mock

import pytest
from fsspec.implementations.local import LocalFileSystem

from inlet import bronze
from inlet.bronze import blocks, framing, parquet_rows, purged, reframing, rests
from inlet.codecs.codec import change_rows, decode_block
from inlet.codecs.qlik.change_table import files
from inlet.commands import decode, doctor, inspection
from inlet.commands.file_state import file_state
from inlet.commands.status import status
from inlet.errors import ConfigError
from tests import both_ways, lakes, projects
from tests.encode import qlik_change_table as encode
from tests.encode.qlik_dfm import dfm
from tests.test_qlik_change_table import ITEMS, NAMES, contract, seq, source

HOUR = 3600
FOLDER = "landing/SHOP.ITEMS__ct"
ITEMS_CONTRACT = {
    "table": "SHOP.ITEMS",
    "name": "items",
    "key": ["ID"],
    "columns": [
        {"name": c.name, "type": "int" if c.type == "INT4" else "string", "source_type": c.type} for c in ITEMS.columns
    ],
}


def project_of(
    root, path: str = "landing/**", transport: str = "", settle: float = 60, table=ITEMS_CONTRACT, **options
):
    from_ = {"transport": transport, "path": path} if transport else path
    source = {"codec": "qlik_change_table", "from": from_, "settle_minutes": settle, "options": options}
    return projects.make(root, {"s": source}, [table], str(root / "lakehouse"))


def inserts(first: int, num: int) -> list[dict]:
    return [
        {"operation": "INSERT", "change_seq": seq(n), "after": {"ID": n, "NAME": "a", "NOTE": None}}
        for n in range(first, first + num)
    ]


SEQS = [f"2026010203040500{n:019d}" for n in (1, 2)]


def put(root, path: str, data: bytes, hours_ago: float = 0) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    at = file.stat().st_mtime - hours_ago * HOUR
    os.utime(file, (at, at))


def text(first: int, num: int) -> bytes:
    return encode.delimited(ITEMS, encode.rows(ITEMS, inserts(first, num)), options=NAMES)


def parquet(first: int, num: int) -> bytes:
    return encode.parquet(ITEMS, encode.rows(ITEMS, inserts(first, num)))


def planned(project, before: list[dict]) -> bronze.Plan:
    found = both_ways.planned(project, bronze.History(project, before))
    before.extend(row | {"landed_at": None} for row in found.files)
    return found


def read(project, row: dict) -> dict[str, list]:
    """What a planned file holds."""
    source = project.sources["s"]
    read_units = parquet_rows.units_of if source.transport == "rows" else blocks.units_of
    found: dict[str, list] = {"changes": [], "rejects": [], "definitions": [], "controls": []}
    for unit in read_units(project, row):
        context = json.loads(unit["context"])
        tables = project.tables_of(source)
        one = decode_block(files, unit["bytes"], context, source, tables)
        one.changes = change_rows(files, one, context, tables)
        for name in found:
            found[name] += getattr(one, name)
    return found


def test_a_file_waits_for_its_sidecar_and_is_read_with_it(tmp_path):
    project, before = project_of(tmp_path, sidecar="beside"), []
    path = f"{FOLDER}/20260102-030405678.csv"
    put(tmp_path, path, text(1, 2))
    why = "its 20260102-030405678.dfm (option without_sidecar: wait)"
    assert planned(project, before).held == {path: why}
    assert status(project)["waiting files"] == [{"file": path, "waits for": why}]
    put(tmp_path, f"{FOLDER}/20260102-030405678.dfm", dfm(ITEMS, 2))
    [row] = planned(project, before).files
    assert json.loads(row["context"])["sidecar"] == f"{FOLDER}/20260102-030405678.dfm"
    found = read(project, row)
    assert [change["after"]["ID"] for change in found["changes"]] == ["1", "2"]
    [definition] = found["definitions"]
    assert (definition.source_table, definition.version, definition.key) == ("ITEMS", 1, ["ID"])
    assert definition.change_seq == seq(1) and [c["name"] for c in definition.columns] == ["ID", "NAME", "NOTE"]


def delivered(kind: str) -> bytes:
    """A file of changes. In: what its header columns lack."""
    layout = {"": encode.Layout(), "header": encode.Layout(headers=("timestamp",))}[kind]
    return encode.delimited(ITEMS, encode.rows(ITEMS, inserts(1, 2), layout), layout, NAMES)


STORED = {"before_images": "stored"}


@pytest.mark.parametrize(
    ("files_of", "options", "words"),
    [
        ({FOLDER: ""}, STORED, []),
        ({FOLDER: "", "landing/A.OTHER__ct": "", "landing/attrep_changes0123456789abcdef": ""}, STORED, []),
        ({FOLDER: ""}, {}, ["the option before_images"]),
        ({FOLDER: "", "landing/SHOP.ITEMS": ""}, {}, ["the option before_images", "the option load_time"]),
        ({"landing/items": ""}, {}, ["a file in a folder SCHEMA.TABLE__ct", "landing/items/1.csv"]),
        ({FOLDER: ""}, STORED | {"sidecar": "beside"}, ["1.csv waits for its 1.dfm (option without_sidecar: wait)"]),
        ({FOLDER: "header"}, STORED, ["header column change_seq: in Qlik", "change_oper or operation", "without_mask"]),
    ],
    ids=["nothing", "other tables", "one option", "two options", "no folder", "sidecar", "header columns"],
)
def test_the_doctor_names_all_that_files_cannot_be_read_without(tmp_path, files_of, options, words):
    project = project_of(tmp_path, **options)
    for folder, lacking in files_of.items():
        name = "LOAD00000001" if folder.endswith(".ITEMS") else "1"
        put(tmp_path, f"{folder}/{name}.csv", delivered(lacking))
    found = doctor._source(project, project.sources["s"])
    assert found.is_good == (not words) and [word for word in words if word not in found.found] == [], found


def test_the_doctor_counts_sidecars_apart_from_the_files_that_they_come_with(tmp_path):
    project = project_of(tmp_path, **STORED, sidecar="beside")
    for n in (1, 2, 3):
        put(tmp_path, f"{FOLDER}/{n}.csv", text(n, 1))
        put(tmp_path, f"{FOLDER}/{n}.dfm", dfm(ITEMS, 1, file=f"{n}.csv"))
    found = doctor._source(project, project.sources["s"])
    assert found.is_good and found.found == "3 files and 3 that come with them at landing/**"


@pytest.mark.parametrize(
    ("options", "is_safe", "words"),
    [
        (
            {"sidecar": "beside"},
            True,
            "it comes with landing/SHOP.ITEMS__ct/1.csv, landed and accounted for: it may be",
        ),
        (
            {"sidecar": "full_load"},
            True,
            "it comes with landing/SHOP.ITEMS__ct/1.csv, landed and accounted for: it may",
        ),
        ({"sidecar": "beside", "without_sidecar": "last"}, False, "files that arrive later may be read with it, too"),
    ],
)
def test_a_sidecar_may_be_deleted_once_no_file_will_be_read_with_it(tmp_path, options, is_safe, words):
    project, path, sidecar = project_of(tmp_path, **options), f"{FOLDER}/1.csv", f"{FOLDER}/1.dfm"
    put(tmp_path, sidecar, dfm(ITEMS, 2))
    assert file_state(project, str(tmp_path / sidecar)) == (
        False,
        f"{sidecar}: it comes with another file, which has not arrived",
    )
    put(tmp_path, path, text(1, 2))
    waits = f"{sidecar}: it comes with another file. {path}: nothing of it is landed; the next `inlet run` lands it"
    assert file_state(project, str(tmp_path / sidecar)) == (False, waits)
    [row] = planned(project, []).files
    lakes.write(project, "bronze.files", row)
    assert "batch 1 is not decoded yet" in file_state(project, str(tmp_path / sidecar))[1]
    lakes.write(project, "silver.batches", lakes.batch(1, "s", seq(2)))
    found = file_state(project, str(tmp_path / sidecar))
    assert found[0] is is_safe and words in found[1]


def test_a_sidecar_that_others_may_be_read_with_stays(tmp_path):
    project, path = project_of(tmp_path, sidecar="full_load"), "landing/SHOP.ITEMS/LOAD00000001.dfm"
    put(tmp_path, path, dfm(ITEMS, 2))
    put(tmp_path, f"{FOLDER}/1.csv", text(1, 2), hours_ago=3)
    [row] = planned(project, []).files
    lakes.write(project, "bronze.files", row)
    lakes.write(project, "silver.batches", lakes.batch(1, "s", seq(2)))
    is_safe, words = file_state(project, str(tmp_path / path))
    assert not is_safe and words.endswith("files that arrive later may be read with it, too")


def test_a_sidecar_stays_that_a_file_without_its_own_waits_to_be_read_with(tmp_path):
    project = project_of(tmp_path, sidecar="beside", without_sidecar="last")
    for n in (1, 2, 3, 4):
        put(tmp_path, f"{FOLDER}/{n}.csv", text(10 * n, 1))
    for n in (1, 3):
        put(tmp_path, f"{FOLDER}/{n}.dfm", dfm(ITEMS, 1, file=f"{n}.csv"))
    lakes.write(project, "bronze.files", *planned(project, []).files)
    lakes.write(project, "silver.batches", lakes.batch(1, "s", seq(2)))
    waiting = {n: file_state(project, str(tmp_path / f"{FOLDER}/{n}.dfm")) for n in (1, 3)}
    assert {
        n: (is_safe, f"{n + 1}.csv: nothing of it is landed" in words) for n, (is_safe, words) in waiting.items()
    } == {1: (False, True), 3: (False, True)}


def test_the_doctor_says_that_a_pattern_reads_no_folder_below(tmp_path):
    project = project_of(tmp_path, "landing/*")
    put(tmp_path, f"{FOLDER}/1.csv", text(1, 2))
    found = doctor._source(project, project.sources["s"])
    assert "a pattern `**` reads all folders" in found.found


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("beside", f"{FOLDER}/P1/1.dfm"),
        ("partition", f"{FOLDER}/P1.dfm"),
        ("partition", f"{FOLDER}/P1/P1.dfm"),
        ("full_load", "landing/SHOP.ITEMS/LOAD00000001.dfm"),
        ("metadata", "metadata/SHOP.ITEMS__ct/P1/1.dfm"),
        ("metadata", "metadata/SHOP.ITEMS__ct/1.dfm"),
        ("metadata", "metadata/1.dfm"),
    ],
)
def test_the_nearest_sidecar_is_taken_and_said(tmp_path, where, place):
    project = project_of(tmp_path, sidecar=where)
    path = f"{FOLDER}/P1/1.csv"
    headless = text(1, 2).split(b"\n", 1)[1]  # so that the sidecar alone tells the columns
    put(tmp_path, path, headless, hours_ago=2)
    put(tmp_path, place, dfm(ITEMS, 2, file="1.csv"))
    [row] = planned(project, []).files
    assert json.loads(row["context"])["sidecar"] == place
    found = read(project, row)
    assert len(found["changes"]) == 2
    is_own = place.endswith("/1.dfm")
    assert [(c.kind, json.loads(c.detail)["sidecar"]) for c in found["controls"]] == (
        [] if is_own else [("sidecar_of_others", place)]
    )
    assert len(found["definitions"]) == is_own


def test_a_sidecar_that_is_not_the_file_s_own_is_not_taken_before_the_wait_is_over(tmp_path):
    project = project_of(tmp_path, sidecar="full_load")
    put(tmp_path, f"{FOLDER}/1.csv", text(1, 2))
    put(tmp_path, "landing/SHOP.ITEMS/LOAD00000001.dfm", dfm(ITEMS, 2, file="1.csv"))
    assert list(planned(project, []).held) == [f"{FOLDER}/1.csv"]


def test_the_option_decides_what_a_file_does_without_its_sidecar(tmp_path):
    told = {}
    for choice in ("wait", "last", "contract", "reject"):
        root = tmp_path / choice
        root.mkdir()
        project = project_of(root, sidecar="beside", without_sidecar=choice)
        put(root, f"{FOLDER}/1.csv", text(1, 2), hours_ago=2)
        put(root, f"{FOLDER}/2.csv", text(3, 1).split(b"\n", 1)[1], hours_ago=2)
        put(root, f"{FOLDER}/1.dfm", dfm(ITEMS, 2, file="1.csv"))
        put(root, f"{FOLDER}/3.dfm", dfm(ITEMS, 2, file="3.csv"))
        new = planned(project, [])
        found = [read(project, row) for row in new.files]
        told[choice] = (
            new.held,
            [len(one["changes"]) for one in found],
            [reject.kind for one in found for reject in one["rejects"]],
        )
    assert told == {
        "wait": ({f"{FOLDER}/2.csv": "its 2.dfm (option without_sidecar: wait)"}, [2], []),
        "last": ({}, [2, 1], []),
        "contract": ({}, [2, 0], ["definition_missing"]),  # it has no header row
        "reject": ({}, [2, 0], ["definition_missing"]),
    }


@pytest.mark.parametrize("form", ["text", "gzip", "parquet"])
def test_a_file_with_other_records_than_its_sidecar_says_is_one_reject(tmp_path, monkeypatch, form):
    """Of a file of many blocks, which is cut in several pieces, too: none of its rows is there."""
    import gzip

    monkeypatch.setattr(framing, "LEN_BLOCK", 200)
    monkeypatch.setattr(framing, "LEN_READ", 1000)
    project = project_of(tmp_path, "landing/**", "rows" if form == "parquet" else "", sidecar="beside")
    name = {"text": "1.csv", "gzip": "1.csv.gz", "parquet": "1.parquet"}[form]
    written = {"text": text, "gzip": lambda *given: gzip.compress(text(*given)), "parquet": parquet}[form]
    path, before = f"{FOLDER}/{name}", []
    format_ = "parquet" if form == "parquet" else "delimited"
    put(tmp_path, f"{FOLDER}/1.dfm", dfm(ITEMS, 100, file=name, format_=format_))
    put(tmp_path, path, written(1, 99))
    new = planned(project, before)
    if form != "parquet":  # which is whole once it has its end
        assert new.held == {path: "its records, of which 99 of 100 are there, for settle_minutes (60)"}
        put(tmp_path, path, written(1, 99), hours_ago=2)
        new = planned(project, before)
    [row] = new.files
    if form == "parquet":
        assert json.loads(row["problem"])["found"] == "99"
    else:
        found = read(project, row)
        assert not found["changes"] and {reject.kind for reject in found["rejects"]} == {"contradiction"}
        assert {(reject.expected, reject.found) for reject in found["rejects"]} == {
            ("100 records, as what comes with it says", "99")
        }
    whole = f"{FOLDER}/{name.replace('1', '2')}"
    put(tmp_path, f"{FOLDER}/2.dfm", dfm(ITEMS, 100, file=name.replace("1", "2"), format_=format_))
    put(tmp_path, whole, written(1, 100))
    [row] = planned(project, before).files
    assert len(read(project, row)["changes"]) == 100


def test_a_sidecar_that_is_still_being_written_is_waited_for(tmp_path):
    project = project_of(tmp_path, sidecar="beside")
    put(tmp_path, f"{FOLDER}/1.csv", text(1, 2))
    put(tmp_path, f"{FOLDER}/1.dfm", dfm(ITEMS, 2, file="1.csv")[:100])
    assert "which cannot be read yet" in planned(project, []).held[f"{FOLDER}/1.csv"]
    put(tmp_path, f"{FOLDER}/1.csv", text(1, 2), hours_ago=2)
    [row] = planned(project, []).files
    assert [reject.kind for reject in read(project, row)["rejects"]] == ["invalid_json"]


@pytest.mark.parametrize("form", ["text", "json", "parquet"])
@pytest.mark.parametrize(
    ("listed", "found"),
    [
        (ITEMS.columns[:2], f"{ITEMS.columns[2].name} is gone"),
        (
            (ITEMS.columns[0], ITEMS.columns[1]._replace(type="DATE"), ITEMS.columns[2]),
            f"{ITEMS.columns[1].name} is DATE, not {ITEMS.columns[1].type}",
        ),
    ],
)
def test_a_list_that_lacks_a_column_or_has_another_type_holds_its_rows(tmp_path, form, listed, found):
    """Rows of plain values are no exception, which the compiled walk reads."""
    table = ITEMS._replace(columns=listed)
    rows = [[seq, "I", "", None, None, None, None, n, None, None][: 7 + len(listed)] for n, seq in enumerate(SEQS)]
    write = {
        "text": lambda: encode.delimited(table, rows, options=NAMES),
        "json": lambda: encode.json_lines(table, rows),
    }
    data = write.get(form, lambda: encode.parquet(table, rows))()
    end, format_ = {"text": ("csv", "delimited"), "json": ("json", "json"), "parquet": ("parquet", "parquet")}[form]
    put(tmp_path, f"{FOLDER}/1.{end}", data)
    put(tmp_path, f"{FOLDER}/1.dfm", dfm(table, 2, file=f"1.{end}", format_=format_))
    typed = {
        **ITEMS_CONTRACT,
        "columns": [
            c | {"source_type": column.type} for c, column in zip(ITEMS_CONTRACT["columns"], ITEMS.columns, strict=True)
        ],
    }
    transport = "rows" if form == "parquet" else ""
    project = project_of(tmp_path, "landing/**", transport, table=typed, sidecar="beside")
    [row] = planned(project, []).files
    one = read(project, row)
    assert not one["changes"] and {(r.kind, r.found) for r in one["rejects"]} == {("definition_differs", found)}


@pytest.mark.parametrize("form", ["text", "json", "parquet"])
def test_rows_wait_for_a_contract_that_knows_the_list_of_their_sidecar(tmp_path, form):
    wider = ITEMS._replace(columns=(*ITEMS.columns, encode.Column("PRICE", "INT4")), version=2)
    rows = encode.rows(wider, [{**one, "after": one["after"] | {"PRICE": 1}} for one in inserts(1, 2)])
    write = {
        "text": lambda: encode.delimited(wider, rows, options=NAMES),
        "json": lambda: encode.json_lines(wider, rows),
    }
    data = write.get(form, lambda: encode.parquet(wider, rows))()
    end, format_ = {"text": ("csv", "delimited"), "json": ("json", "json"), "parquet": ("parquet", "parquet")}[form]
    put(tmp_path, f"{FOLDER}/1.{end}", data)
    times = ("", "", "2026-01-02T03:04:05.000", None)
    put(tmp_path, f"{FOLDER}/1.dfm", dfm(wider, 2, file=f"1.{end}", format_=format_, times=times))
    project = project_of(tmp_path, "landing/**", "rows" if form == "parquet" else "", sidecar="beside")
    [row] = planned(project, []).files
    found = read(project, row)
    assert not found["changes"] and {(r.kind, r.found) for r in found["rejects"]} == {
        ("definition_differs", "PRICE is new")
    }
    [definition] = found["definitions"]
    assert definition.version == 2 and definition.change_seq == "2026010203040500" + "0" * 19
    known = ITEMS_CONTRACT | {
        "version": 2,
        "columns": [*ITEMS_CONTRACT["columns"], {"name": "PRICE", "type": "int", "source_type": "INT4"}],
        "earlier": [{"version": 1, "until": "2026-01-02 03:04:05", "columns": ITEMS_CONTRACT["columns"]}],
    }
    project = project_of(tmp_path, "landing/**", "rows" if form == "parquet" else "", table=known, sidecar="beside")
    assert [one["after"]["PRICE"] for one in read(project, row)["changes"]] in ([1, 1], ["1", "1"])


def test_a_list_without_a_time_is_in_force_from_the_first_rejected_row_on(tmp_path):
    wider = ITEMS._replace(columns=(*ITEMS.columns, encode.Column("PRICE", "INT4")), version=2)
    rows = encode.rows(wider, [{**one, "after": one["after"] | {"PRICE": 1}} for one in inserts(3, 2)])
    put(tmp_path, f"{FOLDER}/1.csv", encode.delimited(wider, rows, options=NAMES))
    put(tmp_path, f"{FOLDER}/1.dfm", dfm(wider, 2, file="1.csv", times=("", "", None, None)))
    project = project_of(tmp_path, sidecar="beside")
    [row] = planned(project, []).files
    found = read(project, row)
    assert [reject.kind for reject in found["rejects"]] == ["definition_differs"] * 2
    assert [(one.version, one.change_seq) for one in found["definitions"]] == [(2, seq(3))]


def test_a_parquet_file_that_was_refused_is_tried_again_under_other_settings(tmp_path):
    project, before = project_of(tmp_path, transport="rows", sidecar="none"), []
    put(tmp_path, "landing/SHOP.ITEMS/LOAD00000001.parquet", encode.parquet(ITEMS, [[1, "a", None]], encode.LOAD))
    [row] = planned(project, before).files
    assert "load_time" in json.loads(row["problem"])["expected"]
    assert planned(project, before).files == []
    project = project_of(tmp_path, transport="rows", sidecar="none", load_time="first")
    [row] = planned(project, before).files
    assert row["problem"] is None and [one["operation"] for one in read(project, row)["changes"]] == ["REFRESH"]


def test_the_precision_of_a_number_may_drift_between_sidecars(tmp_path):
    table = ITEMS._replace(columns=(*ITEMS.columns, encode.Column("PRICE", "NUMERIC", precision=12, scale=2)))
    tables = {"SHOP.ITEMS": contract(table)}
    project = project_of(tmp_path, sidecar="beside")
    of = project.sources["s"]
    given = {"sidecar": {"path": "1.dfm", "data": dfm(table, 1, file="1.csv").hex()}}
    rows = encode.rows(table, [{**one, "after": one["after"] | {"PRICE": 1}} for one in inserts(1, 1)])
    data = encode.delimited(table, rows, options=NAMES)
    context = files.open_file(f"{FOLDER}/1.csv", data, True, of, tables) | {"companions": given}
    [block] = files.cut(data, context, of, tables, 1 << 20, True).blocks
    assert files.decode(data, block.context, of, tables).changes.num_rows == 1


def test_the_time_of_a_load_comes_from_the_sidecar_of_its_first_file(tmp_path):
    project, before = project_of(tmp_path, sidecar="beside", load_lead_seconds=60), []
    for n in (1, 2):
        data = encode.delimited(ITEMS, [[n, "a", None]], encode.LOAD)
        put(tmp_path, f"landing/SHOP.ITEMS/LOAD{n:08d}.csv", data)
        times = (f"2026-01-02T03:0{n}:00.120", "", None, None)
        told = dfm(ITEMS, 1, encode.LOAD, file=f"LOAD{n:08d}.csv", content="data", times=times)
        put(tmp_path, f"landing/SHOP.ITEMS/LOAD{n:08d}.dfm", told)
    rows = planned(project, before).files
    found = [change for row in rows for change in read(project, row)["changes"]]
    assert {change["load_id"][:16] for change in found} == {"2026010203000012"}  # a minute before its first byte


def test_a_load_whose_files_have_the_names_of_an_earlier_one_is_another_load(tmp_path):
    project, before = project_of(tmp_path, sidecar="beside", load_lead_seconds=0), []
    path, side = "landing/SHOP.ITEMS/LOAD00000001.csv", "landing/SHOP.ITEMS/LOAD00000001.dfm"

    def deliver(day: int, note: str, hours_ago: float = 0) -> None:
        put(tmp_path, path, encode.delimited(ITEMS, [[1, "a", note]], encode.LOAD), hours_ago)
        times = (f"2026-01-0{day}T00:00:00.000", "", None, None)
        put(tmp_path, side, dfm(ITEMS, 1, encode.LOAD, file="LOAD00000001.csv", times=times))

    deliver(1, "first", hours_ago=9)
    [first] = planned(project, before).files
    put(tmp_path, path, encode.delimited(ITEMS, [[1, "a", "other"]], encode.LOAD))  # its sidecar has not come yet
    assert "of a new load" in planned(project, before).held[path]
    deliver(2, "other")
    [again] = planned(project, before).files
    assert again["problem"] is None and again["ofs_start"] == 0
    assert read(project, again)["changes"][0]["load_id"][:8] == "20260102" and first["sha256"] != again["sha256"]
    put(tmp_path, path, encode.delimited(ITEMS, [[1, "a", "third"]], encode.LOAD), hours_ago=3)
    [problem] = planned(project, before).files  # nothing says that it is of another load
    assert json.loads(problem["problem"])["kind"] == "file_rewritten"
    assert planned(project, before).files == []
    put(
        tmp_path,
        side,
        dfm(ITEMS, 1, encode.LOAD, file="LOAD00000001.csv", times=("2026-01-03T00:00:00", "", None, None)),
    )
    [third] = planned(project, before).files
    assert third["problem"] is None and read(project, third)["changes"][0]["load_id"][:8] == "20260103"


def kept(project, before: list[dict]) -> bronze.Plan:
    """What a run plans; it keeps what is listed."""
    plan = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project, before))
    purged.keep(project, plan, bronze.History(project, before))
    before.extend(row | {"landed_at": None} for row in plan.files)
    return plan


def problems(plan: bronze.Plan) -> list[tuple]:
    told = [(row["path"], json.loads(row["problem"])) for row in plan.files if row["problem"]]
    return [(path, problem["kind"], problem["table"]) for path, problem in told]


def test_a_file_that_was_listed_and_is_gone_before_it_was_landed_is_a_certain_gap(tmp_path):
    project, before = project_of(tmp_path, sidecar="beside"), []
    put(tmp_path, f"{FOLDER}/1.csv", text(1, 1))
    put(tmp_path, f"{FOLDER}/1.dfm", dfm(ITEMS, 1, file="1.csv"))
    put(tmp_path, f"{FOLDER}/2.csv", text(2, 1))
    assert list(kept(project, before).held) == [f"{FOLDER}/2.csv"]
    assert kept(project, before).files == []
    (tmp_path / FOLDER / "2.csv").unlink()
    plan = kept(project, before)
    assert problems(plan) == [(f"{FOLDER}/2.csv", "file_purged", "SHOP.ITEMS")]
    assert "Reload the table in Qlik" in plan.notes["s, SHOP.ITEMS"]
    assert kept(project, before).files == []  # it is told once
    put(tmp_path, f"{FOLDER}/2.csv", text(2, 1))  # somebody had it
    put(tmp_path, f"{FOLDER}/2.dfm", dfm(ITEMS, 1, file="2.csv"))
    [row] = kept(project, before).files
    assert row["problem"] is None and len(read(project, row)["changes"]) == 1


def test_a_run_that_dies_while_it_keeps_what_is_listed_loses_nothing(tmp_path, monkeypatch):
    project, before = project_of(tmp_path, sidecar="beside"), []
    put(tmp_path, f"{FOLDER}/2.csv", text(2, 1))
    kept(project, before)
    put(tmp_path, f"{FOLDER}/3.csv", text(3, 1))
    with monkeypatch.context() as patched:
        patched.setattr(LocalFileSystem, "mv", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            kept(project, before)
    (tmp_path / FOLDER / "2.csv").unlink()
    assert problems(kept(project, before)) == [(f"{FOLDER}/2.csv", "file_purged", "SHOP.ITEMS")]


def test_the_tail_of_a_file_that_is_gone_before_it_was_landed_is_a_certain_gap(tmp_path):
    project, before = project_of(tmp_path), []
    path, whole = f"{FOLDER}/1.csv", text(1, 3)
    put(tmp_path, f"{FOLDER}/0.csv", text(9, 1))
    put(tmp_path, path, whole[:-40])
    landed = kept(project, before).files[1]
    assert kept(project, before).files == []  # the tail waits
    assert 0 < landed["ofs_end"] < len(whole) - 40
    (tmp_path / path).unlink()
    plan = kept(project, before)
    assert problems(plan) == [(path, "file_purged", "SHOP.ITEMS")]
    told = json.loads(plan.files[0]["problem"])
    assert told["byte_offset"] == landed["ofs_end"] and f"byte {landed['ofs_end']} of the file" in told["expected"]
    assert kept(project, before).files == []  # it is told once
    put(tmp_path, path, whole)  # somebody had it
    [row] = kept(project, before).files
    assert (row["ofs_start"], row["ofs_end"], row["problem"]) == (landed["ofs_end"], len(whole), None)
    (tmp_path / path).unlink()
    assert kept(project, before).files == []


def test_a_table_whose_landed_file_lost_its_tail_may_miss_other_files_too(tmp_path):
    project, before = project_of(tmp_path), []
    put(tmp_path, f"{FOLDER}/1.csv", text(1, 3)[:-40])
    kept(project, before)
    kept(project, before)
    (tmp_path / FOLDER / "1.csv").unlink()
    assert problems(kept(project, before)) == [(f"{FOLDER}/1.csv", "file_purged", "SHOP.ITEMS")]
    put(tmp_path, f"{FOLDER}/3.csv", text(9, 1))
    expected = [(f"{FOLDER}/3.csv (files before it)", "files_may_be_missing", "SHOP.ITEMS")]
    assert problems(kept(project, before)) == expected


def test_what_an_earlier_version_kept_of_listed_files_is_read(tmp_path):
    project, before = project_of(tmp_path), []
    put(tmp_path, f"{FOLDER}/1.csv", text(1, 1))
    kept(project, before)
    listed = tmp_path / "lakehouse" / "_listed" / "s.json"
    listed.write_text(json.dumps({f"{FOLDER}/{n}.csv": "2026-01-02 03:04:05" for n in (1, 2)}))
    (tmp_path / FOLDER / "1.csv").unlink()
    assert problems(kept(project, before)) == [(f"{FOLDER}/2.csv", "file_purged", "SHOP.ITEMS")]


def test_a_file_that_a_person_was_asked_to_take_away_is_no_gap(tmp_path):
    project, before = project_of(tmp_path), []
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "1.csv").symlink_to("nowhere.csv")
    assert "a person" in kept(project, before).held[f"{FOLDER}/1.csv"]
    (tmp_path / FOLDER / "1.csv").unlink()
    assert kept(project, before).files == []


@pytest.mark.parametrize("option", ["kept", "removed"])
def test_new_files_where_all_landed_ones_are_gone_are_a_possible_gap(tmp_path, option):
    project, before = project_of(tmp_path, landed_files=option), []
    put(tmp_path, f"{FOLDER}/1.csv", text(1, 1))
    put(tmp_path, "landing/SHOP.OTHERS__ct/1.csv", text(1, 1))
    assert problems(kept(project, before)) == []
    (tmp_path / FOLDER / "1.csv").unlink()
    put(tmp_path, "landing/SHOP.OTHERS__ct/2.csv", text(2, 1))
    assert problems(kept(project, before)) == []
    put(tmp_path, f"{FOLDER}/3.csv", text(3, 1))
    expected = [(f"{FOLDER}/3.csv (files before it)", "files_may_be_missing", "SHOP.ITEMS")]
    assert problems(kept(project, before)) == (expected if option == "kept" else [])
    assert problems(kept(project, before)) == []


def test_tables_of_net_changes_are_ignored_and_counted(tmp_path):
    project = project_of(tmp_path)
    put(tmp_path, f"{FOLDER}/1.csv", text(1, 1))
    for n in (1, 2):
        put(tmp_path, f"landing/SHOP.attrep_changes0123456789ABCDEF/LOAD0000000{n}.csv", text(n, 1))
        put(tmp_path, f"landing/attrep_changes0123456789abcde{n}__ct/1.csv", text(n, 1))
    plan = planned(project, [])
    assert [row["path"] for row in plan.files] == [f"{FOLDER}/1.csv"] and plan.held == {}
    [row] = status(project)["ignored files"]
    assert row["files"] == 4 and row["why"].startswith("attrep_changes")


def test_a_file_of_a_new_load_that_was_landed_before_the_first_one_told_so_moves_to_it(tmp_path):
    """The files of a reload are delivered in any order; what an earlier load has left stays with that."""
    project, before = project_of(tmp_path, sidecar="beside", load_lead_seconds=0), []

    def deliver(number: int, at: str) -> None:
        name = f"landing/SHOP.ITEMS/LOAD{number:08d}"
        put(tmp_path, f"{name}.csv", encode.delimited(ITEMS, [[number, "a", at]], encode.LOAD))
        told = dfm(ITEMS, 1, encode.LOAD, file=f"LOAD{number:08d}.csv", times=(f"2026-01-{at}:00", "", None, None))
        put(tmp_path, f"{name}.dfm", told)

    def loads(plan: bronze.Plan) -> list[tuple[str, str]]:
        return [(row["path"][-5:-4], json.loads(row["context"])["load_id"][:8]) for row in plan.files]

    for number in (1, 2):
        deliver(number, f"01T00:0{number}")
    assert loads(planned(project, before)) == [("1", "20260101"), ("2", "20260101")]
    deliver(3, "02T00:03")
    assert loads(planned(project, before)) == [("3", "20260101")]  # nothing tells of another load so far
    deliver(1, "02T00:01")
    assert loads(planned(project, before)) == [("1", "20260102"), ("3", "20260102")]
    assert planned(project, before).files == []


def test_a_file_of_an_earlier_load_is_not_taken_for_one_of_the_next(tmp_path):
    project = project_of(tmp_path, sidecar="beside")
    for number, day in ((1, 2), (2, 1)):
        name = f"landing/SHOP.ITEMS/LOAD{number:08d}"
        put(tmp_path, f"{name}.csv", encode.delimited(ITEMS, [[number, "a", None]], encode.LOAD))
        times = (f"2026-01-0{day}T00:00:00", "", None, None)
        put(tmp_path, f"{name}.dfm", dfm(ITEMS, 1, encode.LOAD, file=f"LOAD{number:08d}.csv", times=times))
    first, second = planned(project, []).files
    assert len(read(project, first)["changes"]) == 1
    [reject] = read(project, second)["rejects"]
    assert reject.kind == "contradiction" and "an earlier load" in reject.found


def test_missing_files_of_a_load_are_told_by_their_numbers():
    def numbers(*names: str) -> list[dict]:
        given = [files.open_file(f"SHOP.ITEMS/{name}.csv", b"1,a,", True, source(), {}) for name in names]
        return [one for one in given if isinstance(one, dict)]

    assert files.missing_files(numbers("LOAD00000001", "LOAD00000002")) is None
    assert files.missing_files(numbers("LOAD00000001", "LOAD00000003")) == "LOAD00000002"
    assert files.missing_files(numbers("LOAD_0_1", "LOAD_0_2", "LOAD_1_1")) is None
    assert files.missing_files(numbers("LOAD_0_1", "LOAD_1_2")) == "LOAD_1_1"
    assert files.missing_files(numbers("LOAD_0_1", "LOAD_2_1")) == "LOAD_1_1"


def test_a_file_with_other_records_than_its_sidecar_says_is_one_reject_when_it_is_replayed_too(tmp_path):
    project, path = project_of(tmp_path, sidecar="beside", settle=0), f"{FOLDER}/1.csv"
    put(tmp_path, f"{FOLDER}/1.dfm", dfm(ITEMS, 3, file="1.csv"))
    put(tmp_path, path, text(1, 2))
    [row] = planned(project, []).files
    [unit] = blocks.units_of(project, row)
    for num, kinds in ((3, ["contradiction"]), (2, [])):
        context = json.loads(unit["context"])
        context["companions"]["sidecar"]["data"] = dfm(ITEMS, num, file="1.csv").hex()
        rest = rests.Rest([unit | {"context": context}], set(), row | {"path": path})
        stream = io.BytesIO(unit["bytes"])
        framed = list(reframing._cut(project, project.sources["s"], rest, stream, None, None, None, False))
        assert [b.context["problem"]["kind"] for b, _ in framed if "problem" in b.context] == kinds
        assert sum(len(block.data) for block, _ in framed) == len(unit["bytes"])


@pytest.mark.parametrize("form", ["text", "parquet"])
def test_inlet_decode_reads_a_file_with_its_sidecar(tmp_path, form):
    """By its folder; the sidecar alone tells the columns of text without header row."""
    name, data = {"text": ("1.csv", text(1, 2).split(b"\n", 1)[1]), "parquet": ("1.parquet", parquet(1, 2))}[form]
    project = project_of(tmp_path, transport="rows" if form == "parquet" else "", sidecar="beside")
    put(tmp_path, f"{FOLDER}/{name}", data)
    with pytest.raises(ConfigError, match=r"waits for its 1\.dfm"):
        list(decode.decode_file(project, tmp_path / FOLDER / name, "s"))
    format_ = "parquet" if form == "parquet" else "delimited"
    put(tmp_path, f"{FOLDER}/1.dfm", dfm(ITEMS, 2, file=name, format_=format_))
    rows = list(decode.decode_file(project, tmp_path / FOLDER / name, "s"))
    assert [what for what, _ in rows] == ["change", "change"]
    if form == "text":  # and so does inlet inspect
        shown = list(inspection.inspect(project, tmp_path / FOLDER / name, "s", None, inspection.Selection()))
        assert [one.record.operation for one in shown] == ["INSERT", "INSERT"]
        assert [leaf.name for leaf in shown[0].record.notes][-3:] == [column.name for column in ITEMS.columns]


def test_parquet_with_other_types_than_its_sidecar_says_is_refused(tmp_path):
    project = project_of(tmp_path, transport="rows", sidecar="beside")
    put(tmp_path, f"{FOLDER}/1.parquet", parquet(1, 2))
    other = ITEMS._replace(columns=(ITEMS.columns[0]._replace(type="STRING"), *ITEMS.columns[1:]))
    put(tmp_path, f"{FOLDER}/1.dfm", dfm(other, 2, file="1.parquet", format_="parquet"))
    [row] = planned(project, []).files
    problem = json.loads(row["problem"])
    assert (problem["expected"], problem["found"]) == ("ID as STRING, by its .dfm", "int32")


def test_the_rows_of_parquet_are_shown_with_their_header_columns_as_they_are_decoded(tmp_path):
    """An insert, an update with its before-image, and a delete of a key that is null."""
    project = project_of(tmp_path, transport="rows", before_images="stored")
    image = {"ID": 1, "NAME": "a", "NOTE": None}
    changes = [
        *inserts(1, 1),
        {"operation": "UPDATE", "change_seq": seq(2), "before": image, "after": image | {"NAME": "b"}},
        {"operation": "DELETE", "change_seq": seq(3), "before": image | {"ID": None}},
    ]
    path = f"{FOLDER}/1.parquet"
    put(tmp_path, path, encode.parquet(ITEMS, encode.rows(ITEMS, changes)))
    shown = list(inspection.inspect(project, tmp_path / path, "s", None, inspection.Selection()))
    assert [(one.offset, one.record.operation, one.record.change_seq) for one in shown] == [
        (0, "INSERT", seq(1)),
        (1, "UPDATE", seq(2)),
        (2, "UPDATE", seq(2)),
        (3, None, seq(3)),
    ]
    decoded = [row for what, row in decode.decode_file(project, tmp_path / path, "s") if what == "change"]
    assert shown[0].record.table == "SHOP.ITEMS" and shown[3].record.fault[0] == "missing_key"
    found = [
        {image: {n.column: n.value for n in one.record.notes if n.image == image} for image in ("before", "after")}
        for one in shown
    ]
    assert found[0]["after"] == decoded[0]["after"]
    assert {**found[1]["before"], **found[2]["before"]} == decoded[1]["before"]
    assert {**found[1]["after"], **found[2]["after"]} == decoded[1]["after"]
    names = [note.name for note in shown[0].record.notes]
    assert names[-3:] == ["ID", "NAME", "NOTE"] and "header__change_seq" in names
    from_row = inspection.inspect(project, tmp_path / path, "s", None, inspection.Selection(at=3))
    assert [one.as_json()["offset"] for one in from_row] == [3]
