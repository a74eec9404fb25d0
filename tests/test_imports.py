"""Imports go one way, and the core is pure: fields and codecs import no Spark, open no file, read no clock."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pipelines" / "inlet"
PURE = sorted([*PACKAGE.glob("fields/*.py"), *PACKAGE.glob("codecs/*.py"),
               *(PACKAGE / f"{name}.py" for name in ("errors", "change", "unit", "table", "sql"))])
FORBIDDEN_MODULES = {"pyspark", "delta", "os", "io", "pathlib", "shutil", "socket", "subprocess", "time", "fsspec", "random"}
FORBIDDEN_CALLS = {"open", "now", "utcnow", "today", "perf_counter", "read_text", "read_bytes"}
ABOVE = {"fields": {"inlet.fields", "inlet.errors"},           # what a floor of the house may import of it
         "codecs": {"inlet.codecs", "inlet.fields", "inlet.errors", "inlet.change", "inlet.unit", "inlet.table", "inlet.sql", "inlet.config"}}


def imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or ""} | ({f"inlet.{alias.name}" for alias in node.names} if node.module == "inlet" else set())
    return names - {"inlet"}


@pytest.mark.parametrize("path", PURE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_core_is_pure(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {name.split(".")[0] for name in imported(tree)}
    calls = {getattr(node.func, "attr", getattr(node.func, "id", "")) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not modules & FORBIDDEN_MODULES
    assert not calls & FORBIDDEN_CALLS


@pytest.mark.parametrize("path", PURE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    allowed = ABOVE.get(path.parent.name, {"inlet.errors", "inlet.change", "inlet.unit", "inlet.table", "inlet.sql"})
    ours = {name for name in imported(ast.parse(path.read_text(encoding="utf-8"))) if name.startswith("inlet.")}
    assert all(any(name == a or name.startswith(a + ".") for a in allowed) for name in ours), ours


def test_the_codec_runs_without_spark():
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import inlet.codecs.linkexpress_group; "
            "assert not any(m.split('.')[0] == 'pyspark' for m in sys.modules)")
    subprocess.run([sys.executable, "-c", code, str(PACKAGE.parent)], check=True)
