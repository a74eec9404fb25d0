"""Compiled code is kept between processes, and compiled anew when any compiled source has changed. Numba by itself
looks only at the file of the function that is kept: what it inlined from another file would stay as it was.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)

PACKAGE = files("inlet")
FOLDERS = ("fields", "codecs")  # where compiled functions may be
FUNCTIONS: dict[tuple[str, str], Any] = {}  # by module and name
MARK = b"inlet.fields.compiled"  # in each module that has compiled functions or lies here


def sources() -> list[Traversable]:
    """The modules whose functions are compiled, in a folder or in the zip that Spark's workers were sent."""
    here = PACKAGE / "fields" / "compiled"
    among = [path for folder in FOLDERS for path in _modules(PACKAGE / folder) if MARK in path.read_bytes()]
    return sorted({str(path): path for path in [*_modules(here), *among]}.values(), key=str)


def _modules(folder: Traversable) -> Iterator[Traversable]:
    for path in folder.iterdir():
        if path.is_dir():
            yield from _modules(path)
        elif path.name.endswith(".py"):
            yield path


@cache
def stamp() -> str:
    """What all compiled sources are, as one hash."""
    digest = hashlib.sha256()
    for path in sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


class ByStamp(UserWideCacheLocator):
    """Where code is kept whose module lies in a zip, or in a folder that this user may not write to: by `stamp`, for a
    zip has another path in each session. Below NUMBA_CACHE_DIR or ~/.cache, else in the folder for temporary files."""

    def __init__(self, py_func, py_file):
        super().__init__(py_func, py_file)
        self._cache_path = str(_folder() / stamp() / py_func.__module__)

    def get_source_stamp(self):
        return stamp()

    @classmethod
    def from_function(cls, py_func, py_file):
        locator = cls(py_func, py_file)
        locator.ensure_cache_path()
        return locator


@cache
def _folder() -> Path:
    """Raises: OSError where no place can be written to, or another user may write to the last: code is loaded from
    there."""
    caches = (config.CACHE_DIR, os.environ.get("XDG_CACHE_HOME"), os.path.expanduser("~/.cache"))
    for place in caches:
        if place and os.path.isabs(place):  # without a home `~` stays
            with suppress(OSError):
                (folder := Path(place) / "inlet").mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=folder).close()
                return folder
    folder = Path(tempfile.gettempdir()) / f"inlet-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
        raise PermissionError(f"{folder} is not a folder that only this user writes to")
    return folder


class _Kept(CompileResultCacheImpl):
    _locator_classes = [UserProvidedCacheLocator, InTreeCacheLocator, ByStamp]


class SourcesCache(FunctionCache):
    """Numba's cache of one function, which holds for this `stamp` alone."""

    _impl_class = _Kept

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
