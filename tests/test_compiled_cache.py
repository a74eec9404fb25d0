"""Compiled code is compiled anew when another file has changed whose function it has inlined."""

import os
import shutil
import subprocess
import sys
import sysconfig

import pytest

from inlet.lake import engine

INLINED = "from {module} import {name}\n\n@{name}({options})\ndef one():\n    return {number}\n"
KEPT = "from {module} import {name}\nfrom inlined import one\n\n@{name}({options})\ndef two():\n    return one() + 1\n"
RUN = """
import sys
from pathlib import Path
from inlet.fields.compiled import cache
cache.sources = lambda: sorted(Path(sys.argv[1]).glob("*.py"))
import kept
print(kept.two())
"""
IN_ZIP = """
import numpy as np
from inlet.codecs.linkexpress.frame import walk
walk(np.zeros(4, np.uint8), False, 4, 8, np.zeros(2, np.int64))
counts = (sum(count.values()) for count in (walk.stats.cache_hits, walk.stats.cache_misses))
print(".zip" in walk.py_func.__code__.co_filename, *counts)
"""
OURS = ("inlet.fields.compiled.cache", "compiled", "_nrt=False")
NUMBAS = ("numba", "njit", "cache=True, _nrt=False")


def answers(folder, module: str, name: str, options: str) -> list[str]:
    """What the kept function says in three processes; between the last two the inlined one has changed."""
    found = []
    (folder / "kept.py").write_text(KEPT.format(module=module, name=name, options=options))
    for number in (1, 1, 10):
        (folder / "inlined.py").write_text(INLINED.format(module=module, name=name, options=options, number=number))
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "NUMBA_CACHE_DIR": ""}
        done = subprocess.run([sys.executable, "-c", RUN, folder], capture_output=True, text=True, env=environment)
        found.append(done.stdout.strip() or done.stderr)
    return found


@pytest.mark.parametrize(
    ("how", "expected"), [(OURS, ["2", "2", "11"]), (NUMBAS, ["2", "2", "2"])], ids=["ours", "numba"]
)
@pytest.mark.slow
def test_an_edit_in_another_file_is_noticed(tmp_path, how, expected):
    """Numba's own cache, the control, gives the answer of before."""
    assert answers(tmp_path, *how) == expected
    assert list(tmp_path.glob("__pycache__/kept.two-*.nbc")), "nothing was kept"


def test_every_module_with_compiled_functions_is_among_the_sources():
    from inlet.fields.compiled import cache

    importing = {path for path in cache.PACKAGE.rglob("*.py") if "numba" in path.read_text()}
    assert {path.name for path in importing} - {path.name for path in cache.sources()} <= {"warm.py"}


@pytest.mark.slow
def test_spark_workers_keep_the_code_of_a_package_that_was_sent(tmp_path):
    """Each session sends a zip to a path of its own; the home folder is not there, as on a server."""
    packages, outputs = sysconfig.get_path("purelib"), []
    (tmp_path / "tmp").mkdir()
    for number in (1, 2):
        (sent := tmp_path / f"session_{number}").mkdir()
        zip_ = shutil.copy(engine.package(), sent)
        environment = {
            "PYTHONPATH": os.pathsep.join([zip_, packages]),
            "HOME": "/dev/null",
            "TMPDIR": f"{tmp_path}/tmp",
        }
        done = subprocess.run([sys.executable, "-S", "-c", IN_ZIP], capture_output=True, text=True, env=environment)
        outputs.append(done.stdout.strip() or done.stderr)
    assert outputs == ["True 0 1", "True 1 0"]  # compiled, then loaded
