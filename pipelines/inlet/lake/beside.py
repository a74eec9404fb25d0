"""Folders that are made once and kept: next to the virtual environment jars and compiled classes, in the home of the
user catalogs of lakehouses in stores."""

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from inlet.errors import EnvironmentLacks


def folder(name: str) -> Path:
    return Path(sys.prefix) / "share" / "inlet" / name


def of_user() -> Path:
    """The folder of what Inlet keeps for this user on this machine. Raises: EnvironmentLacks."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "inlet"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentLacks(
            f"{folder} cannot be made: {error.strerror}", "Name another place in XDG_STATE_HOME"
        ) from error
    return folder


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
