"""Where a lakehouse folder was when its catalog was made. The catalog holds absolute paths: of a folder that was copied
it names the tables of the original, and of one that was moved tables that are gone (relocate.py writes them again).

The catalog of a lakehouse in a store lies on this machine (`home`), and is a copy that each machine makes for itself
from what the store holds.

`_place` in the folder says where it was, so a run with nothing new need not ask the catalog. Lakehouses of earlier
releases have no such file until a session opens them: the locations of Inlet's databases are read from the bytes of
Derby's files, which hold them as plain text, in a row or in the log of one.
"""

import os
import re
import shutil
import socket
import uuid
import zlib
from pathlib import Path

from inlet import storage
from inlet.errors import ConfigError
from inlet.lake import beside

FILE, CATALOG = "_place", "_catalog"
LOCATION = re.compile(rb"file:(/[^\x00-\x1f]*?)/(?:bronze|silver|gold|checks|public)(?![\w.])")


def home(lakehouse: str) -> Path:
    """The folder that has the catalog of a lakehouse, which is this machine's. In: its absolute path or address."""
    if storage.is_local(lakehouse):
        return Path(lakehouse)
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", lakehouse)[-80:].strip("-.")
    return beside.of_user() / "catalogs" / f"{name}-{zlib.crc32(lakehouse.encode()):08x}"


def forget_former(lakehouse: str, table_id: str) -> None:
    """Remove the catalog of a lakehouse in a store that was emptied and made again: it names versions of tables that
    are gone. In: the id of a table that every lakehouse has; "" where there is none."""
    file = home(lakehouse) / "_lakehouse"
    if file.exists() and file.read_text() != table_id:
        shutil.rmtree(home(lakehouse) / CATALOG, ignore_errors=True)
        file.unlink()


def note_id(lakehouse: str, table_id: str) -> None:
    """Note of which lakehouse in a store the catalog is, for `forget_former`."""
    (home(lakehouse) / "_lakehouse").write_text(table_id)


def machine(lakehouse: str) -> str:
    """What tells the folder that has the catalog from those of other machines, also of copies of this one."""
    file, boot = home(lakehouse) / "_machine", Path("/proc/sys/kernel/random/boot_id")
    if not file.exists():
        new = file.with_name(f"_machine.{os.getpid()}")
        new.write_text(uuid.uuid4().hex)
        new.replace(file)
    return f"{file.read_text()} {socket.gethostname()} {boot.read_text().strip() if boot.exists() else ''}"


def check(lakehouse: str) -> None:
    """In: the absolute path of a lakehouse folder, or a URL, whose catalog is not in it. Raises: ConfigError where the
    catalog in the folder is of another place.
    """
    if has_catalog(lakehouse) and (places := _places(lakehouse)) and not any(_is(p, lakehouse) for p in places):
        raise ConfigError(
            f"{lakehouse} was copied or moved: its catalog names the tables of {places[0]}",
            "`inlet relocate` makes the catalog name the tables of this folder; a lakehouse at the other place stays "
            "as it is",
        )


def remember(lakehouse: str) -> None:
    """Write where the lakehouse is, unless the file says so. In: one that `check` passed, or whose catalog is new."""
    if has_catalog(lakehouse) and not ((Path(lakehouse) / FILE).exists() and _is(_places(lakehouse)[0], lakehouse)):
        write(lakehouse)


def write(lakehouse: str) -> None:
    path = Path(lakehouse) / FILE
    written = path.with_name(f"{FILE}.{os.getpid()}")
    written.write_text(f"{lakehouse}\n", encoding="utf-8")
    written.replace(path)


def has_catalog(lakehouse: str) -> bool:
    """Is its catalog in the folder, and made?"""
    return storage.is_local(lakehouse) and (Path(lakehouse) / CATALOG).exists()


def _places(lakehouse: str) -> list[str]:
    """The folders whose tables the catalog may name; none where it names none of Inlet's yet."""
    try:
        return [(Path(lakehouse) / FILE).read_text(encoding="utf-8").rstrip("\n")]
    except FileNotFoundError:
        folders = [Path(lakehouse) / CATALOG / name for name in ("seg0", "log")]
        files = [file.read_bytes() for folder in folders for file in folder.glob("*.dat")]
        if any(f"file:{lakehouse}/{name}".encode() in file for file in files for name in ("bronze", "silver", "gold")):
            return [lakehouse]
        return sorted({place[1].decode("utf-8", "replace") for file in files for place in LOCATION.finditer(file)})


def _is(place: str, lakehouse: str) -> bool:
    """Is it the same folder, maybe by another path?"""
    try:
        return place == lakehouse or os.path.samefile(place, lakehouse)
    except OSError:
        return False
