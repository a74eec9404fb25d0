"""The command line as a person or a scheduler meets it: exit codes, one sentence per error, no stack traces."""

import contextlib
import csv
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from rich.console import Console

from infra.local import preflight
from inlet import cli, config, lake, silver
from inlet.cli.app import LOGGED
from inlet.codecs import CODECS
from inlet.commands import doctor
from inlet.commands.sql import ask
from inlet.errors import ConfigError, InletError
from inlet.gold import generate
from inlet.lake.java import java
from inlet.log import print_table
from inlet.silver import table_versions
from tests import projects
from tests.encode import linkexpress
from tests.postgres import free_port
from tests.test_bronze import NAME, deliver, extract

ROOT = Path(__file__).resolve().parents[1]


def inlet(*words, **environment) -> SimpleNamespace:
    """A command in this process, for what never comes to Spark: a process of its own takes seconds to start. Out: as of
    `apart`.
    """
    stdout, stderr, on_interrupt = StringIO(), StringIO(), signal.getsignal(signal.SIGINT)
    code = 0  # of a command that returns: a scheduler that calls it takes any SystemExit for a failure
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout), redirect_stderr(stderr):
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["inlet", *map(str, words)])
        try:
            cli.main()
        except SystemExit as ended:
            assert ended.code
            code = ended.code
        finally:
            signal.signal(signal.SIGINT, on_interrupt)
    return SimpleNamespace(returncode=code, stdout=stdout.getvalue(), stderr=stderr.getvalue())


