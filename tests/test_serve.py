"""Analysts ask a lakehouse by JDBC and Python while runs go on: `inlet serve`, a real Thrift Server on a small project.

The server of most tests knows one user, ann; the others start one of their own, or are refused before they do.
"""

import contextlib
import os
import re
import shutil
import signal
import socketserver
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyhive import hive
from thrift.transport.TTransport import TTransportException

from inlet.commands import serve
from inlet.errors import ConfigError, EnvironmentLacks
from inlet.gold import generate
from inlet.lake import catalog
from inlet.lake.java import java
from tests import projects
from tests.postgres import free_port
from tests.test_bronze import NAME, deliver, extract
from tests.test_cli import commands

REPO = Path(__file__).resolve().parents[1]
CLI = [sys.executable, "-m", "inlet.cli"]
SMALL_JVM = {"INLET_DRIVER_MEMORY": "1g"}


def inlet(*words, **environment: str) -> subprocess.CompletedProcess:
    env = os.environ | SMALL_JVM | environment
    return subprocess.run([*CLI, *map(str, words)], capture_output=True, text=True, env=env)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose six items are published."""
    return published(tmp_path_factory.mktemp("served"))


def published(root: Path, lakehouse: str | dict = "lakehouse"):
    made = projects.make(root, lakehouse=lakehouse)
    shutil.copytree(REPO / "expectations", made.root / "expectations")
    shutil.copytree(REPO / "dbt", made.root / "dbt", ignore=shutil.ignore_patterns("target", "logs", "gold"))
    generate.write(made)
    (made.root / "landing" / "depot").mkdir(parents=True)
    deliver(made, extract(projects.item_records(1, 6)))
    done = inlet("run", "--project", made.root)
    assert done.returncode == 0, done.stderr
    return made


class Served:
    """`inlet serve`, as a process, ready to be asked."""

    def __init__(self, project, *words):
        self.port, self.lakehouse = free_port(), Path(project.lakehouse_path())
        self.process = subprocess.Popen(
            [*CLI, "serve", "--project", str(project.root), "--port", str(self.port), *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | SMALL_JVM,
        )
        self.said = ""
        for line in self.process.stdout:
            self.said += line
            if "hive.connect" in line:
                return
        raise AssertionError(self.process.stderr.read())

    def ask(self, query: str, database: str = "public", settings: dict | None = None, **who: str) -> list[tuple]:
        who = who or {"username": "ann", "password": "secret", "auth": "CUSTOM"}
        with contextlib.closing(
            hive.connect("127.0.0.1", self.port, database=database, configuration=settings, **who)
        ) as connection:
            cursor = connection.cursor()
            cursor.execute(query)
            return cursor.fetchall()

    def beeline(self, *statements: str, password: str = "secret") -> str:
        import pyspark

        url = f"jdbc:hive2://127.0.0.1:{self.port}/public"
        shown = [word for statement in statements for word in ("-e", statement)]
        done = subprocess.run(
            [java(), "-cp", f"{Path(pyspark.__file__).parent}/jars/*", "org.apache.hive.beeline.BeeLine"]
            + ["-u", url, "-n", "ann", "-p", password, "--outputformat=csv2", *shown],
            capture_output=True,
            text=True,
        )
        return re.sub(r"^(\. )+> ?", "", done.stdout + done.stderr, flags=re.M)

    def stop(self, with_signal: int) -> None:
        """It ends as told, and leaves no process, no port, no file."""
        server = [command for command in commands() if "InletServer" in command and f"={self.port}" in command]
        self.process.send_signal(with_signal)
        assert (self.process.wait(timeout=120), len(server)) == (0, 1), self.process.stderr.read()
        assert not [command for command in commands() if "InletServer" in command and f"={self.port}" in command]
        assert not catalog.derby.answers(f"127.0.0.1:{self.port}")


@pytest.fixture(scope="module")
def served(project):
    users = project.root / "users"
    serve.add_user(users, "ann", "secret")
    running = Served(project, "--passwords", users)
    try:
        yield running
        running.stop(signal.SIGTERM)
        assert not (running.lakehouse / catalog.FILE).exists()  # nobody else used the catalog
    finally:
        running.process.kill()
        running.process.wait()
        with catalog.shared(project.lakehouse_path()):
            pass  # where it was killed, its server was left behind


pytestmark = pytest.mark.spark
proof = pytest.mark.proof
REFUSED = "Inlet: this server only reads"


@proof
@pytest.mark.gate
def test_python_asks_for_what_is_now_what_was_and_what_changed(served):
    assert served.ask("select count(*), max(name) from items") == [(6, "item 6")]
    assert served.ask("select after, after:NAME::string from silver.changes order by change_seq limit 1") == [
        ('{"ITEM_ID":1,"NAME":"item 1","PRICE":null}', "item 1")
    ]


@proof
def test_runs_pins_and_questions_go_on_beside_it(served, project):
    deliver(project, extract(projects.item_records(7, 4)), NAME.replace("20260105", "20260106"))
    running = subprocess.Popen(
        [*CLI, "run", "--project", project.root], stderr=subprocess.PIPE, text=True, env=os.environ | SMALL_JVM
    )
    counts = {served.ask("select count(*) from items")[0][0]}
    while running.poll() is None:
        counts.add(served.ask("select count(*) from items")[0][0])
    counts.add(served.ask("select count(*) from items")[0][0])
    assert running.returncode == 0 and counts == {6, 10}, running.stderr.read()
    assert served.ask("select count(*) from items_at(timestamp'2026-01-05 18:00')") == [(6,)]
    before = inlet("pin", "before", "--point", "1", "--project", project.root)
    assert before.returncode == 0, before.stderr
    assert served.ask("select count(*) from items", database="before") == [(6,)]
    beside = inlet("sql", "select count(*) as items from items", "--format", "csv", "--project", project.root)
    assert beside.stdout.split() == ["items", "10"], beside.stderr


@proof
def test_a_plain_dbt_builds_beside_it(served, project):
    dbt = [Path(sys.executable).with_name("dbt"), "build", "--quiet", "--select", "items__current"]
    done = subprocess.run(dbt, cwd=project.root / "dbt", capture_output=True, text=True, env=os.environ | SMALL_JVM)
    assert done.returncode == 0, done.stdout
    assert served.ask("select count(*) from gold.items__current") == [(10,)]


@proof
def test_beeline_asks_the_same(served):
    said = served.beeline(
        "select name from items where item_id = 3",
        "select count(*) as num from items__before_after where operation = 'INSERT' and after.item_id < 3",
        "select after from silver.changes where after:ITEM_ID::int = 2",
        "select valid_from from items_at(timestamp'2026-01-05 18:00') where item_id = 1",
        "drop view items",
    )
    assert "\nitem 3\n" in said and "\nnum\n2\n" in said and REFUSED in said
    assert '{"ITEM_ID":2,"NAME":"item 2","PRICE":null}' in said.replace('""', '"')
    assert "\n2026-01-05 03:15:00.0\n" in said  # UTC


@proof
@pytest.mark.parametrize("who", [("ann", "guessed"), ("bob", "secret"), ("ann", "x" * 5000), ("", "secret")])
def test_who_is_not_known_does_not_get_in(served, who):
    with pytest.raises((TTransportException, ValueError), match="Error validating the login|username"):
        served.ask("select 1", username=who[0], password=who[1], auth="CUSTOM")


@proof
def test_a_wrong_password_is_clear_in_beeline_and_no_password_is_logged(served):
    assert "Error validating the login" in served.beeline("select 1", password="guessed")
    log = serve.sessions.LOG_FOLDER / f"serve-{served.port}.log"
    assert "guessed" not in log.read_text() and "secret" not in log.read_text()


@proof
@pytest.mark.parametrize(
    "statement",
    [
        "insert into gold.applied select * from gold.applied",
        "with x as (select 1) insert into gold.applied select * from gold.applied",
        "delete from gold.items__current",
        "update gold.items__current set name = 'x'",
        "truncate table gold.items__current",
        "drop view items",
        "drop table gold.items__current",
        "drop database public cascade",
        "create view public.mine as select 1",
        "create temporary view mine as select 1",
        "create table public.mine as select 1",
        "alter table gold.items__current set tblproperties ('a' = 'b')",
        "insert overwrite directory '/tmp/inlet-written' using csv select 1",
        "vacuum gold.items__current",
        "optimize gold.items__current",
        "restore table gold.items__current to version as of 0",
        "add jar /tmp/x.jar",
        "create temporary function f as 'java.lang.String'",
        "execute immediate 'drop view public.items'",
        "begin drop view public.items; end",
        "cache table items",
        "analyze table gold.items__current compute statistics",
    ],
)
def test_a_write_is_refused(served, statement):
    with pytest.raises(hive.OperationalError, match=REFUSED):
        served.ask(statement)


@proof
@pytest.mark.parametrize(
    ("question", "settings", "said"),
    [
        ("select java_method('java.lang.System', 'exit', 1)", None, "calls no methods of Java"),
        ("select (select reflect('java.lang.System', 'getProperty', 'user.home'))", None, "calls no methods of Java"),
        ("select * from csv.`/etc/hostname`", None, "TABLE_OR_VIEW_NOT_FOUND"),
        ("set spark.sql.runSQLOnFiles = true", None, "the server's to say"),
        ("select 1", {"set:hiveconf:spark.sql.runSQLOnFiles": "true"}, "the server's to say"),
        ("select 1", {"set:hivevar:spark.sql.runSQLOnFiles": "true"}, "the server's to say"),
        ("select transform('x') using 'id' as (a string)", None, "runs no programs"),
        ("with a as (select transform(1) using 'id' as (x string)) select * from a", None, "runs no programs"),
        ("select (select max(x) from (select transform(1) using 'id' as (x string)))", None, "runs no programs"),
        (
            "select from_xml('<p/>', 'a int', map('rowValidationXSDPath', '/etc/hostname'))",
            None,
            "no file of the server",
        ),
        ("select 1", {"set:system:inlet.passwords": "/tmp/mine"}, "the server's to say"),
        ("select 1", {"set:hiveconf:spark.sql.x": "${env:HOME}"}, "the server's to say"),
        ("select 1", {"set:hiveconf:spark.sql.catalog.spark_catalog": "java.lang.String"}, "the server's to say"),
        ("set spark.sql.catalog.spark_catalog = java.lang.String", None, "the server's to say"),
        ("set fs.file.impl = java.lang.String", None, "the server's to say"),
        ("select '${env:HOME}'", {"set:hiveconf:spark.sql.variable.substitute": "true"}, "the server's to say"),
        ("show tables in x", {"set:hiveconf:spark.sql.catalog.x": "none"}, "the server's to say"),
    ],
)
def test_files_and_programs_of_the_server_are_out_of_reach(served, question, settings, said):
    with pytest.raises(hive.OperationalError, match=said):
        served.ask(question, settings=settings)


@proof
@pytest.mark.parametrize("kind", ["hivevar", "hiveconf"])
@pytest.mark.parametrize("substitutes", [{}, {"set:hiveconf:hive.variable.substitute": "true"}])
def test_nothing_of_the_server_is_filled_in_for_a_connection(served, kind, substitutes):
    for name in ("hiveconf:javax.jdo.option.ConnectionPassword", "env:PATH", "system:user.home"):
        settings = substitutes | {f"set:{kind}:inlet.x": f"${{{name}}}"}
        assert served.ask("set inlet.x", settings=settings) == [("inlet.x", "<undefined>")]


@proof
def test_a_client_that_sends_settings_of_hive_is_answered(served):
    settings = {"set:hiveconf:hive.server2.thrift.resultset.default.fetch.size": "10", "set:hivevar:a": "b"}
    assert served.ask("select 1", settings=settings) == [(1,)]


def test_the_server_is_not_told_the_passwords_of_sources(tmp_path):
    told = {"transport": "kafka", "servers": "h:1", "options": {"sasl.password": "${INLET_TEST_PASSWORD}"}}
    source = {"codec": "qlik_json", "from": told, "tables": {"items": "DEPOT.ITEMS"}}
    assert serve.secrets_of(projects.make(tmp_path, {"shop": source})) == {"INLET_TEST_PASSWORD"}


@proof
def test_variant_is_text_in_an_answer_and_variant_within_a_question(served):
    assert served.ask(
        "select v, v:a, v:a::int, array(v), null::variant, parse_json('\"x\"') "
        "from (select parse_json('{\"a\": 1.50}') as v) order by 3"
    ) == [('{"a":1.5}', "1.5", 1, '[{"a":1.5}]', None, '"x"')]
    assert served.ask("set javax.jdo.option.ConnectionPassword")[0][1] == "*********(redacted)"


@proof
def test_it_ends_with_its_starter_however_that_ends(project):
    running = Served(project)
    assert "Nobody is asked for a password" in running.said
    assert running.ask("select 1", username="anybody") == [(1,)]
    running.process.kill()
    running.process.wait()
    left: list[str] = []
    for _ in range(600):
        left = [c for c in commands() if "InletServer" in c and f"={running.port}" in c]
        if not left:
            break
        threading.Event().wait(0.1)
    assert not left


class Directory(socketserver.BaseRequestHandler):
    """As much of LDAP as a login needs: a simple bind of ann with her password, and nobody else."""

    seen: list[bytes] = []

    def handle(self):
        while message := self.request.recv(4096):
            if message[5:6] != b"\x60":  # no bind: the client says goodbye
                return
            size = message[11]
            name, password = message[12 : 12 + size], message[14 + size :]
            self.seen.append(name)
            code = 0 if (name, password) == (b"uid=ann,ou=people,dc=shop", b"secret") else 49
            self.request.sendall(b"\x30\x0c\x02\x01" + message[4:5] + bytes([0x61, 7, 10, 1, code, 4, 0, 4, 0]))


@proof
def test_users_of_a_directory_get_in_with_their_passwords(project):
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Directory) as directory:
        threading.Thread(target=directory.serve_forever, daemon=True).start()
        url = f"ldap://127.0.0.1:{directory.server_address[1]}"
        running = Served(project, "--ldap", url, "--ldap-base", "ou=people,dc=shop")
        try:
            assert running.ask("select 1", username="ann", password="secret", auth="LDAP") == [(1,)]
            with pytest.raises(TTransportException, match="Error validating the login"):
                running.ask("select 1", username="ann", password="guessed", auth="LDAP")
            running.stop(signal.SIGINT)
        finally:
            running.process.kill()
            directory.shutdown()


def test_without_authentication_only_this_machine_is_served(tmp_path):
    users = tmp_path / "users"
    serve.add_user(users, "ann", "secret")
    for access, said in (
        (serve.Access("0.0.0.0"), "can be reached from other machines"),
        (serve.Access("::"), "can be reached from other machines"),
        (serve.Access("db.example"), "can be reached from other machines"),
        (serve.Access(passwords=tmp_path / "none"), "is no file"),
        (serve.Access(passwords=users, ldap="ldap://x"), "two ways of authentication"),
        (serve.Access(ldap_base="dc=x"), "Name its URL"),
    ):
        with pytest.raises(ConfigError, match=said):
            access.check()
    serve.Access(port=free_port(), passwords=users).check()


def test_a_port_that_is_taken_is_said_in_one_sentence():
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as taken:
        port = taken.server_address[1]
        with pytest.raises(EnvironmentLacks, match=f"127.0.0.1:{port} cannot be listened on: Address already in use"):
            serve.Access(port=port).check()


@pytest.mark.parametrize("host", ["nosuch.invalid", "x" * 64 + ".invalid"])
def test_a_host_that_is_not_known_is_said(tmp_path, host):
    serve.add_user(tmp_path / "users", "ann", "secret")
    with pytest.raises(ConfigError, match=f"--host {host} is not known: .*(Name or service|label)"):
        serve.Access(host, free_port(), tmp_path / "users").check()


def test_an_address_of_another_machine_cannot_be_listened_on(tmp_path):
    serve.add_user(tmp_path / "users", "ann", "secret")
    with pytest.raises(EnvironmentLacks, match="Cannot assign requested address. Give an address of this machine"):
        serve.Access("192.0.2.1", free_port(), tmp_path / "users").check()


def test_a_file_of_users_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="nowhere is no folder. Make it first"):
        serve.add_user(tmp_path / "nowhere" / "users", "ann", "secret")
    (tmp_path / "users").mkdir()
    with pytest.raises(EnvironmentLacks, match="users cannot be written: Is a directory"):
        serve.add_user(tmp_path / "users", "ann", "secret")


def test_a_lakehouse_without_tables_is_not_served(tmp_path):
    done = inlet("serve", "--project", projects.make(tmp_path).root, "--port", free_port())
    assert (done.returncode, done.stdout) == (2, "") and "There is nothing in" in done.stderr


def test_a_file_of_users_holds_no_password_and_one_line_for_each(tmp_path):
    users = tmp_path / "users"
    for name, password in (("ann", "first"), ("bob", "secret"), ("ann", "second")):
        done = subprocess.run([*CLI, "password", users, name], input=f"{password}\n", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    text = users.read_text()
    assert [line.split(":")[0] for line in text.splitlines()] == ["bob", "ann"]
    assert "second" not in text and users.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigError, match="without `:`"):
        serve.add_user(users, "a:b", "x")
