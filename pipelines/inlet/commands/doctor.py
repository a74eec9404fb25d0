"""`inlet doctor`: what is missing or wrong here, each with its remedy in one sentence."""

import difflib
import shutil
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inlet import bronze, config, lake, silver, storage, store_errors
from inlet.bronze import kafka, load_times
from inlet.bronze.companions import companions_of
from inlet.bronze.files import listing, unpacked_name
from inlet.bronze.foreign import foreign_files
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.commands import decode, import_definitions, rejects
from inlet.config import Project
from inlet.errors import ConfigError, EnvironmentLacks, InletError
from inlet.gold import generate
from inlet.lake import connect, engine, jars, place
from inlet.lake.java import check_java, check_pyspark
from inlet.log import counted
from inlet.silver import recover, table_versions
from inlet.source import Source

NEEDS_GB = 2


@dataclass(frozen=True)
class Finding:
    what: str
    is_good: bool
    found: str
    remedy: str = ""
    exit_code: int = EnvironmentLacks.exit_code
    is_note: bool = False  # good, and yet something to know


def examine(root: Path) -> Iterator[Finding]:
    """All findings, good ones too, in the order in which one would fix them."""
    yield Finding("python", sys.version_info >= (3, 11), sys.version.split()[0], "Install Python 3.11 or later")
    yield from _server() if engine.is_given() else _embedded()
    try:
        project = config.load(root)
    except ConfigError as error:
        yield Finding("project", False, error.message, error.remedy, error.exit_code)
        return
    sources, tables = counted(len(project.sources), "source"), counted(len(project.tables), "table")
    yield Finding("project", True, f"{project.root.name}: {sources}, {tables}")
    if not project.tables:
        yield Finding("tables", False, *import_definitions.no_tables(project), ConfigError.exit_code)
    of_lakehouse = list(_lakehouse(project))
    yield from of_lakehouse
    if not storage.is_local(project.lakehouse_path()) and not of_lakehouse[0].is_good:
        return  # all that follows reads it
    for source in project.sources.values():
        yield _source(project, source)
        if notice := load_times.notice(source):
            yield Finding(f"full loads of {source.name}", True, notice, is_note=True)
    yield _columns(project)
    yield from _batches(project)
    yield from _rejects(project)
    for table in project.tables.values():
        if table.without_key:
            yield Finding("key", True, table.without_key)
    stale = generate.stale(project)
    yield Finding(
        "models",
        not stale,
        f"{len(stale)} generated files are stale" if stale else "fresh",
        "Run `inlet generate`",
        ConfigError.exit_code,
    )


def _embedded() -> Iterator[Finding]:
    """Of a Spark that Inlet starts."""
    for what, check in (("spark", check_pyspark), ("java", check_java)):
        try:
            yield Finding(what, True, check())
        except EnvironmentLacks as error:
            yield Finding(what, False, error.message, error.remedy)
            break
    yield Finding(
        "jars", True, "resolved" if jars.are_resolved() else "will be resolved from Maven Central at the first start"
    )
    yield _loopback()


def _server() -> Iterator[Finding]:
    try:
        yield Finding("spark", True, check_pyspark())
        if engine.is_platform():
            yield Finding("spark session", True, "is Databricks'")
            return
        yield Finding("spark connect", True, f"{connect.check_server()} answers")
    except InletError as error:
        yield Finding("spark connect", False, error.message, error.remedy, error.exit_code)


def _loopback() -> Finding:
    """Spark's driver listens on a free port of the loopback interface."""
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return Finding("ports", True, "a free port on 127.0.0.1")
    except OSError as error:
        return Finding(
            "ports",
            False,
            f"no port can be opened on 127.0.0.1: {error}",
            "Allow this user to listen on the loopback interface",
        )


def _lakehouse(project: Project) -> Iterator[Finding]:
    path = project.lakehouse_path()
    if not storage.is_local(path):
        try:
            lake.exists(path, "bronze.files")
            yield Finding("lakehouse", True, f"{path} can be read")
        except OSError as error:
            if (of_store := store_errors.worded(error)) is None:
                raise
            yield Finding("lakehouse", False, of_store.message, of_store.remedy, of_store.exit_code)
        return
    folder = Path(path)
    there = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(there).free / 1e9
    yield Finding(
        "disk", free >= NEEDS_GB, f"{free:.1f} GB free at {project.lakehouse}", f"Make room for {NEEDS_GB} GB"
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".inlet-doctor").write_text("")
        (folder / ".inlet-doctor").unlink()
        yield Finding("lakehouse", True, f"{project.lakehouse} can be written")
    except OSError as error:
        yield Finding(
            "lakehouse",
            False,
            f"{project.lakehouse} cannot be written: {error.strerror}",
            "Give this user the right to write it",
        )
    try:
        place.check(path)
    except ConfigError as error:
        yield Finding("catalog", False, error.message, error.remedy, error.exit_code)


