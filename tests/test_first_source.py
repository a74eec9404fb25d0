"""A new user's way: docs/first_source.md, word for word, in an empty folder."""

import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from infra.local import readme
from inlet import config
from inlet.cli import app
from inlet.gold import dbt

PAGE = Path(__file__).resolve().parents[1] / "docs" / "first_source.md"


@pytest.mark.spark
def test_the_page_of_the_first_source_prints_what_it_shows(spark, lakehouse, tmp_path, monkeypatch):
    def execute(command: str, folder: Path):
        """A command of the page. Those that need Spark run in the session that there is."""
        monkeypatch.chdir(folder)
        if command.startswith("inlet "):
            done = CliRunner().invoke(app, shlex.split(command, comments=True)[1:])
            return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)
        if command.startswith("(cd dbt && dbt "):
            words = shlex.split(command.removeprefix("(cd dbt && dbt ").removesuffix(")"))
            return SimpleNamespace(returncode=not dbt.invoke(config.load("."), words).success, stdout="done", stderr="")
        return readme.in_shell(command, folder)

    text = PAGE.read_text(encoding="utf-8").replace("lakehouse: lakehouse", f"lakehouse: {lakehouse}")
    assert readme.run(text, tmp_path, execute=execute) == 0


def test_a_command_is_what_follows_the_prompt_up_to_the_next_one():
    page = (
        "```console\n$ cat > a.yml <<'END'\nkey: 1   # the first\nEND\n$ inlet inspect a   # exits 3\n```\n$ no block\n"
    )
    file = "cat > a.yml <<'END'\nkey: 1   # the first\nEND"
    assert readme.commands(page) == [(file, 0), ("inlet inspect a   # exits 3", 3)]


def test_a_line_that_no_command_prints_is_missing():
    page = "```text\norders  2 rows at 2026-01-05 09:00:00\nnot this\n```\n"
    assert readme.not_printed(page, "orders 2   rows at 2026-11-11 10:10:10\n") == ["not this"]


def test_commands_in_one_process_end_and_print_as_in_a_shell(tmp_path):
    """In a process whose other commands failed before, too."""
    (tmp_path / "made").mkdir()
    steps = ["inlet status   # exits 2", "inlet decode made/none --project made", "inlet --version", "inlet dcode"]
    with readme.in_few_processes() as execute:
        for command in steps:
            here, there = execute(command, tmp_path), readme.in_shell(command, tmp_path)
            assert (here.returncode, here.stdout, here.stderr) == (there.returncode, there.stdout, there.stderr)
