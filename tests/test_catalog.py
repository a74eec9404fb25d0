"""Who shares a catalog finds its server by itself, and the last one stops it. That sessions use it: test_serve.py."""

import fcntl
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from inlet.errors import EnvironmentLacks, TryAgain
from inlet.lake import catalog, derby, place
from tests.test_cli import commands

pytestmark = pytest.mark.spark  # Java at least
USER = """
import random, sys, time
from inlet.lake import catalog, derby
for _ in range(int(sys.argv[2])):
    with catalog.shared(sys.argv[1]):
        place = catalog.server(sys.argv[1])
        assert derby.answers(place)
        print(place, flush=True)
        time.sleep(random.uniform(0, 0.3) if len(sys.argv) < 4 else float(sys.argv[3]))
        assert derby.answers(place)
"""
FOLLOWING = """
import signal, sys, time
from inlet import cli
from inlet.commands import follow
from inlet.lake import catalog
signal.signal(signal.SIGINT, cli._interrupted)
with catalog.shared(sys.argv[1]), follow._stopping():
    print(flush=True)
    for _ in range(60):
        time.sleep(1)
"""
ENDING = """
import os, sys
os.environ["SPARK_LOCAL_IP"], os.environ["PYSPARK_PYTHON"] = "127.0.0.1", sys.executable
from pyspark import SparkConf, SparkContext
from inlet.lake import spark
context = SparkContext("local[1]", "ending", conf=SparkConf().set("spark.ui.enabled", "false"))
total = context.accumulator(0)
context.parallelize([1], 1).foreach(total.add)
drivers = context._gateway.jvm.java.sql.DriverManager
drivers.getConnection(f"jdbc:derby:;databaseName={sys.argv[1]}/_catalog;create=true")
print(context._gateway.proc.pid, total.value)
"""