def _batches(project: Project) -> Iterator[Finding]:
    """Batches that are not finished. Nothing is wrong with them, the next run decodes each from the beginning, unless
    lines of the ledger are gone.
    """
    past = bronze.History(project)
    for batch_id in past.unfinished():
        try:
            silver.check_ledger(project, batch_id, past.of_batch(batch_id))
        except InletError as error:
            yield Finding(f"batch {batch_id}", False, error.message, error.remedy, error.exit_code)
            continue
        tables = recover.begun(project, batch_id)
        yield Finding(
            f"batch {batch_id}",
            True,
            "landed, not decoded"
            if not tables
            else f"begun in {', '.join(tables)} and not finished; the next `inlet run` deletes that and decodes it "
            "from the beginning",
        )


def _rejects(project: Project) -> Iterator[Finding]:
    """Records that nobody has decoded yet. Data may be wrong and a run is right: they are said, and fail nothing."""
    kinds: Counter[str] = Counter()
    for (_, kind), num in rejects.open_rejects(project).items():
        kinds[kind] += num
    if kinds:
        named = ", ".join(f"{num:,} {kind}" for kind, num in kinds.most_common())
        yield Finding(
            "rejects",
            True,
            f"{counted(kinds.total(), 'record')} rejected ({named}); `inlet rejects` says why, and what decodes each "
            "again",
        )


def _columns(project: Project) -> Finding:
    """Contracts against the column lists that silver has read changes by."""
    try:
        table_versions.check(project)
    except ConfigError as error:
        return Finding("columns", False, error.message, error.remedy, error.exit_code)
    return Finding("columns", True, "as changes were read so far")


def _source(project: Project, source: Source) -> Finding:
    what, fix = f"source {source.name}", "Fix `from` in pipelines/inlet.yml"
    codec = CODECS[source.codec]
    try:
        if offers(codec, "check"):
            codec.check(source, project.tables_of(source))
    except ConfigError as error:
        return Finding(what, False, error.message, error.remedy, error.exit_code)
    try:
        if source.broker:
            return _broker(what, project, source)
        folder = project.folder(source)[0] if storage.is_local(source.path) else ""
        if folder and not Path(folder).is_dir():
            what_kind = "file" if Path(folder).suffix else "folder"
            no_folder = f"{source.path}: there is no {what_kind} {Path(folder).name}"
            if meant := _lookalike(project, Path(folder)):
                return Finding(what, False, f"{no_folder}; did you mean {meant}?", fix, ConfigError.exit_code)
            return Finding(what, True, f"{no_folder} yet (nothing delivered)")
        paths = [path for path, _ in listing(project, source)]
        if others := foreign_files(project, source, paths):
            return Finding(what, False, "; ".join(others), fix, ConfigError.exit_code)
        if lacking := _lacking(project, source, paths):
            return Finding(what, False, "; ".join(lacking), "Set what is missing", ConfigError.exit_code)
    except InletError as error:
        return Finding(what, False, error.message, error.remedy, error.exit_code)
    except (OSError, ImportError, ValueError) as error:
        return Finding(what, False, f"{source.path}: {error}", fix, ConfigError.exit_code)
    found = "" if paths else " (nothing delivered yet)"
    if folder and not paths and any(one.is_file() for one in Path(folder).rglob("*")):
        found = f" (files of other names or folders are below {Path(folder).name}; a pattern `**` reads all folders)"
    num_companions = sum(companions_of(source, path) is None for path in paths)
    companions = f" and {num_companions:,} that come with them" if num_companions else ""
    return Finding(what, True, f"{counted(len(paths) - num_companions, 'file')}{companions} at {source.path}{found}")


def _lacking(project: Project, source: Source, paths: list[str]) -> list[str]:
    """What the files of a source cannot be read without, by their names and the first ones of them."""
    codec = CODECS[source.codec]
    if not offers(codec, "preview"):
        return []
    named = {unpacked_name(path): path for path in paths}
    read = [path for path in named if not offers(codec, "ignored") or codec.ignored(path, source) is None]
    found = codec.preview(read, source, project.tables_of(source))
    local = [Path(project.resolve(named[path])) for path in found.samples if storage.is_local(path)]
    return [*found.lacking, *filter(None, (decode.refusal(project, source, file) for file in local))]


def _broker(what: str, project: Project, source: Source) -> Finding:
    """Can it be asked, and does it have what comes behind the last run?"""
    try:
        rows = kafka.plan(source, []).rows
        kafka.plan(source, bronze.History(project).of_partitions(source.name))
    except InletError as error:
        return Finding(what, False, error.message, error.remedy, error.exit_code)
    topics = sorted({row["path"].rpartition("/")[0] for row in rows})
    return Finding(what, True, f"{len(rows)} partitions of {', '.join(topics) or 'no topic'} at {source.path}")


def _lookalike(project: Project, folder: Path) -> str | None:
    """What stands beside a missing folder or file with almost its name, and no source reads it."""
    read = {project.folder(source)[0] for source in project.sources.values() if storage.is_local(source.path)}
    alike = (
        [f.name for f in folder.parent.iterdir() if bool(f.suffix) == bool(folder.suffix) and str(f) not in read]
        if folder.parent.is_dir()
        else []
    )
    return next(iter(difflib.get_close_matches(folder.name, alike, 1)), None)