def apart(*words, cwd=None, **environment):
    """A command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "inlet.cli", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("environment", [{}, {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}], ids=["cron", "ascii"])
def test_names_in_japanese_are_read_and_said_in_the_locale_of_cron(tmp_path, environment):
    root, file = tmp_path / "受注", "landing/倉庫/注文.jsonl"
    columns = [{"name": "番号", "type": "int"}, {"name": "備考", "type": "string"}]
    table = {"table": "倉庫.注文", "name": "orders", "key": ["番号"], "columns": columns}
    source = {"codec": "qlik_json", "from": {"transport": "lines", "path": "landing/倉庫/*.jsonl"}}
    (root / "landing" / "倉庫").mkdir(parents=True)
    projects.make(root, {"depot": source | {"tables": {"landing/倉庫/*": "倉庫.注文"}}}, [table])
    data = {"番号": 1, "備考": "é, and beyond 16 bits: 𠮷"}
    row = {"data": data, "headers": {"operation": "INSERT", "changeSequence": f"20260102030405{7:021d}"}}
    (root / file).write_text(json.dumps(row, ensure_ascii=False) + "\n" + '{"番号": 1}\n', encoding="utf-8")
    locale = {"LC_ALL": "C", "LANG": ""} | environment
    if "PYTHONIOENCODING" in environment:
        locale |= {"LC_ALL": "C.UTF-8"}  # the streams alone are not in UTF-8
    done = {
        command[0]: apart(*command, "--project", root, **locale)
        for command in (["decode", root / file], ["generate"], ["status"], ["doctor"])
    }
    assert {command: one.returncode for command, one in done.items() if "Traceback" in one.stderr} == {}, done
    change = json.loads(done["decode"].stdout)
    assert (change["source_schema"], change["source_table"], change["after"]) == ("倉庫", "注文", data)
    assert (done["decode"].returncode, done["generate"].returncode, done["status"].returncode) == (3, 0, 0)


def test_java_reads_names_in_utf8_in_the_locale_of_cron():
    asked = "from inlet.lake.java import check_java, java; import subprocess; check_java(); subprocess.run([java(), "
    asked += "'-XshowSettings:properties', '-version'])"
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C", "LANG": ""}
    )
    assert "sun.jnu.encoding = UTF-8" in done.stderr, done.stderr


@pytest.fixture
def project(tmp_path):
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    return projects.make(tmp_path)


def test_a_folder_that_is_no_project_is_named_with_the_remedy(tmp_path):
    done = apart("status", "--project", tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "inlet init" in done.stderr


def test_a_table_that_a_source_ignores_needs_no_contract(tmp_path):
    tables = projects.DEPOT["tables"] | {"9": "DEPOT.LOG"}
    projects.make(tmp_path, {"depot": projects.DEPOT | {"tables": tables, "ignore": ["DEPOT.LOG"]}})
    with pytest.raises(ConfigError, match="maps 9 to DEPOT.LOG, which has no contract"):
        projects.make(tmp_path, {"depot": projects.DEPOT | {"tables": tables}})


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("codec", "qlik_csv", "Known codecs"),
        ("tables", {"1": "DEPOT.OTHER"}, "has no contract"),
        ("from", None, "from"),
        ("colour", "red", "colour"),
    ],
)
def test_a_wrong_config_is_named_by_file_and_field(tmp_path, field, value, said):
    projects.make(tmp_path)
    source = {**projects.DEPOT, field: value}
    (tmp_path / "pipelines" / "inlet.yml").write_text(yaml.safe_dump({"sources": {"depot": source}}))
    done = inlet("status", "--project", tmp_path)
    assert (
        done.returncode == 2 and "inlet.yml" in done.stderr and said in done.stderr and "Traceback" not in done.stderr
    )


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ([1], "sources: expected fields, found a list"),
        ({"depot": 5}, "sources.depot: expected fields, found 5"),
        ({"depot": projects.DEPOT | {"from": ["a"]}}, "sources.depot: from: expected text, found a list"),
        (
            {"depot": projects.DEPOT | {"settle_minutes": "soon"}},
            "sources.depot: settle_minutes: expected a number, found soon",
        ),
        (
            {"depot": projects.DEPOT | {"tables": {1.5: "DEPOT.ITEMS", None: "DEPOT.ITEMS"}}},
            "sources.depot: tables.1.5: expected text, found 1.5 (write it in quotes); "
            "tables.None: expected text, found nothing (write it in quotes)",
        ),
        (
            {"depot": projects.DEPOT | {"tables": {1: None}}},
            "sources.depot: tables.1: expected text, found nothing (write it in quotes)",
        ),
        ({"depot": {"codec": "linkexpress_group"}}, "sources.depot: from: is missing"),
    ],
)
def test_a_wrong_shape_is_said_in_the_words_of_its_author(tmp_path, sources, said):
    projects.make(tmp_path)
    (tmp_path / "pipelines" / "inlet.yml").write_text(yaml.safe_dump({"sources": sources}))
    with pytest.raises(ConfigError) as error:
        config.load(tmp_path)
    assert error.value.message == f"{tmp_path}/pipelines/inlet.yml: {said}"


def test_an_unknown_source_step_or_table_is_a_usage_error(project):
    for words in (["--source", "nowhere"], ["--step", "platinum"], ["--table", "nothing"]):
        assert inlet("run", *words, "--project", project.root).returncode == 2


def test_a_run_with_nothing_new_needs_no_java_and_logs_json_off_a_terminal(project):
    done = inlet("run", "--project", project.root, PATH="/nowhere", JAVA_HOME="/nowhere")
    assert done.returncode == 0 and json.loads(done.stderr)["nothing_new"] is True


@pytest.mark.slow
def test_missing_java_is_said_in_one_sentence(project):
    deliver(project, extract(projects.item_records(1, 2)))
    generate.write(project)
    done = inlet("run", "--project", project.root, PATH="/nowhere", JAVA_HOME="/nowhere")
    assert (
        done.returncode == 5
        and "No Java was found" in done.stderr
        and "Install Java 17" in done.stderr
        and "Traceback" not in done.stderr
    )


@pytest.mark.parametrize("is_terminal", [False, True])
def test_an_error_is_a_line_of_the_log_and_a_sentence_for_a_person(project, monkeypatch, is_terminal):
    monkeypatch.setattr("rich.console.Console.is_terminal", is_terminal)
    done = inlet("run", "--table", "nothing", "--project", project.root)
    if is_terminal:
        assert done.stderr == "inlet: There is no table nothing. There are: DEPOT.ITEMS, items\n"
    else:
        line = json.loads(done.stderr)
        assert line.pop("at") and line == {
            "step": "error",
            "level": "error",
            "message": "There is no table nothing",
            "remedy": "There are: DEPOT.ITEMS, items",
        }
    assert done.returncode == 2


def test_an_error_of_a_command_without_a_log_is_a_sentence(project):
    assert inlet("show", "nothing", "--project", project.root).stderr.startswith("inlet: There is no table nothing. ")


SHOWS = "`inlet {} --help` shows what there is"


@pytest.mark.parametrize(
    ("words", "message", "remedy"),
    [
        (["statu"], "No such command 'statu'", "Did you mean 'status'?"),
        (["show"], "Missing argument 'table'", SHOWS.format("show")),
        (["run", "--sourc", "depot"], "No such option: --sourc (Possible options: --source)", SHOWS.format("run")),
    ],
)
def test_wrong_usage_is_a_box_for_a_person_and_one_line_elsewhere(monkeypatch, words, message, remedy):
    done = inlet(*words)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    if words[0] in LOGGED:
        line = json.loads(done.stderr)
        assert (line["level"], line["message"], line["remedy"]) == ("error", message, remedy)
    else:
        assert done.stderr == f"inlet: {message}. {remedy}\n"
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    done = inlet(*words)
    assert done.returncode == 2 and "╰───" in done.stderr


def test_wrong_usage_is_a_line_of_the_log_of_each_command_that_has_one():
    begin = {
        c.name or c.callback.__name__
        for c in cli.app.registered_commands
        if "begin_log" in c.callback.__code__.co_names
    }
    assert begin == set(LOGGED)


def test_an_old_java_is_said_with_its_version(project, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    java.chmod(0o755)
    done = inlet("doctor", "--project", project.root, JAVA_HOME=str(tmp_path))
    assert done.returncode == 5 and "Java 8" in done.stdout


@pytest.mark.parametrize(
    "change, said",
    [
        ({"options": {"logtyp": "little"}}, "sources.depot.options: logtyp: is not known; did you mean logtype?"),
        ({"form": "landing"}, "form: is not known; did you mean from?"),
        ({"from": "landing/depoh/*.lxg"}, "there is no folder depoh; did you mean depot?"),
        ({"from": "landing/depot/fede.lxg"}, "there is no file fede.lxg; did you mean feed.lxg?"),
        ({"tables": {"1": "DEPOT.ITEM"}}, "Contracts are there for DEPOT.ITEMS"),
    ],
)
def test_doctor_names_what_inlet_yml_cannot_mean(project, change, said):
    path = project.root / "pipelines" / "inlet.yml"
    config_said = yaml.safe_load(path.read_text())
    config_said["sources"]["depot"] |= change
    path.write_text(yaml.safe_dump(config_said))
    (project.root / "landing" / "depot").mkdir(parents=True, exist_ok=True)
    (project.root / "landing" / "depot" / "feed.lxg").write_bytes(b"")
    done = inlet("doctor", "--project", project.root)
    assert done.returncode == 2 and said in done.stdout


@pytest.mark.parametrize("codec", ["linkexpress_group", "linkexpress_table", "linkexpress_journal"])
def test_doctor_names_a_contract_that_the_format_cannot_hold(tmp_path, codec):
    source = {"codec": codec, "from": "landing/*", "tables": {"1": "DEPOT.ITEMS"}}
    source["options"] = {"source_tz": "UTC", "charset": "utf_8"}
    name = {"name": "NAME", "type": "string", "source_type": "NCHAR(10)"}
    table = projects.ITEMS | {"columns": [projects.ITEMS["columns"][0], name]}
    found = {f.what: f for f in doctor.examine(projects.make(tmp_path, {"depot": source}, [table]).root)}
    assert not found["source depot"].is_good and "charset utf_8 has no pairs" in found["source depot"].found


LINES = {"codec": "qlik_json", "from": {"transport": "lines", "path": "in/*"}}


@pytest.mark.parametrize(
    ("source", "name", "data", "said"),
    [
        (LINES, "1.parquet", b"PAR1\x15\x04", "is a Parquet file: write `from: {transport: parquet, path: ...}`"),
        (LINES, "1.jsonl", b"\x1f\x8b\x08\x00", "is compressed by gzip: let its name end with .gz"),
        (LINES, "1.jsonl", b"\x28\xb5\x2f\xfd", "is compressed by zstd, which qlik_json does not read"),
        (LINES, "1.seq", b"SEQ\x06\x22org", "is a Hadoop SequenceFile, which qlik_json does not read"),
        (LINES, "1.jsonl", b"SEQ,NAME", ""),
        (LINES, "1.jsonl.gz", b"\x1f\x8b\x08\x00", ""),
        (
            LINES | {"from": "in/*"},
            "1.parquet",
            b"\x1f\x8b\x08\x00",
            "which transport parquet does not unpack: deliver it",
        ),
        (LINES | {"from": "in/*"}, "1.jsonl", b"{}", "is not a Parquet file, as parquet is read: say what it holds in"),
        (LINES | {"codec": "qlik_change_table", "from": "in/*"}, "1.dat", b"PAR1\x15", "{transport: rows, path: ...}"),
        (projects.DEPOT | {"from": "in/*"}, NAME, b"PAR1\x15", "is a Parquet file, which linkexpress_group does not"),
    ],
)
def test_doctor_names_a_file_of_another_format(tmp_path, source, name, data, said):
    project = projects.make(tmp_path, {"depot": source})
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(data)
    found = {f.what: f for f in doctor.examine(project.root)}["source depot"].found
    assert said in found if said else " is " not in found, found


def test_doctor_reads_no_pipe_which_would_keep_it_waiting(tmp_path):
    project = projects.make(tmp_path, {"depot": LINES})
    (tmp_path / "in").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "in" / "1.jsonl").symlink_to(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(pipe, b"PAR1\x15\x04\x15\x04")
    found = {f.what: f for f in doctor.examine(project.root)}["source depot"]
    os.close(pipe)
    assert found.is_good and "1 file at in/*" in found.found


def test_options_that_are_missing_are_asked_for_at_once(tmp_path):
    first = ("--source", "depot", "--codec", "linkexpress_group", "--from", "in/*")
    done = inlet("init", tmp_path / "mine", *first)
    assert "1. write `options: {source_tz: ..., charset: ...}` into" in done.stdout and "Asia/Tokyo" in done.stdout
    with pytest.raises(ConfigError, match="options: source_tz, charset are missing"):
        config.load(tmp_path / "mine")


def test_init_names_a_file_of_another_format(tmp_path):
    (tmp_path / "1.seq").write_bytes(b"SEQ\x06\x22org")
    first = ("--source", "crm", "--codec", "qlik_json", "--from", f"{tmp_path}/*.seq", "--transport", "lines")
    done = inlet("init", tmp_path / "mine", *first)
    assert f"note: {tmp_path}/1.seq is a Hadoop SequenceFile, which qlik_json does not read" in done.stdout


def test_commands_that_init_prints_can_be_copied(tmp_path):
    """Of a folder with a blank in its name, on a narrow terminal."""
    first = ("--source", "crm", "--codec", "qlik_json", "--from", "in/*", "--transport", "lines")
    lines = inlet("init", tmp_path / "my project", *first, COLUMNS="60").stdout.splitlines()
    of_project = f"--project '{tmp_path}/my project'"
    assert lines[1].startswith(
        f"  1. inlet run {of_project} and inlet import --source crm {of_project}, where the feed"
    )
    assert lines[2:] == [f"  2. inlet generate {of_project}", f"  3. inlet run {of_project}"]


def test_git_ignores_what_a_new_project_writes_when_it_works(tmp_path):
    inlet("init", tmp_path / "mine")
    assert (tmp_path / "mine" / ".gitignore").read_text().split() == [
        "/lakehouse/",
        "/landing/",
        "dbt/target/",
        "dbt/logs/",
    ]


def test_before_the_first_delivery_nothing_is_wrong(project):
    shutil.rmtree(project.root / "landing", ignore_errors=True)
    found = {f.what: f for f in doctor.examine(project.root)}["source depot"]
    assert (found.is_good, found.found) == (
        True,
        "landing/depot/*.lxg: there is no folder depot yet (nothing delivered)",
    )


def test_a_run_without_models_ends_at_once_and_lands_nothing(project):
    deliver(project, extract(projects.item_records(1, 2)))
    done = inlet("run", "--project", project.root, PATH="/nowhere", JAVA_HOME="/nowhere")
    [said] = map(json.loads, done.stderr.splitlines())
    assert (said["message"], said["remedy"]) == ("dbt has no models of items", "Run `inlet generate` first")
    assert done.returncode == 2 and not lake.exists(project.lakehouse_path(), "bronze.files")


def test_models_that_are_stale_are_said_before_spark_starts(project):
    deliver(project, extract(projects.item_records(1, 2)))
    [changed, *_] = generate.write(project)
    (project.root / changed).write_text("")
    done = inlet("run", "--project", project.root, PATH="/nowhere", JAVA_HOME="/nowhere")
    first = json.loads(done.stderr.splitlines()[0])
    assert (first["step"], first["remedy"]) == ("warning", "inlet generate") and done.returncode == 5


def test_brackets_in_a_finding_are_not_taken_for_markup(project):
    path = project.root / "pipelines" / "tables" / "items.yml"
    path.write_text(path.read_text() + "sources: [depot\n")
    assert "[depot" in inlet("doctor", "--project", project.root).stdout


@pytest.mark.parametrize("num_columns", [1, 13, 14, 70])
def test_every_column_of_a_wide_answer_shows(num_columns):
    to = Console(file=StringIO(), width=80)
    print_table(to, [f"c[{n}]" for n in range(num_columns)], [[f"v{n}" for n in range(num_columns)]])
    assert all(
        re.search(rf"v{n}\b", to.file.getvalue()) for n in range(num_columns)
    ) and "[0]" in to.file.getvalue().replace("\n", "")


HISTORY = ["order_id", "status", "valid_from_seq", "valid_to_seq", "not_supplied"]


@pytest.mark.parametrize(("width", "is_table"), [(130, True), (104, True), (103, False), (80, False), (52, False)])
def test_where_columns_have_no_room_rows_are_cards_and_no_name_or_place_is_divided(width, is_table):
    to, places = Console(file=StringIO(), width=width), ["20260105020000000000000030000000000", "2" * 35]
    print_table(to, HISTORY, [[7, "on its way", *places, []], [8, "open", places[1], None, []]], null="NULL")
    words = to.file.getvalue().split()
    assert {*HISTORY, *places} <= set(words) and ("row" in words) is not is_table
    assert all(line == line.rstrip() and len(line) <= width for line in to.file.getvalue().splitlines())


def test_piped_output_is_as_wide_as_columns_says(project, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    widths = {
        columns: max(map(len, apart("status", "--project", project.root, **columns_of).stdout.splitlines()))
        for columns, columns_of in (("none", {}), ("120", {"COLUMNS": "120"}), ("60", {"COLUMNS": "60"}))
    }
    assert widths["none"] > 100 and 60 < widths["120"] <= 120 and widths["60"] <= 60


@pytest.mark.parametrize("columns", ["0", "1", "3"])
def test_a_width_that_no_table_has_is_taken_for_none(project, columns):
    wide = apart("status", "--project", project.root).stdout
    assert wide and apart("status", "--project", project.root, COLUMNS=columns).stdout == wide


def test_a_long_column_has_the_whole_width_where_rows_are_upright():
    to, header = Console(width=60), {"xid": "1.2.3", "io_type_name": "FieldComp"}
    with to.capture() as shown:
        print_table(to, ["operation", "header"], [["UPDATE", header]], is_upright=True)
    assert [" ".join(line.split()) for line in shown.get().splitlines()] == [
        "row 1",
        "operation UPDATE",
        'header {"xid": "1.2.3", "io_type_name": "FieldComp"}',
    ]


def test_null_and_empty_text_look_different():
    to = Console(file=StringIO(), width=80)
    print_table(to, ["note"], [[None], [""]], null="NULL")
    assert [line.strip() for line in to.file.getvalue().splitlines()] == ["note", "NULL", ""]


def test_a_query_that_cannot_be_meant_is_a_usage_error(spark, lakehouse, tmp_path):
    project = projects.make(tmp_path, lakehouse=lakehouse)
    for query, database, said in (
        ("select from 1 1", "public", "Fix the query"),
        ("select * from gold.nothing", "public", "Fix the query"),
        ("selct 1", "public", "only reads"),
        ("with x as (select 1L) insert into silver.stopped (batch_id) select * from x", "public", "only reads"),
        ("from silver.stopped insert into silver.stopped select *", "public", "only reads"),
        ("select 1", "nope", "no database nope"),
    ):
        with pytest.raises(ConfigError, match=said) as raised:
            ask(project, query, 10, database)
        assert "UnresolvedRelation" not in str(raised.value)  # no plan
    assert ask(project, "-- what\nselect 'InsertInto' as a", 10, "public") == ([("InsertInto",)], ["a"], False)


@pytest.mark.smoke
def test_answers_show_structs_bytes_and_utc_times_in_every_format(spark, lakehouse, tmp_path, capsys):
    root = projects.make(tmp_path, lakehouse=lakehouse).root
    query = (
        "select timestamp'2026-01-05 18:00:00.000250' as at, named_struct('price', 1.50, 'parts', array(x'00ff')) as "
        "image, x'0a' as raw, null as nothing, cast(0 as decimal(20,9)) as zero, "
        "to_variant_object(named_struct('size', 1.20, 'photo', x'0a')) as sent, map(x'0a', 0bd) as m"
    )
    said = []
    for format in ("json", "csv", "table"):
        cli.read.sql(query, root, format, 10, "public")
        said.append(capsys.readouterr().out)
    assert json.loads(said[0]) == {
        "at": "2026-01-05T18:00:00.000250",
        "image": {"price": "1.50", "parts": ["00ff"]},
        "raw": "0a",
        "nothing": None,
        "zero": "0.000000000",
        "sent": {"photo": "0a", "size": "1.20"},
        "m": {"0a": "0"},
    }
    assert list(csv.reader(said[1].splitlines()))[1] == [
        "2026-01-05 18:00:00.000250",
        '{"price": "1.50", "parts": ["00ff"]}',
        "0a",
        "",
        "0.000000000",
        '{"photo": "0a", "size": "1.20"}',
        '{"0a": "0"}',
    ]
    assert all(text in said[2] for text in ("2026-01-05 18:00:00.000250", '{"price": "1.50"', "NULL", "0.000000000"))
    query = (
        "select double('NaN') as nan, array(float('-inf'), double('Infinity')) as infinite, timestamp'0001-01-01' as "
        "first, timestamp_ntz'0001-01-01' as first_ntz, timestamp'9999-12-31 23:59:59.999999' as last, "
        "date'0001-01-01' as day"
    )
    for format in ("json", "csv", "table"):
        cli.read.sql(query, root, format, 10, "public")
        said.append(capsys.readouterr().out)
    first, last = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
    assert json.loads(said[3]) == {
        "nan": "NaN",
        "infinite": ["-Infinity", "Infinity"],
        "first": first.replace(" ", "T"),
        "first_ntz": first.replace(" ", "T"),
        "last": last.replace(" ", "T"),
        "day": "0001-01-01",
    }
    infinite = '["-Infinity", "Infinity"]'
    assert list(csv.reader(said[4].splitlines()))[1] == ["NaN", infinite, first, first, last, "0001-01-01"]
    assert all(text in said[5] for text in ("NaN", infinite, first, last))


def test_no_value_of_an_answer_is_dropped(spark, lakehouse, tmp_path, capsys):
    root = projects.make(tmp_path, lakehouse=lakehouse).root
    cli.read.sql("select 1 as a, 2 as a", root, "table", 10, "public")
    assert capsys.readouterr().out.split() == ["a", "a", "1", "2"]
    for query, format, said in (
        ("select 1 as a, 2 as a", "json", "Several columns are called a"),
        ("select named_struct('a', 1, 'a', 2) as image", "table", "several members of one name: a, a"),
        ("select make_date(10000, 1, 1) as at", "table", "outside the years 1 to 9999"),
    ):
        with pytest.raises(InletError, match=said):
            cli.read.sql(query, root, format, 10, "public")


@pytest.mark.parametrize("is_imported", [True, False])
def test_ctrl_c_leaves_a_shared_catalog_and_imports_none_for_that(monkeypatch, is_imported):
    calls = []
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)  # whose JVM goes on with other tests
    monkeypatch.delitem(sys.modules, "inlet.lake.catalog", raising=False)
    if is_imported:
        catalog = SimpleNamespace(leave_all=lambda: calls.append("leave"))
        monkeypatch.setitem(sys.modules, "inlet.lake.catalog", catalog)
    monkeypatch.setattr(os, "_exit", calls.append)
    cli._interrupted()
    assert calls == ["leave"] * is_imported + [130] and ("inlet.lake.catalog" in sys.modules) == is_imported


@pytest.mark.spark
def test_ctrl_c_is_one_line_and_the_next_run_goes_on(project):
    """Interrupts as soon as Spark is there, in the middle of the first write."""
    shutil.copytree(ROOT / "expectations", project.root / "expectations")
    generate.write(project)
    deliver(project, extract(projects.item_records(1, 2)))
    run = subprocess.Popen(
        [sys.executable, "-m", "inlet.cli", "run", "--project", str(project.root)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    first = json.loads(run.stderr.readline())
    os.killpg(run.pid, signal.SIGINT)
    rest = run.stderr.read()
    told = json.loads(rest)
    assert (first["step"], run.wait(), told["step"], told["message"]) == (
        "spark",
        130,
        "error",
        "interrupted; nothing is lost, the next `inlet run` goes on from here",
    )


def test_a_full_disk_and_a_closed_loopback_are_findings_with_a_remedy(project, monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda where: SimpleNamespace(free=10**9))
    monkeypatch.setattr(doctor.socket, "create_server", raise_(OSError("address family not supported")))
    found = {f.what: f for f in doctor.examine(project.root)}
    assert (found["disk"].is_good, found["disk"].remedy) == (False, "Make room for 2 GB")
    assert not found["ports"].is_good and "127.0.0.1" in found["ports"].found
    assert (
        preflight.lack()
        == "Only 1.0 GB of disk are free here: make room for 3 GB (packages, jars, the demo's lakehouse)"
    )


def raise_(error):
    def call(*args, **kwargs):
        raise error

    return call


def test_a_catalog_that_another_process_has_open_is_said_in_one_sentence(spark, lakehouse, tmp_path):
    project = projects.make(tmp_path, lakehouse=lakehouse)
    done = apart("sql", "select 1", "--project", project.root)
    assert done.returncode == 6 and "Another process has the catalog" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.spark
def test_a_catalog_is_served_once_to_its_owner_and_ends_without_a_trace(project, tmp_path):
    """What it serves is asked by tests/test_bank.py."""
    port = str(free_port())
    serving = subprocess.Popen(
        [sys.executable, "-m", "inlet.cli", "catalog", "--port", port], stdout=subprocess.PIPE, text=True
    )
    try:
        said = dict(serving.stdout.readline().strip().removeprefix("export ").split("=", 1) for _ in range(2))
        folder, client = map(Path, said["SPARK_DIST_CLASSPATH"].split(os.pathsep))
        assert said["INLET_CATALOG"] == f"127.0.0.1:{port}" and client.exists()
        assert f"Something listens on 127.0.0.1:{port} already" in apart("catalog", "--port", port).stderr
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        password = re.search("Password</name><value>(.+?)<", (folder / "hive-site.xml").read_text())[1]
        assert not [command for command in commands() if password in command]
        url = f"jdbc:derby://127.0.0.1:{port}/{tmp_path}/db;create=true"
        for user, said_by_derby in (
            ("", "08004"),
            (";user=APP;password=guessed", "08004"),
            (f";user=APP;password={password}", "ij> ij>"),
        ):
            assert said_by_derby in derby(client.parent, f"connect '{url}{user}';")
    finally:
        serving.terminate()
        assert serving.wait() == 0
    assert not folder.exists()
    assert (
        "No catalog answers at INLET_CATALOG=127.0.0.1"
        in apart("sql", "select 1", "--project", project.root, **said).stderr
    )


def commands() -> list[str]:
    """The command lines of all processes, as every user of the machine can read them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            found.append(path.read_text(errors="replace"))
    return found