def user(lakehouse: Path, *words: str) -> subprocess.Popen:
    """A process that uses the catalog once or several times, in a loop."""
    return subprocess.Popen(
        [sys.executable, "-c", USER, str(lakehouse), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def found(lakehouse: Path) -> derby.Server:
    return derby.Server(**json.loads((lakehouse / catalog.FILE).read_text()))


def test_a_server_is_there_for_its_owner_while_it_is_used_and_then_gone(tmp_path, monkeypatch):
    monkeypatch.setenv(catalog.CLASS_PATH, "/mine")
    here = str(tmp_path)
    assert "Embedded" in catalog.settings(here)["spark.hadoop.javax.jdo.option.ConnectionDriverName"]
    with catalog.shared(here):
        server = found(tmp_path)
        assert stat.S_IMODE((tmp_path / catalog.FILE).stat().st_mode) == 0o600
        assert stat.S_IMODE(Path(server.folder).stat().st_mode) == 0o700
        assert os.environ[catalog.CLASS_PATH].startswith(server.folder) and os.environ[catalog.CLASS_PATH].endswith(
            ":/mine"
        )
        assert catalog.settings(here) == {
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby://{server.place}/{here}/_catalog;create=true",
            "spark.hadoop.javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.ClientDriver",
        }
        password = re.search("Password</name><value>(.+?)<", (Path(server.folder) / "hive-site.xml").read_text())[1]
        assert not [command for command in commands() if password in command]
        assert password not in (Path(server.folder) / "server.log").read_text()
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and password in path.read_text()]
    assert not server.is_running() and not Path(server.folder).exists() and not (tmp_path / catalog.FILE).exists()
    assert os.environ[catalog.CLASS_PATH] == "/mine" and catalog.server(here) == ""


def test_the_last_user_stops_it_whoever_started_it(tmp_path):
    first = user(tmp_path, "1", "0.5")
    place = first.stdout.readline().strip()
    with catalog.opening(str(tmp_path)):  # as a session does
        assert catalog.server(str(tmp_path)) == place
    assert first.wait() == 0
    server = found(tmp_path)
    assert server.is_running()  # for the session is there until its process ends
    catalog.leave_all()
    assert not server.is_running()


def test_two_ctrl_c_end_a_run_that_follows_and_leave_no_server(tmp_path):
    following = subprocess.Popen(
        [sys.executable, "-c", FOLLOWING, tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    following.stdout.readline()
    server = found(tmp_path)
    for _ in range(2):
        following.send_signal(signal.SIGINT)
        time.sleep(0.5)  # two signals at once are one
    assert following.communicate()[1].startswith(b"inlet: interrupted") and following.returncode == 130
    assert not server.is_running() and not (tmp_path / catalog.FILE).exists()


def test_a_server_that_was_left_behind_is_used_and_stopped_by_the_next_one(tmp_path):
    killed = user(tmp_path, "1", "60")
    place = killed.stdout.readline().strip()
    killed.kill()
    killed.wait()
    server = found(tmp_path)
    assert server.is_running() and catalog.is_shared(str(tmp_path))
    with catalog.shared(str(tmp_path)):
        assert catalog.server(str(tmp_path)) == place
    assert not server.is_running()


@pytest.mark.parametrize("left", ["", "{", "dead"])
def test_a_file_without_a_server_is_replaced(tmp_path, left):
    path = tmp_path / catalog.FILE
    dead = json.dumps(derby.Server("127.0.0.1:1", "/tmp/inlet-catalog-gone", os.getpid())._asdict())
    path.write_text(dead if left == "dead" else left)
    path.chmod(0o600)
    assert not catalog.is_shared(str(tmp_path))
    with catalog.shared(str(tmp_path)):
        assert derby.answers(found(tmp_path).place)
    assert not path.exists()


def test_a_server_that_dies_is_replaced_for_the_next_one(tmp_path):
    with catalog.shared(str(tmp_path)):
        server = found(tmp_path)
        os.kill(server.pid, signal.SIGKILL)
        other = user(tmp_path, "1", "0")
        assert other.communicate()[0].strip() not in ("", server.place) and other.returncode == 0
    assert not (tmp_path / catalog.FILE).exists()


def test_users_that_come_and_go_at_once_always_find_a_living_server(tmp_path):
    users, places = [user(tmp_path, "6") for _ in range(3)], set()
    for one in users:
        said, errors = one.communicate()
        assert one.returncode == 0 and len(said.splitlines()) == 6, errors
        places |= set(said.split())
    assert not (tmp_path / catalog.FILE).exists() and not any(map(derby.answers, places))


@contextmanager
def embedded(lakehouse: Path):
    """A process that has the catalog in a folder open, as Derby's JVM does."""
    (lakehouse / "_catalog").mkdir()
    (lakehouse / "_catalog" / "dbex.lck").touch()
    code = "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); print(); sys.stdin.read()"
    holding = subprocess.Popen(
        [sys.executable, "-c", code, lakehouse / "_catalog" / "dbex.lck"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    holding.stdout.readline()
    yield holding
    holding.communicate(b"")


def test_a_catalog_that_one_process_has_open_by_itself_is_not_served(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(catalog, "EMBEDDED_SECONDS", 0.2)
    with embedded(tmp_path):
        with pytest.raises(TryAgain, match="Another process has the catalog of .* open"), catalog.shared(str(tmp_path)):
            pass
    assert capsys.readouterr().err.count("another process has it open") == 1
    assert not (tmp_path / catalog.FILE).exists() and catalog.server(str(tmp_path)) == ""


def test_a_session_waits_for_a_process_that_is_about_to_close_the_catalog(tmp_path):
    with embedded(tmp_path) as holding:
        threading.Timer(0.5, holding.kill).start()
        with catalog.opening(str(tmp_path)):
            assert holding.wait() == -signal.SIGKILL


def test_a_catalog_whose_lock_is_removed_meanwhile_is_free(tmp_path):
    """Derby removes it where it closes a database."""
    with embedded(tmp_path):
        threading.Timer(0.3, (tmp_path / "_catalog" / "dbex.lck").unlink).start()
        catalog.check_embedded(str(tmp_path))
    assert not (tmp_path / "_catalog" / "dbex.lck").exists()


def test_the_catalog_is_free_when_a_command_has_returned(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, "EMBEDDED_SECONDS", 0)
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:  # a pipe would wait for the JVM, too
        subprocess.run([sys.executable, "-c", ENDING, tmp_path], stdout=out, stderr=err, check=True)
    assert (tmp_path / "_catalog" / "dbex.lck").exists()
    catalog.check_embedded(str(tmp_path))
    pid, total = (tmp_path / "out").read_text().split()
    assert not Path(f"/proc/{pid}").exists() and total == "1"
    assert "Traceback" not in (tmp_path / "err").read_text()


def test_the_file_of_another_user_is_not_believed(tmp_path):
    path = tmp_path / catalog.FILE
    path.write_text("{}")
    path.chmod(0o644)
    with pytest.raises(EnvironmentLacks, match="not this user's alone"), catalog.shared(str(tmp_path)):
        pass


def test_nobody_starts_a_server_while_a_session_opens_the_catalog_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, "GUARD_SECONDS", 0)
    with catalog.opening(str(tmp_path)):
        with pytest.raises(TryAgain, match="is opening the catalog"), catalog.shared(str(tmp_path)):
            pass


def test_the_catalog_of_a_lakehouse_in_a_store_is_shared_on_its_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with catalog.shared("s3a://bucket/lakehouse"):
        assert (place.home("s3a://bucket/lakehouse") / catalog.FILE).exists()
        assert catalog.server("s3a://bucket/lakehouse").startswith("127.0.0.1:")


def test_a_process_with_a_catalog_of_its_own_starts_none(tmp_path, monkeypatch):
    monkeypatch.setenv("INLET_CATALOG", "127.0.0.1:1527")
    with catalog.shared(str(tmp_path)):
        assert catalog.server(str(tmp_path)) == "127.0.0.1:1527" and not list(tmp_path.iterdir())


def test_a_user_holds_its_lock_until_it_leaves(tmp_path):
    with catalog.shared(str(tmp_path)), (tmp_path / catalog.FILE).open() as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
