"""Imports go one way, folder by folder, and the core is pure: fields and codecs import no Spark, open no file, read no
clock.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pipelines" / "inlet"
CORE = ("errors", "sql", "change", "unit", "table_column", "table", "broker", "source", "log")
LAYERS = [
    CORE,
    ("fields",),
    ("codecs",),
    ("store_errors",),
    ("storage",),
    ("layout",),
    ("config",),
    ("lake",),
    ("bronze", "checks"),
    ("silver",),
    ("gold",),
    ("publish",),
    ("commands",),
    ("cli",),
]  # each imports what stands before it
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
NOT_PURE = (
    PACKAGE / "log.py",
    PACKAGE / "fields" / "compiled" / "cache.py",
)  # it reads the sources it was compiled from
PURE = [
    path
    for path in FILES
    if LEVEL[path.relative_to(PACKAGE).parts[0].removesuffix(".py")] <= LEVEL["codecs"] and path not in NOT_PURE
]
FORBIDDEN_MODULES = {
    "pyspark",
    "delta",
    "os",
    "io",
    "pathlib",
    "shutil",
    "socket",
    "subprocess",
    "time",
    "fsspec",
    "random",
}
FORBIDDEN_CALLS = {"open", "now", "utcnow", "today", "perf_counter", "read_text", "read_bytes"}


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def imported(path: Path) -> set[str]:
    """Modules that a file imports, anywhere in it; `inlet.a.b` for `from inlet.a import b` too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {
                node.module or "",
                *(
                    f"{node.module}.{alias.name}"
                    for alias in node.names
                    if (node.module or "").split(".")[0] == "inlet"
                ),
            }
    return names - {"inlet"}


def ours(path: Path) -> dict[str, Path]:
    """Files of the package that a file imports."""
    found = {}
    for name in imported(path):
        if name.startswith("inlet."):
            place = PACKAGE.joinpath(*name.split(".")[1:])
            for file in (place.with_suffix(".py"), place / "__init__.py"):
                found |= {name: file} if file.exists() else {}
    return found


def test_every_file_has_a_layer():
    assert (
        len(FILES) > 60 and {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES} == LEVEL.keys()
    )


@pytest.mark.parametrize("path", PURE, ids=name_of)
def test_the_core_is_pure(path):
    modules = {name.split(".")[0] for name in imported(path)}
    calls = {
        getattr(node.func, "attr", getattr(node.func, "id", ""))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    }
    assert not modules & FORBIDDEN_MODULES
    assert not calls & FORBIDDEN_CALLS


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_one_way(path):
    def level(file: Path) -> int:
        return LEVEL[file.relative_to(PACKAGE).parts[0].removesuffix(".py")]

    upward = [
        name
        for name, file in ours(path).items()
        if level(file) > level(path)
        or level(file) == level(path)
        and len(path.relative_to(PACKAGE).parts) > 1
        and file.relative_to(PACKAGE).parts[0] != path.relative_to(PACKAGE).parts[0]
    ]
    assert upward == []


def test_one_module_opens_stores_and_tells_addresses_from_paths():
    asks = {name_of(p) for p in FILES if "fsspec" in imported(p) or re.search(r"""["']://["']""", p.read_text("utf-8"))}
    assert asks == {"storage.py", "commands/lineage.py"}  # lineage names the two parts of an address


def test_no_circle_of_imports():
    """Names that a folder offers (its __init__) are imported from other folders alone, so they make no circle."""
    inner = {path: {file for file in ours(path).values() if file.name != "__init__.py"} for path in FILES}
    done: set[Path] = set()

    def visit(path: Path, way: tuple) -> None:
        assert path not in way, " -> ".join(name_of(p) for p in (*way[way.index(path) :], path))
        if path not in done:
            for file in sorted(inner.get(path, ())):
                visit(file, (*way, path))
            done.add(path)

    for path in FILES:
        visit(path, ())


def test_the_codec_runs_without_spark():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import inlet.codecs; "
        "assert not any(m.split('.')[0] == 'pyspark' for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(PACKAGE.parent)], check=True)


OF_A_SESSION = {"_jvm", "_jsc", "_jsparkSession", "_jdf", "sparkContext", "rdd", "newSession", "toJSON"} | {
    "persist",
    "unpersist",
    "createOrReplaceTempView",
    "createTempView",
    "createGlobalTempView",
}  # what Spark Connect refuses, and temporary views, whose names are looked up when a frame runs
ROOMS = {PACKAGE / "lake" / f"{name}.py" for name in ("engine", "entries", "archive")}


@pytest.mark.parametrize("path", [path for path in FILES if path not in ROOMS], ids=name_of)
def test_only_the_engine_reaches_into_a_session(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    reached = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & OF_A_SESSION
    assert not reached
