"""Files that come again under their names, as `inlet run` finds them: loads whose files have the names of an earlier
one, and files that were refused under other settings.
"""

import json
from hashlib import sha256

from inlet.bronze.files import unpacked_name
from inlet.bronze.framing import attempt
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.config import Project
from inlet.source import Source
from inlet.table import fingerprint

REWRITTEN = "file_rewritten"
SETTINGS = "settings"  # member of a problem: those under which a file was refused


def is_new_load(source: Source, path: str, companions: dict[str, dict], known: dict | None) -> bool:
    """Is a file that was landed before one of another full load now? In: its last row of bronze.files without a
    problem.
    """
    codec = CODECS[source.codec]
    if known is None or not offers(codec, "load_now"):
        return False
    now = attempt(codec.load_now, unpacked_name(path), companions, source)
    return isinstance(now, str) and now != codec.load_of(json.loads(known["context"] or "{}"))


def table_of_load(source: Source, known: dict | None) -> str | None:
    """SCHEMA.TABLE of a landed file of a load, of a codec whose loads have the same names again. In: a row of
    bronze.files.
    """
    codec, context = CODECS[source.codec], json.loads((known or {}).get("context") or "{}")
    is_of_load = offers(codec, "load_now") and codec.load_of(context) is not None
    return codec.table_of_load(context) if is_of_load else None


def was_rewritten(source: Source, row: dict, known: dict | None) -> bool:
    """Has a file of a load other bytes than it had, of a codec whose loads have the same names again? In: a row of
    bronze.files; the last one of the file without a problem.
    """
    return _problem(row).get("kind") == REWRITTEN and table_of_load(source, known) is not None


def waits_for_load(source: Source) -> str:
    """What such a file waits for."""
    return (
        f"what says that it is of a new load, for settle_minutes ({source.settle_minutes:g}): its bytes are not those "
        "that were landed before"
    )


def settings_of(project: Project, source: Source) -> str:
    """What decides besides a file whether it can be read: options, `tables`, contracts."""
    prints = {name: fingerprint(table) for name, table in project.tables_of(source).items()}
    told = json.dumps([source.options, source.mapping, prints], sort_keys=True, default=str)
    return sha256(told.encode()).hexdigest()[:16]


def has_other_settings(project: Project, source: Source, row: dict) -> bool:
    """Was a file refused under other settings than those of now? In: a row of bronze.files."""
    settings = _problem(row).get(SETTINGS)
    return settings is not None and settings != settings_of(project, source)


def _problem(row: dict) -> dict:
    return json.loads(row["problem"]) if row["problem"] else {}
