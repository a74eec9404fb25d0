"""Commands about a project: its folder, contracts, models, a file of it."""

import sys
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from inlet import config
from inlet.cli.app import HERE, ProjectDir, app, out
from inlet.codecs.results import ABANDONED
from inlet.errors import ConfigError
from inlet.log import Log, counted, json_of


@app.command("import")
def import_(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Definition files of the vendor; without any, the column lists that feeds gave."),
    ] = None,
    project: ProjectDir = HERE,
    source: Annotated[
        str | None, typer.Option(help="Only what this source gave; of files, the source that they describe.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Only this table, as SCHEMA.TABLE.")] = None,
    renamed: Annotated[
        list[str], typer.Option(metavar="OLD=NEW", help="A column that was renamed; may be given several times.")
    ] = [],
    dropped: Annotated[
        list[str], typer.Option(metavar="COLUMN", help="A column that is gone for good; may be given several times.")
    ] = [],
    since: Annotated[
        str,
        typer.Option(
            metavar="YYYYMMDDHHmmSS",
            help="From when on a changed column list is in force, where its file tells no time: in UTC, as the time in "
            "change_seq.",
        ),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the contracts, and write nothing.")] = False,
):
    """Write and update contracts from column lists that feeds gave. Columns that are gone are asked for, never
    guessed.
    """
    from inlet.commands import import_contracts as importing
    from inlet.commands import import_definitions as definitions
    from inlet.commands import import_settings

    loaded = config.load(project, is_unfinished=True)
    if files and source is None:
        source = _only_source(loaded)
    if source:
        config.known(loaded.sources, source, "source")
    if wrong := [pair for pair in renamed if pair.count("=") != 1]:
        raise ConfigError(f"--renamed {wrong[0]}: expected OLD=NEW", "Name the column as it was, and as it is")
    rows = (
        definitions.from_files(loaded, source or "", files) if files else definitions.from_feeds(loaded, source, table)
    )
    place = importing.place_of(since) if since else ""
    answers = importing.Answers(dict(pair.split("=") for pair in renamed), set(dropped), place)
    made = importing.contracts(loaded, rows, answers)
    for contract in made:
        out.print(escape(contract.what))
        if dry_run:
            out.print(escape(contract.text), soft_wrap=True)
    if files:
        told = [(path.name, definitions.content(path)) for path in files]
        fields = config.source_fields(loaded.root, source or "")
        lines = import_settings.lines(loaded.sources[source or ""], told, fields)
    else:
        feeds = [loaded.sources[name] for name in sorted({row["source"] for row in rows} & loaded.sources.keys())]
        lines = [import_settings.open_options(feed, feed.options) for feed in feeds] if made else []
    for line in filter(None, lines):
        out.print(escape(line), soft_wrap=True)
    if dry_run or not made:
        out.print("contracts say what the feeds say" if not made else "nothing was written")
        return
    importing.write(made)
    config.load(project, is_unfinished=True)
    out.print("next: inlet generate, then inlet run; what was rejected for its columns is decoded again")


def _only_source(loaded: config.Project) -> str:
    """The source that files without one are of. Raises: ConfigError, where there are several or none."""
    if len(loaded.sources) == 1:
        return next(iter(loaded.sources))
    names = ", ".join(loaded.sources) or "none in pipelines/inlet.yml"
    raise ConfigError("Files need --source: the feed whose tables they describe", f"There are: {names}")


