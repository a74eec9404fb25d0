"""A new user's way: docs/first_source.md, word for word, in an empty folder."""

from pathlib import Path

import pytest

from infra.local import readme

PAGE = Path(__file__).resolve().parents[1] / "docs" / "first_source.md"


@pytest.mark.spark
def test_the_page_of_the_first_source_does_what_it_shows(tmp_path):
    assert readme.run(PAGE.read_text(encoding="utf-8"), tmp_path) == 0


def test_a_command_is_what_follows_the_prompt_up_to_the_next_one():
    page = "```console\n$ cat > a.yml <<'END'\nkey: 1   # the first\nEND\n$ inlet inspect a   # exits 3\n```\n$ no block\n"
    assert readme.commands(page) == [("cat > a.yml <<'END'\nkey: 1   # the first\nEND", 0), ("inlet inspect a   # exits 3", 3)]


def test_a_line_that_no_command_prints_is_missing():
    page = "```text\norders  2 rows at 2026-01-05 09:00:00\nnot this\n```\n"
    assert readme.not_printed(page, "orders 2   rows at 2026-11-11 10:10:10\n") == ["not this"]
