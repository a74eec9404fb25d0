"""Compiled code is kept between processes, and compiled anew when any compiled source has changed. Numba by itself
looks only at the file of the function that is kept: what it inlined from another file would stay as it was.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

PACKAGE = Path(__file__).resolve().parents[2]
FOLDERS = ("fields", "codecs")  # where compiled functions may be
FUNCTIONS: dict[tuple[str, str], Any] = {}  # by module and name
MARK = b"inlet.fields.compiled"  # in each module that has compiled functions or lies here


def sources() -> list[Path]:
    """The modules whose functions are compiled."""
    here = Path(__file__).parent
    among = [path for folder in FOLDERS for path in (PACKAGE / folder).rglob("*.py")]
    return sorted({*here.glob("*.py"), *(path for path in among if MARK in path.read_bytes())})


@cache
def stamp() -> str:
    """What all compiled sources are, as one hash."""
    digest = hashlib.sha256()
    for path in sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


class SourcesCache(FunctionCache):
    """Numba's cache of one function, which holds for this `stamp` alone."""

    def __init__(self, py_func):
        super().__init__(py_func)
        self._cache_file._source_stamp = stamp()


def compiled(**options):
    """As `numba.njit(cache=True, **options)`, with this cache."""

    def decorate(py_func):
        dispatcher = njit(**options)(py_func)
        dispatcher._cache = SourcesCache(py_func)
        FUNCTIONS[py_func.__module__, py_func.__qualname__] = dispatcher
        return dispatcher

    return decorate


def called() -> dict[tuple[str, str], list]:
    """The functions whose code this process has loaded, by module and name: the types of their arguments."""
    return {name: function.signatures for name, function in FUNCTIONS.items() if function.signatures}


def load(functions: Mapping[tuple[str, str], Sequence]) -> None:
    """Load code of functions without calling them. In: as `called` gives it, of another process."""
    for module, name in functions:
        import_module(module)
        for signature in functions[module, name]:
            FUNCTIONS[module, name].compile(signature)
