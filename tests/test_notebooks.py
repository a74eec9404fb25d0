"""The walk-throughs: each runs on the demo's lakehouse, and what the repository shows of it is there."""

import os
import re
from pathlib import Path

import pytest

from infra.local import notebooks

ROOT = Path(__file__).resolve().parents[1]
DEMO = Path(os.environ.get("INLET_DEMO", ROOT))  # a project whose demo has run


def test_each_notebook_is_a_script_in_cells_without_outputs():
    for name in notebooks.NAMES:
        text = (notebooks.NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8")
        assert "format_name: percent" in text and text.count("# %%") > 10
        assert "image/png" not in text


def test_each_notebook_has_a_page_whose_pictures_are_there():
    for name in notebooks.NAMES:
        page = (notebooks.PAGES / f"{name}.md").read_text(encoding="utf-8")
        pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page)
        assert pictures and all((notebooks.PAGES / picture).exists() for picture in pictures)
        assert "\x1b[" not in page and "Traceback" not in page
    assert sum(file.stat().st_size for file in notebooks.PAGES.iterdir()) < 1 << 20


@pytest.mark.proof
@pytest.mark.gate
def test_the_analyst_runs(tmp_path):
    executes("analyst", tmp_path)


@pytest.mark.proof
@pytest.mark.parametrize("name", ["engineer", "auditor"])
def test_the_others_run(name, tmp_path):
    executes(name, tmp_path)


def executes(name: str, folder: Path) -> None:
    """Execute a notebook on the demo's lakehouse, and compare its page with the one that is shown, but for pictures."""
    if not (DEMO / "lakehouse" / "gold").is_dir():
        pytest.skip(f"takes minutes: make proof, behind make demo: {DEMO} has no lakehouse")
    notebooks.write(name, notebooks.execute(name, DEMO), folder)
    made = (folder / f"{name}.md").read_text(encoding="utf-8").splitlines()
    shown = (notebooks.PAGES / f"{name}.md").read_text(encoding="utf-8").splitlines()
    assert made == shown
