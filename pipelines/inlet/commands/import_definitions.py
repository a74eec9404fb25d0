"""Column lists for `inlet import`: those that feeds have given (silver.table_versions), or definition files."""

import shlex
from pathlib import Path

from inlet import silver
from inlet.bronze.files import DAMAGED, UNPACK, first_line, why
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.commands import import_settings
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.silver import table_versions

EXAMPLE = "pipelines/tables/example.yml.txt"


def ways_to_contracts(name: str, codec, folder: Path | None = None) -> str:
    """How the tables of a source get their contracts, as commands. In: the source's name and codec; the project, where
    it is not the current folder.
    """
    where = f" --project {shlex.quote(str(folder))}" if folder else ""
    example = folder / EXAMPLE if folder else EXAMPLE
    ways = [f"write a contract for each table, as in {example}"]
    if offers(codec, "definitions_of"):
        ways.insert(0, f"inlet import DEFINITION_FILE --source {name}{where}")
    if offers(codec, "brought"):
        bring = f"inlet run{where} and inlet import --source {name}{where}"
        ways.insert(0, f"{bring}, where the feed brings column lists")
    return ", or ".join(ways)


def ways_of_all(project: Project, source: str | None = None) -> str:
    """The same for all sources of a project, or for one."""
    named = [project.sources[source]] if source else list(project.sources.values())
    if not named:
        return "Add a source to pipelines/inlet.yml"
    return "; ".join(f"{one.name}: {ways_to_contracts(one.name, CODECS[one.codec])}" for one in named)


def no_tables(project: Project) -> tuple[str, str]:
    """That a project has no contracts, and how it gets them."""
    given = sorted({table_of(row) for row in table_versions.seen(project)})
    remedy = f"`inlet import` writes those of {', '.join(given)}, whose column lists the feed gave"
    return "no table has a contract, so nothing is decoded", remedy if given else ways_of_all(project)


def from_feeds(project: Project, source: str | None, table: str | None) -> list[dict]:
    """The definitions that feeds gave, in their order. Raises: ConfigError where there are none, with what there is."""
    given = table_versions.seen(project)
    rows = [row for row in given if source in (None, row["source"]) and table in (None, table_of(row))]
    if rows:
        return rows
    asked = (f" of {table}" if table else "") + (f" in source {source}" if source else "")
    missing = f"No feed has given a column list{asked} yet"
    if others := sorted({f"{table_of(row)} (source {row['source']})" for row in given}):
        raise ConfigError(
            f"{missing}. Column lists were given of {', '.join(others)}",
            "Name one of these, or neither of both options",
        )
    if waiting := silver.pending(project):
        raise ConfigError(
            f"{missing}, and what batch {', '.join(map(str, waiting))} landed is not decoded",
            "`inlet run` decodes it; then import again",
        )
    raise ConfigError(missing, ways_of_all(project, source))


def from_files(project: Project, source: str, files: list[Path]) -> list[dict]:
    """The definitions in files of the vendor, read by the codec of a source. Raises: ConfigError."""
    codec = CODECS[project.sources[source].codec]
    if not offers(codec, "definitions_of"):
        raise ConfigError(f"{project.sources[source].codec} has no definition files", ways_of_all(project, source))
    contents = [(path, content(path)) for path in files]
    as_told = import_settings.as_told(project.sources[source], [(path.name, data) for path, data in contents])
    return _in_order(
        project,
        [
            {
                "source": source,
                "source_schema": d.source_schema,
                "source_table": d.source_table,
                "columns": d.columns,
                "key": d.key,
                "change_seq": d.change_seq,
                "version": d.version,
                "unit_id": str(path),
            }
            for path, data in contents
            for d in codec.definitions_of(data, path.as_posix(), as_told)
        ],
    )


def merged(project: Project, columns: list[dict], row: dict) -> list[dict] | None:
    """The columns that a list and a definition of the same version mean together; None where they differ."""
    codec = CODECS[project.sources[row["source"]].codec]
    return codec.merged(columns, row["columns"]) if offers(codec, "merged") else None


def _in_order(project: Project, rows: list[dict]) -> list[dict]:
    """Definitions of files in the order of their versions, then of their places; what is told again stands once.
    Raises: ConfigError where one version is told in two ways.
    """
    found: list[dict] = []
    for row in sorted(rows, key=lambda row: (table_of(row), row["version"] or 0, row["change_seq"])):
        known = found[-1] if found and table_of(found[-1]) == table_of(row) else None
        is_same_version = known is not None and known["version"] == row["version"]
        if known is None or not is_same_version:
            found.append(row)
            continue
        columns = row["columns"] if known["columns"] == row["columns"] else None
        if row["version"] is not None:
            columns = columns or merged(project, known["columns"], row)
        if columns and known["key"] == row["key"]:
            found[-1] = known | {"columns": columns, "change_seq": known["change_seq"] or row["change_seq"]}
        elif row["version"] is None:
            found.append(row)
        else:
            is_key = known["columns"] == row["columns"]
            where = "in their keys" if is_key else differs(known["columns"], row["columns"], "the first")
            raise ConfigError(
                f"{table_of(row)}: {known['unit_id']} and {row['unit_id']} both tell version {row['version']}, and "
                f"differ: {where}",
                "Leave out the file that is not in force, or write the contract by hand",
            )
    return found


def table_of(row: dict) -> str:
    return f"{row['source_schema']}.{row['source_table']}"


def content(path: Path) -> bytes:
    """The bytes of a definition file, compressed or not. Raises: ConfigError."""
    try:
        with UNPACK.get(path.suffix, open)(path, "rb") as stream:
            return stream.read()
    except DAMAGED as error:
        told = why(error) if isinstance(error, OSError) else first_line(error)
        raise ConfigError(f"{path} cannot be read: {told}", "Name a definition file that is there") from error


def differs(present: list[dict], new: list[dict], before: str = "the contract") -> str:
    """Where two column lists differ first, in words. In: what has the first one."""
    for was, now in zip(present, new):
        if was["name"] != now["name"]:
            return f"it has {now['name']} where {before} has {was['name']}"
        if told := [f for f in now if now[f] != was.get(f)]:
            return f"{now['name']} has {told[0]} {now[told[0]]}, in {before} {was.get(told[0])}"
    return f"it has {len(new)} columns, {before} {len(present)}"