def derby(jars: Path, statement: str) -> str:
    """What Derby's own client answers."""
    return subprocess.run(
        [java(), "-cp", f"{jars}/*", "org.apache.derby.tools.ij"], input=statement, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize("port", [-1, 0, 99999])
@pytest.mark.parametrize("command", ["serve", "catalog"])
def test_a_port_that_cannot_be_is_a_usage_error(command, port):
    done = inlet(command, "--port", port)
    assert done.returncode == 2 and "--port" in done.stderr


@pytest.mark.parametrize("command", [["run"], ["rebuild", "--table", "items"], ["verify"]])
def test_one_run_at_a_time_writes(project, command):
    with lake.writing(project.lakehouse_path()):
        done = inlet(*command, "--project", project.root)
    assert done.returncode == 6 and "Another run writes to" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "statement",
    [
        "delete from gold.items__current",
        " DROP TABLE x",
        "insert into x select 1",
        "/* a */ -- b\ndrop table x",
        "set a = b",
    ],
)
def test_sql_only_reads(project, statement):
    done = inlet("sql", statement, "--project", project.root)
    assert done.returncode == 2 and "`inlet sql` only reads" in done.stderr


def test_decode_prints_changes_as_json_lines_and_rejects_apart(project):
    good = extract([("insert", 1, {"ITEM_ID": 1, "NAME": "a", "PRICE": None}), ("commit",)])
    broken = bytearray(extract([("delete", 1, {"ITEM_ID": 2, "NAME": "b", "PRICE": None}), ("commit",)]))
    broken[11] = 9  # an operation that does not exist
    deliver(project, good + bytes(broken))
    done = inlet("decode", project.root / "landing" / "depot" / NAME, "--project", project.root)
    [change], [reject] = map(json.loads, done.stdout.splitlines()), map(json.loads, done.stderr.splitlines())
    assert (done.returncode, change["operation"], change["after"]) == (
        3,
        "INSERT",
        {"ITEM_ID": 1, "NAME": "a", "PRICE": None},
    )
    assert (reject["kind"], reject["file_offset"]) == ("unknown_operation", len(good) + 10)


