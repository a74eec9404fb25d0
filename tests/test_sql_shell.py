"""`inlet sql` without a query: statements of a file, and a person at a terminal."""

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time

import pytest

from inlet.commands import shell, sql
from inlet.commands.statements import is_whole, split
from inlet.errors import ConfigError
from inlet.lake import catalog
from tests import projects

CLI = [sys.executable, "-m", "inlet.cli"]


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("", [], ""),
        (" ;; ; ", [], ""),
        ("select 1", [], "select 1"),
        ("select 1;", ["select 1"], ""),
        ("select 1; select 2;\n", ["select 1", "select 2"], ""),
        ("select ';', \";\", `;`; select 2", ["select ';', \";\", `;`"], "select 2"),
        ("select 'it''s; so'; select 2", ["select 'it''s; so'"], "select 2"),
        (r"select 'it\'s; so'; select 2", [r"select 'it\'s; so'"], "select 2"),
        (r"select r'\'; select 2", [r"select r'\'"], "select 2"),
        (r"select R\"\\\"; select 2".replace('\\"', '"'), [r"select R\"\\\"".replace('\\"', '"')], "select 2"),
        ("-- a; b\nselect 1; -- c;", ["-- a; b\nselect 1"], ""),
        ("-- a \\\n; b\nselect 1;", ["-- a \\\n; b\nselect 1"], ""),
        ("select /* ; /* ; */ ; */ 1; /* ; */", ["select /* ; /* ; */ ; */ 1"], ""),
        ("select 1; /* a /* b */ c */", ["select 1"], ""),
        ("select 1; /* a /* b */ c", ["select 1"], "/* a /* b */ c"),
        ("select 1 /* ;", [], "select 1 /* ;"),
        ("select 'a;", [], "select 'a;"),
        ("select 1; select 'a;\n", ["select 1"], "select 'a;"),
        ("select 1 - -1; select 5 / 2", ["select 1 - -1"], "select 5 / 2"),
    ],
)
def test_a_text_is_cut_where_a_statement_ends(text, statements, rest):
    assert split(text) == (statements, rest)


@pytest.mark.parametrize("comment", ["/* a /* b */ c */ ", "/**/--\n", "-- a \\\n drop b\n", "/*/ a */", "/* ' */"])
def test_a_question_may_stand_behind_comments_and_nothing_else_may(comment):
    sql.check_reads(f"{comment}select 1")
    for statement in (f"{comment}drop view items", f"{comment}/* select 1"):
        with pytest.raises(ConfigError, match="only reads"):
            sql.check_reads(statement)


def test_a_statement_is_typed_to_its_end_over_several_lines():
    assert not is_whole("select 1,") and not is_whole("select ';") and not is_whole("select 1; select 2")
    assert is_whole("select 1,\n 2;") and is_whole("select 1; -- that is all")


def test_tables_functions_and_columns_of_the_project_are_completed(tmp_path):
    names = shell.names(projects.make(tmp_path))
    assert {"items", "items__history", "items_at(", "gold.items__current", "silver.changes", "item_id"} <= set(names)
    assert {"change_seq", "bronze.files", "record_offset"} & set(names) >= {"change_seq", "bronze.files"}


@pytest.mark.spark
def test_statements_of_a_file_are_answered_one_by_one_and_the_first_failure_is_the_exit_code(tmp_path):
    root = projects.make(tmp_path).root
    asked = (
        "select 'a;b' as first; -- a comment;\nselect nope;\ndrop view items;\n"
        "select count(*) as num from silver.changes;\nselect 3 as last"
    )
    done = subprocess.run(
        [*CLI, "sql", "--format", "csv", "--project", root], input=asked, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["first", "a;b", "num", "0", "last", "3"]
    assert done.returncode == 2 and "nope" in done.stderr and "`inlet sql` only reads" in done.stderr
    assert "Traceback" not in done.stderr
    empty = subprocess.run([*CLI, "sql", "--project", root], input="-- nothing;\n", capture_output=True, text=True)
    assert (empty.returncode, empty.stdout, empty.stderr) == (0, "", "")


class Terminal:
    """A person at a terminal: types, and reads the screen."""

    def __init__(self, command: list, environment: dict):
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=os.environ | environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C is one
        )
        os.close(theirs)

    def type(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def read_until(self, pattern: str, seconds: float = 120) -> str:
        """The screen from here to what is waited for, without its colours."""
        seen, until = "", time.monotonic() + seconds
        while time.monotonic() < until:
            if select.select([self.ours], [], [], 0.2)[0]:
                try:
                    seen += os.read(self.ours, 65536).decode(errors="replace")
                except OSError:  # the other end is closed
                    break
            plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", seen)
            if re.search(pattern, plain):
                return plain
        raise AssertionError(f"{pattern} did not come: {seen[-2000:]!r}")


@pytest.mark.spark
def test_a_person_asks_in_one_session(tmp_path):
    root = projects.make(tmp_path / "project").root
    at = Terminal(
        [*CLI, "sql", "--project", str(root)],
        {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "XDG_STATE_HOME": str(tmp_path), "INLET_DRIVER_MEMORY": "1g"},
    )
    try:
        at.read_until("Ctrl-C cancels(?s:.*)inlet>")
        at.type("select 40 +\r")
        at.read_until(r"\.\.\.")
        at.type("2 as answer;\r")
        assert "42" in at.read_until(r"1 row, [\d.]+ s(?s:.*)inlet>")
        at.type("select count(*) as num from silver.rej\t")
        at.read_until("rejects|ects")  # the completion is there: all of it, or what was added to the screen
        at.type(";\r")
        at.read_until(r"1 row, [\d.]+ s(?s:.*)inlet>")
        for wrong, said in (("select nope;\r", "nope"), ("drop view items;\r", "`inlet sql` only reads")):
            at.type(wrong)
            at.read_until(f"inlet: (?s:.*){said}(?s:.*)inlet>")
        at.type("select count(*) from range(100000000000000);\r")
        time.sleep(2)
        at.type("\x03")
        at.read_until("cancelled(?s:.*)inlet>")
        at.type("use silver;\r")
        at.read_until("those of silver(?s:.*)inlet>")
        at.type("select count(*) as num from changes; select 7 as seven;\r")
        at.read_until("seven(?s:.*)1 row, [\\d.]+ s(?s:.*)inlet>")
        beside = subprocess.run(  # a question of another process is answered meanwhile: the catalog is shared
            [*CLI, "sql", "select 5 as five", "--format", "csv", "--project", str(root)],
            capture_output=True,
            text=True,
            env=os.environ | {"INLET_DRIVER_MEMORY": "1g"},
        )
        assert beside.stdout.split() == ["five", "5"], beside.stderr
        at.type("\\q\r")
        assert at.process.wait(timeout=60) == 0
        assert not (root / "lakehouse" / catalog.FILE).exists()
    finally:
        at.process.kill()
        with catalog.shared(str(root / "lakehouse")):
            pass  # where it was killed, its server was left behind
    history = (tmp_path / "inlet" / "sql_history").read_text()
    assert "+select 40 +\n+2 as answer;" in history and "silver.rejects" in history