@app.command()
def decode(
    file: Annotated[Path, typer.Argument(help="A file of any source, compressed or not.")],
    project: ProjectDir = HERE,
    source: Annotated[
        str | None,
        typer.Option(
            help="Read it as a file of this source; else the only one, or that whose folder or pattern it matches."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Stop after this many changes and rejects.")] = None,
):
    """Print a file's changes as JSON lines; rejects go to standard error. Nothing is written. Exit code 3 if any was
    rejected. What the feed gave up, and a run leaves out, has `verdict: abandoned`; it is not counted.
    """
    from inlet.commands import decode

    num_records, rejected = 0, Counter[str]()
    for kind, row in decode.decode_file(config.load(project), file, source):
        if num_records == limit:
            break
        num_records += kind in ("change", "reject")
        rejected.update([row["kind"]] if kind == "reject" and row.get("verdict") != ABANDONED else [])
        print(json_of(row), file=sys.stderr if kind == "reject" else sys.stdout)
    log = Log()
    if rejected and log.is_human:  # who reads the lines by a program counts them
        log.say({"step": "rejects", "found": rejected.total(), "kinds": rejected})
    raise typer.Exit(3 if rejected else 0)


@app.command()
def doctor(project: ProjectDir = HERE):
    """Look for what is missing or wrong here, and say how to fix it."""
    from inlet.commands import doctor as examining

    worst = 0
    for finding in examining.examine(project):
        mark = "[red]no[/]  " if not finding.is_good else "[yellow]note[/]" if finding.is_note else "[green]ok[/]  "
        out.print(
            mark
            + escape(f" {finding.what}: {finding.found}" + ("" if finding.is_good else f"\n      {finding.remedy}"))
        )
        worst = max(worst, 0 if finding.is_good else finding.exit_code)
    raise typer.Exit(worst)


@app.command()
def generate(
    project: ProjectDir = HERE,
    check: Annotated[bool, typer.Option(help="Write nothing; exit 2 if something is stale.")] = False,
):
    """Write the dbt models of the contracts in pipelines/tables/."""
    from inlet.gold import generate as generating

    loaded = config.load(project)
    stale = generating.stale(loaded)
    if check and stale:
        raise ConfigError(
            f"{counted(len(stale), 'generated file')} stale: {', '.join(map(str, stale[:5]))}", "Run `inlet generate`"
        )
    if not check:
        generating.write(loaded)
    files, contracts = counted(len(stale), "file"), counted(len(loaded.tables), "contract")
    out.print(f"{files} {'would change' if check else 'written'}; {contracts}")
    for sentence in filter(None, (table.without_key for table in loaded.tables.values())):
        out.print(sentence, markup=False)


class Platform(StrEnum):
    databricks = "databricks"


@app.command()
def deploy(
    platform: Annotated[Platform, typer.Argument(help="For which platform: databricks.", show_choices=False)],
    project: ProjectDir = HERE,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 2 if a file is stale or something in it is wrong.")
    ] = False,
):
    """Write the files by which a platform runs this project, and check them: for Databricks the asset bundle in
    infra/databricks/. Nothing is sent.
    """
    from inlet.commands import deploy as deploying

    loaded = config.load(project)
    if not check:
        for path in deploying.write(loaded):
            out.print(f"wrote {path}", markup=False)
    for note in deploying.check(loaded):
        out.print(f"note: {note}", markup=False, soft_wrap=True)
    out.print(f"{platform.value}: the files are fresh, and no fault was found without a workspace")


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet, or is empty.")],
    source: Annotated[str | None, typer.Option(help="Name of a first source, with --codec and --from.")] = None,
    codec: Annotated[str | None, typer.Option(help="Its format.")] = None,
    place: Annotated[str | None, typer.Option("--from", help="Where it comes from: files, a pattern, a URL.")] = None,
    transport: Annotated[
        str | None, typer.Option(help="What its files hold, as lines (one message each); of messages it is Parquet.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of its codec, NAME=VALUE; give it once for each.")
    ] = None,
    airflow: Annotated[bool, typer.Option("--airflow", help="With the DAG by which Airflow runs it.")] = False,
):
    """Make a new project that runs as it is: config, a folder for contracts, dbt, expectations."""
    from inlet.commands import init as making

    if wrong := next((one for one in option or () if "=" not in one), None):
        raise ConfigError(f"--option {wrong} has no value", "Write NAME=VALUE")
    options = dict(one.split("=", 1) for one in option or ())
    first = making.FirstSource(source, codec, place, transport, options) if source and codec and place else None
    if first is None and (source or codec or place or transport or options):
        raise ConfigError("--source, --codec and --from belong together", "Give all three, or none")
    for line in making.init(folder, first, airflow):
        out.print(line, markup=False, soft_wrap=True)