@pytest.mark.parametrize(("name", "kind"), [("readme.lxg", "missing_change_seq"), (NAME, "bad_length")])
def test_a_file_that_is_no_feed_is_a_reject_for_decode(project, name, kind):
    deliver(project, b"# Inlet\n\nInlet takes what change-data-capture tools write" * 9, name)
    done = inlet("decode", project.root / "landing" / "depot" / name, "--project", project.root)
    assert (done.returncode, done.stdout) == (3, "") and json.loads(done.stderr)["kind"] == kind


def test_decode_shows_the_beginning_of_a_file_that_is_one_reject(project):
    deliver(project, bytes(5000), "readme.lxg")
    done = inlet("decode", project.root / "landing" / "depot" / "readme.lxg", "--project", project.root)
    said = json.loads(done.stderr)
    assert (said["raw"], said["raw_goes_on"]) == ("00" * 4096, 904)


def test_decode_reads_any_file_as_one_of_the_only_source(project, tmp_path):
    (tmp_path / NAME).write_bytes(extract(projects.item_records(1, 2)))
    assert inlet("decode", tmp_path / NAME, "--project", project.root).returncode == 0


def test_a_column_may_be_called_no(project):
    path = project.root / "pipelines" / "tables" / "items.yml"
    path.write_text(path.read_text().replace("NAME", "NO"))
    assert "NO" in config.load(project.root).tables["DEPOT.ITEMS"].column_names


