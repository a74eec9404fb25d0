"""Folders that are made once and kept beside the virtual environment: jars, compiled classes."""

import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from inlet.errors import EnvironmentLacks


def folder(name: str) -> Path:
    return Path(sys.prefix) / "share" / "inlet" / name


@contextmanager
def made(folder: Path):
    """Out: an empty folder, to be filled; it is renamed when that is done, so that nobody sees half of it. Raises:
    EnvironmentLacks where nothing can be written."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        around = tempfile.TemporaryDirectory(dir=folder.parent)
    except OSError as error:
        raise EnvironmentLacks(
            f"{folder.parent} cannot be written: {error.strerror}", "Give this user the right to it"
        ) from error
    with around as name:
        filling = Path(name) / folder.name
        filling.mkdir()
        yield filling
        try:
            filling.rename(folder)
        except OSError:  # another process was first
            if not folder.exists():
                raise
