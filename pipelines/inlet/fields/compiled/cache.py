"""Compiled code is kept between processes, and compiled anew when any compiled source has changed. Numba by itself
looks only at the file of the function that is kept: what it inlined from another file would stay as it was.
"""

import hashlib
from functools import cache
from pathlib import Path

from numba import njit
from numba.core.caching import FunctionCache

PACKAGE = Path(__file__).resolve().parents[2]
FOLDERS = ("fields", "codecs")  # where compiled functions may be
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
        return dispatcher

    return decorate