def test_the_doctor_names_columns_that_changed_without_a_version(project, monkeypatch):
    monkeypatch.setattr(
        table_versions, "used", lambda project: {("depot", "DEPOT.ITEMS", 1): [{"name": "ITEM_ID", "type": "bigint"}]}
    )
    found = {f.what: f for f in doctor.examine(project.root)}["columns"]
    assert not found.is_good and "NAME string is new" in found.found and "earlier" in found.remedy


def test_a_kind_or_source_that_does_not_exist_has_no_rejects_to_show(project):
    for words in (["--source", "nowhere"], ["--kind", "odd"]):
        assert inlet("rejects", *words, "--project", project.root).returncode == 2


def test_decode_stops_quietly_when_its_reader_goes_away(project):
    deliver(project, extract(projects.item_records(1, 3000)))
    command = (
        f"{sys.executable} -m inlet.cli decode {project.root}/landing/depot/{NAME} --project {project.root} | head -1"
    )
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["change_seq"].endswith("0") and done.stderr == ""


def test_init_makes_a_project_that_runs_as_it_is(tmp_path):
    made = tmp_path / "mine"
    assert inlet("init", made).returncode == 0
    assert inlet("run", "--project", made).returncode == 0
    examined = inlet("doctor", "--project", made)
    assert examined.returncode == 2 and examined.stdout.count("no  ") == 1  # it has all but a source
    assert "tables: no table has a contract, so nothing is decoded\n      Add a source" in examined.stdout
    assert inlet("init", made).returncode == 2
    assert linkexpress and (made / "dbt" / "macros").is_dir() and (made / "expectations" / "silver.yml").exists()


