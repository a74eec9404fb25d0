"""`inlet inspect`."""

import json
import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from inlet import config
from inlet.cli.app import HERE, ProjectDir, app, out
from inlet.errors import ConfigError
from inlet.log import as_json, print_rows


@app.command()
def inspect(
    file: Annotated[Path, typer.Argument(help="A file that a codec reads, compressed or not.")],
    project: ProjectDir = HERE,
    source: Annotated[
        str | None,
        typer.Option(
            help="Read it as a file of this source; else the only one, or that whose folder or pattern it matches."
        ),
    ] = None,
    codec: Annotated[
        str | None,
        typer.Option(help="Read it by this codec, without a project; columns are then called by their index."),
    ] = None,
    transport: Annotated[
        str, typer.Option(help="With --codec: what the file is; else the codec's first, as `records` or `parquet`.")
    ] = "",
    option: Annotated[
        list[str], typer.Option(metavar="NAME=VALUE", help="With --codec: an option of it; may be given several times.")
    ] = [],
    name: Annotated[
        str | None, typer.Option(help="Read it as if it were called so, where the codec reads the name.")
    ] = None,
    at: Annotated[int, typer.Option(min=0, help="Begin with the record that holds this byte of the file.")] = 0,
    records: Annotated[int | None, typer.Option(min=1, help="Stop after this many records.")] = None,
    table: Annotated[str | None, typer.Option(help="Only records of this SCHEMA.TABLE, or of a pattern of it.")] = None,
    transaction: Annotated[str | None, typer.Option(help="Only records of the transaction with this id.")] = None,
    csn: Annotated[str | None, typer.Option(help="Only records of the commit with this number.")] = None,
    position: Annotated[
        str | None,
        typer.Option(help="Only records at this place in their feed, as they say it (`position` of --json)."),
    ] = None,
    is_count: Annotated[bool, typer.Option("--count", help="Count operations by table, and show no record.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Show long values whole.")] = False,
    is_json: Annotated[
        bool, typer.Option("--json", help="As JSON lines, one a record, with all that is known.")
    ] = False,
):
    """Show every byte of a file: offset, bytes, field, meaning. Needs no lakehouse; `--codec` needs no project either.
    Exit code 3 if any of what is shown cannot be read.

    What stands in a record is read by itself here, not by what decodes; tests hold both equal.
    """
    from inlet.commands import hex_view, inspection

    if (transport or option) and not codec:
        raise ConfigError("--transport and --option go with --codec", "A project says both in its inlet.yml")
    loaded = inspection.without_project(file, codec, transport, _options(option)) if codec else config.load(project)
    selection = inspection.Selection(at, table, transaction, csn, position)
    source = None if codec else source
    found = islice(inspection.inspect(loaded, file, source, name, selection), records)

    num_shown, faults = 0, dict[str, str]()
    if is_count:
        rows, faults = inspection.count(found)
        num_shown = len(rows)
        if is_json:
            for row in rows:
                print(json.dumps(row, ensure_ascii=False))
        elif rows:
            print_rows(out, [_row(row, bool(faults)) for row in rows])
        _say(faults.values(), is_json)
    for shown in found:
        num_shown += 1
        inspection.first_of_each(shown.faults(), faults)
        if is_json:
            print(json.dumps(shown.as_json(), ensure_ascii=False, default=as_json))
            continue
        for line in hex_view.lines_of(shown, full):
            out.print(line, soft_wrap=True)
    if not num_shown:
        everything = inspection.inspect(loaded, file, source, name, inspection.Selection())
        said, faults = inspection.nothing(everything, selection)
        _say([said, *faults.values()], is_json)
    raise typer.Exit(3 if faults else 0)


def _row(row: dict, is_rejected: bool) -> dict:
    """A row of counts for a person: the kinds in words, and nothing of rejects where there are none."""
    if is_rejected:
        return row | {"rejected": row["rejected"] or None, "kinds": ", ".join(row["kinds"])}
    return {name: row[name] for name in ("table", "operation", "number", "bytes")}


def _say(lines: Iterable[str], is_json: bool) -> None:
    """Sentences for people, on standard error where a program reads the output."""
    for line in lines:
        if is_json:
            print(f"inlet: {line}", file=sys.stderr)
        else:
            out.print(line, markup=False, soft_wrap=True)


def _options(given: list[str]) -> dict[str, str]:
    """Options of a codec. Raises: ConfigError."""
    if wrong := [pair for pair in given if "=" not in pair]:
        raise ConfigError(f"--option {wrong[0]}: expected NAME=VALUE", "Name the option, and its value")
    return {name: value for name, _, value in (pair.partition("=") for pair in given)}
