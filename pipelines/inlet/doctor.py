"""`inlet doctor`: what is missing or wrong here, each with its remedy in one sentence."""

import re
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import fsspec

from inlet import config, generate, versions
from inlet.errors import ConfigError, EnvironmentLacks, InletError
from inlet.spark import _jar_setting, check_java

NEEDS_GB = 2


@dataclass(frozen=True)
class Finding:
    what: str
    is_good: bool
    found: str
    remedy: str = ""
    exit_code: int = EnvironmentLacks.exit_code


def examine(root: Path) -> Iterator[Finding]:
    """All findings, good ones too, in the order in which one would mend them."""
    yield Finding("python", sys.version_info >= (3, 11), sys.version.split()[0], "Install Python 3.11 or later")
    try:
        yield Finding("java", True, check_java())
    except EnvironmentLacks as error:
        yield Finding("java", False, error.message, error.remedy)
    is_resolved = "spark.jars" in _jar_setting()
    yield Finding("jars", True, "resolved" if is_resolved else "will be resolved from Maven Central at the first start")
    yield _loopback()
    try:
        project = config.load(root)
    except ConfigError as error:
        yield Finding("project", False, error.message, error.remedy, error.exit_code)
        return
    yield Finding("project", True, f"{project.root.name}: {len(project.sources)} sources, {len(project.tables)} tables")
    yield from _lakehouse(project)
    for source in project.sources.values():
        yield _source(project, source)
    yield _columns(project)
    stale = generate.stale(project)
    yield Finding("models", not stale, f"{len(stale)} generated files are stale" if stale else "fresh",
                  "Run `inlet generate`", ConfigError.exit_code)


def _loopback() -> Finding:
    """Spark's driver listens on a free port of the loopback interface."""
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return Finding("ports", True, "a free port on 127.0.0.1")
    except OSError as error:
        return Finding("ports", False, f"no port can be opened on 127.0.0.1: {error}",
                       "Allow this user to listen on the loopback interface")


def _lakehouse(project) -> Iterator[Finding]:
    path = project.lakehouse_path()
    if "://" in path:
        yield Finding("lakehouse", True, path)
        return
    folder = Path(path)
    there = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(there).free / 1e9
    yield Finding("disk", free >= NEEDS_GB, f"{free:.1f} GB free at {project.lakehouse}", f"Make room for {NEEDS_GB} GB")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".inlet-doctor").write_text("")
        (folder / ".inlet-doctor").unlink()
        yield Finding("lakehouse", True, f"{project.lakehouse} can be written")
    except OSError as error:
        yield Finding("lakehouse", False, f"{project.lakehouse} cannot be written: {error.strerror}", "Give this user the right to write it")


def _columns(project) -> Finding:
    """Contracts against the column lists that silver has read changes by."""
    try:
        versions.check(project)
    except ConfigError as error:
        return Finding("columns", False, error.message, error.remedy, error.exit_code)
    return Finding("columns", True, "as changes were read so far")


def _source(project, source) -> Finding:
    try:
        fs, pattern = fsspec.core.url_to_fs(project.resolve(source.path))
        folder = re.split(r"/[^/]*[*?\[]", pattern)[0]
        if "file" in fs.protocol and not fs.isdir(folder):
            return Finding(f"source {source.name}", False, f"{source.path}: there is no folder {Path(folder).name}",
                           "Make it, or mend `from` in pipelines/inlet.yml", ConfigError.exit_code)
        num = len(fs.glob(pattern if any(c in pattern for c in "*?[") else pattern.rstrip("/") + "/*"))
    except (OSError, ImportError, ValueError, InletError) as error:
        return Finding(f"source {source.name}", False, f"{source.path}: {error}", "Mend `from` in pipelines/inlet.yml",
                       ConfigError.exit_code)
    return Finding(f"source {source.name}", True, f"{num} files at {source.path}" + ("" if num else " (nothing delivered yet)"))
