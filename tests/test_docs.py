"""Anything registered is documented, generated pages are fresh, and the README only shows commands that exist."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

from infra.local import docs, readme
from inlet import config
from inlet.cli import app
from inlet.codecs import CODECS
from inlet.commands.next_steps import NEXT_STEPS
from inlet.errors import REJECT_KINDS
from inlet.gold import generate
from inlet.source import Source
from inlet.table import Table
from inlet.table_column import TableColumn

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = {command.name or command.callback.__name__ for command in app.registered_commands}


def test_generated_pages_are_fresh():
    stale = [
        str(path.relative_to(ROOT))
        for path, text in docs.pages().items()
        if not path.exists() or path.read_text() != text
    ]
    assert stale == [], "run `make docs`"


WITH_EXAMPLES = [
    str(path.relative_to(ROOT / "pipelines")).removesuffix(".py").replace("/", ".")
    for path in sorted((ROOT / "pipelines").rglob("*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_in_docstrings_are_true(module):
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted and not found.failed


def test_generated_models_are_fresh():
    assert generate.stale(config.load(ROOT)) == [], "run `inlet generate`"


def test_every_codec_says_what_it_reads_and_rejects():
    for name, codec in CODECS.items():
        assert re.search(r"^Unit\s", codec.__doc__, re.M) and re.search(r"^Rejects\s", codec.__doc__, re.M), name
        assert (ROOT / "tests" / "cases" / name).is_dir(), name
        assert name in (ROOT / "README.md").read_text()


def test_every_reject_kind_a_codec_makes_is_known():
    source = "\n".join(path.read_text() for path in (ROOT / "pipelines" / "inlet" / "codecs").rglob("*.py"))
    assert set(re.findall(r"(?:Refused|Wrong|Reject|of_file)\(\"([a-z_0-9]+)\"", source)) <= set(REJECT_KINDS)


def test_every_reject_kind_has_a_next_step_of_one_line():
    assert NEXT_STEPS.keys() == REJECT_KINDS.keys()
    assert not [kind for kind, step in NEXT_STEPS.items() if "\n" in step or len(step) > 220]
    assert not [step for step in NEXT_STEPS.values() if re.search("rejects --close", step)]  # it needs a choice


def test_the_page_of_symptoms_names_options_commands_and_kinds_that_exist():
    """Of codecs those of the section's family; of sources, and members of a contract, those of their models."""
    common = {*Source.model_fields, *Table.model_fields, *TableColumn.model_fields}
    families = {
        "Any source": "",
        "Qlik Replicate": "qlik",
        "GoldenGate": "goldengate",
        "Fujitsu Linkexpress": "linkexpress",
    }
    page = (ROOT / "docs" / "symptoms.md").read_text()
    for section in page.split("\n## ")[1:]:
        family = families[section.split("\n", 1)[0]]
        options = {o for name, codec in CODECS.items() if name.startswith(family) for o in codec.OPTIONS.model_fields}
        for row in re.findall(r"^\| (?!you see|---)(.+) \| (.+) \|$", section, re.M):
            words = {word.split(":")[0] for word in re.findall(r"`([a-z_]+(?:: [^`]*)?)`", row[1])}
            assert words <= options | common | {"public", "seqno", "null", "from", "transport"}, (family, row)
            assert set(re.findall(r"`([a-z]+_[a-z_]+)`", row[0])) <= set(REJECT_KINDS), row
        assert {words for words in re.findall(r"`inlet ([a-z-]+)", section)} <= COMMANDS


def test_every_command_has_help_and_every_command_of_the_readme_exists():
    for command in app.registered_commands:
        assert command.callback.__doc__, command.callback.__name__
    shown = {
        line.split()[line.split().index("inlet") + 1]
        for line, _ in readme.commands((ROOT / "README.md").read_text())
        if "inlet " in line
    }
    assert shown <= COMMANDS and {"status", "rejects", "decode", "sql", "run", "doctor", "generate", "init"} <= shown


def test_links_between_pages_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", re.sub(r"(?s)```.*?```|`[^`]+`", "", page.read_text())):
            assert (page.parent / target).exists(), f"{page.name} -> {target}"


CITING = ("pipelines", "dbt", "infra", "expectations", "tests", "notebooks")  # folders whose files cite pages by name
CITED = re.compile(r"docs/[\w/.-]+\.md(?:#([\w-]+))?")


def anchors(page: str) -> set[str]:
    """The anchors of a page, as GitHub makes them of headings."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"(?ms)^```.*?^```", "", page), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_pages_that_files_cite_are_there():
    files = [
        path
        for folder in CITING
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".yml", ".py", ".sql") and path.is_file() and "target" not in path.parts  # which dbt makes
    ]
    assert any(path.parent.parent.name == "cases" for path in files)
    wrong = []
    for path in files:
        for cited in CITED.finditer(path.read_text(encoding="utf-8")):
            page = ROOT / cited[0].partition("#")[0]
            if not page.exists() or cited[1] and cited[1] not in anchors(page.read_text(encoding="utf-8")):
                wrong.append(f"{path.relative_to(ROOT)} -> {cited[0]}")
    assert wrong == []