def test_a_source_without_contracts_is_named_with_the_way_to_them(tmp_path):
    first = ("--source", "crm", "--codec", "qlik_json", "--from", "in/*.jsonl", "--transport", "lines")
    assert inlet("init", tmp_path / "mine", *first).returncode == 0
    way = "crm: inlet run and inlet import --source crm, where the feed brings column lists, or write a contract"
    for words, code in (("doctor",), 2), (("import",), 2), (("import", "any.def"), 2):
        done = inlet(*words, "--project", tmp_path / "mine")
        assert done.returncode == code and way in done.stdout + done.stderr, words


def test_an_import_names_the_column_lists_that_there_are(project, monkeypatch):
    monkeypatch.setattr(silver, "pending", lambda project: [3])
    assert "what batch 3 landed is not decoded. `inlet run`" in inlet("import", "--project", project.root).stderr
    row = {"source": "depot", "source_schema": "DEPOT", "source_table": "ITEMS"}
    monkeypatch.setattr(table_versions, "seen", lambda project: [row])
    done = inlet("import", "--table", "depot.items", "--project", project.root)
    assert "Column lists were given of DEPOT.ITEMS (source depot). Name one of these" in done.stderr


def test_init_makes_a_project_with_a_source(tmp_path):
    made = tmp_path / "mine"
    assert inlet("init", made, "--source", "trail", "--codec", "goldengate_trail").returncode == 2
    wrong = inlet("init", made, "--source", "trail", "--codec", "goldengate", "--from", "dirdat/ra*")
    assert wrong.returncode == 2 and "goldengate_trail" in wrong.stderr and not made.exists()
    done = inlet("init", made, "--source", "trail", "--codec", "goldengate_trail", "--from", "dirdat/ra*")
    assert done.returncode == 0 and "inlet import DEFINITION_FILE --source trail" in done.stdout
    assert config.load(made).sources["trail"].codec == "goldengate_trail"
    said = ("--source", "gg", "--codec", "goldengate_json", "--from", "in/*.jsonl", "--transport", "lines")
    assert inlet("init", tmp_path / "json", *said).returncode == 0
    assert config.load(tmp_path / "json").sources["gg"].transport == "lines"
    said = ("--source", "lake", "--codec", "qlik_change_table", "--from", "in/**/*", "--option", "before_images=stored")
    assert inlet("init", tmp_path / "lake", *said, "--option", "load_time=first").returncode == 0
    options = config.load(tmp_path / "lake").sources["lake"].options
    assert options == {"before_images": "stored", "load_time": "first"}
    texts = {"record_delimiter": "0x0D0A", "delimiter": "\t", "load_time": "20261125220000", "quoted_null": "null"}
    others = {"load_numbers": "{SHOP.ITEMS: 1}", "load_lead_seconds": "5"}
    told = [word for name, text in {**texts, **others}.items() for word in ("--option", f"{name}={text}")]
    assert inlet("init", tmp_path / "told", *said, *told).returncode == 0
    options = config.load(tmp_path / "told").sources["lake"].options_as(CODECS["qlik_change_table"].OPTIONS)
    assert (options.record_delimiter, options.delimiter, options.load_time) == ("\r\n", "\t", "2026112522000000")
    assert (options.quoted_null, options.load_numbers, options.load_lead_seconds) == ("null", {"SHOP.ITEMS": 1}, 5)
    assert inlet("init", tmp_path / "none", *said, "--option", "load_time").returncode == 2
    assert inlet("init", tmp_path / "none", *said, "--option", "load_lead_seconds=2026-13-45").returncode == 2
    unknown = ("--source", "s", "--codec", "nope", "--from", "in/*", "--option", "a=b")
    done = inlet("init", tmp_path / "none", *unknown)
    assert (done.returncode, (tmp_path / "none").exists()) == (2, False) and "nope" in done.stderr
    done = inlet("init", tmp_path / "topic", "--source", "crm", "--codec", "qlik_json", "--from", "in/*.parquet")
    assert "1. inlet run --project" in done.stdout and "inlet import --source crm" in done.stdout
