"""`inlet rejects`."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from inlet import config
from inlet.cli.app import HERE, ProjectDir, app, out
from inlet.commands.next_steps import NEXT_STEPS
from inlet.errors import REJECT_KINDS, ConfigError
from inlet.log import counted, print_rows


@app.command()
def rejects(
    project: ProjectDir = HERE,
    source: Annotated[str | None, typer.Option(help="Only those of this source.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only those of this kind.")] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="Only those of this table, with those of its sources that name none: they may be of it. --close and "
            "--reopen take only those that name it."
        ),
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Only those of this batch.")] = None,
    unit: Annotated[str | None, typer.Option(help="Only those of this unit.")] = None,
    at: Annotated[
        int | None, typer.Option(min=0, metavar="BYTE", help="Only those whose record holds this byte: `record at`.")
    ] = None,
    closed: Annotated[bool, typer.Option("--closed", help="List those that are closed, and why.")] = False,
    close: Annotated[
        bool, typer.Option("--close", help="Close the chosen ones, which no one can decode; needs --reason.")
    ] = False,
    reopen: Annotated[bool, typer.Option("--reopen", help="Open the chosen ones again; needs --reason.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why they are closed, or opened again.")] = "",
    limit: Annotated[int | None, typer.Option(min=0, help="Rows at most; 0 for all. A table has 20, JSON all.")] = None,
    raw: Annotated[bool, typer.Option(help="Show the record's bytes around the fault, as hex and text.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show all readings that were tried of a record.")] = False,
    is_json: Annotated[bool, typer.Option("--json", help="As JSON lines.")] = False,
):
    """What could not be decoded, and why. Needs no Spark."""
    from inlet.commands import rejects as reading

    known = config.load(project)
    for word, names, what in ((source, known.sources, "source"), (kind, REJECT_KINDS, "kind of reject")):
        if word and word not in names:
            raise ConfigError(f"There is no {what} {word!r}", f"There are: {', '.join(sorted(names))}")
    selection = reading.Selection(source, kind, batch, unit, at)
    has_choice = any(value not in (None, "") for value in (*selection, table))
    _check_words(has_choice, closed, close, reopen, reason)
    rows, num_unnamed = reading.rejects(known, *selection, is_closed=closed or reopen), 0
    if table:
        rows, num_unnamed = reading.of_table(known, rows, table)
    num = (0 if is_json else 20) if limit is None else limit
    num = num or len(rows)
    if close or reopen:
        what = ", ".join(filter(None, [f"{selection}", f"table {table}" if table else ""]))
        _set_closed(known, rows[: len(rows) - num_unnamed], close, reason.strip(), what)
    elif is_json:
        _print_json(known, rows[:num])
    else:
        rows_shown = reading.first_alike(rows) if limit is None and len(rows) > num else rows
        _print(known, rows, rows_shown[:num], raw, verbose, closed)
        if num_unnamed:
            out.print(
                f"[dim]{counted(num_unnamed, 'reject')} without a table, the last ones, may be of {table}, too[/]"
            )
        _print_inspect(known, rows_shown[:num], project)


def _set_closed(project: config.Project, rows: list[dict], is_closed: bool, reason: str, what: str) -> None:
    """Raises: ConfigError where there is no such reject."""
    from inlet.commands import rejects as reading

    if not rows:
        kind = "open" if is_closed else "closed"
        raise ConfigError(f"There is no {kind} reject of {what}", "`inlet rejects` lists them")
    (reading.close if is_closed else reading.reopen)(project, rows, reason)
    print_rows(out, reading.counts(rows), "closed" if is_closed else "open again")
    if is_closed:
        out.print("[dim]`inlet rejects --closed` lists them; --reopen makes them open again[/]")


def _print_json(project: config.Project, rows: list[dict]) -> None:
    from inlet.commands import rejects as reading

    stays = reading.first_of(project, rows)
    for row in rows:
        place = reading.in_file(project, row)
        printed = row | {"file_offset": place[1] if place else None, "raw": (row["raw"] or b"").hex()}
        if row["kind"] == reading.CONFLICT:
            printed["stays"] = stays.get((row["source"], row["change_seq"]))
        print(json.dumps(printed, default=str, ensure_ascii=False))


def _print(
    project: config.Project, rows: list[dict], shown: list[dict], raw: bool, verbose: bool, is_closed: bool
) -> None:
    """In: all rejects, and those that are shown of them."""
    from inlet.commands import rejects as reading

    if len(rows) > len(shown):
        print_rows(out, reading.counts(rows), "rejects by source and kind")
    stays, places = reading.first_of(project, shown), [reading.in_file(project, row) for row in shown]
    lines = [
        reading.reject_line(row, raw, stays, place[1] if place else None, verbose) for row, place in zip(shown, places)
    ]
    print_rows(out, lines, "closed rejects" if is_closed else "rejects")
    if len(rows) > len(shown):
        what = ", the first of those that are alike" if "alike" in shown[0] else ""
        out.print(
            f"[dim]{len(shown):,} of {len(rows):,}{what}; --limit 0 shows all, --kind, --source and --table "
            "choose, --json has them whole[/]"
        )
    for kind in () if is_closed else dict.fromkeys(row["kind"] for row in shown):
        out.print(f"{kind}: {NEXT_STEPS[kind]}", style="dim", markup=False, soft_wrap=True)


def _print_inspect(project: config.Project, shown: list[dict], folder: Path) -> None:
    """The command that shows the bytes of a record, where one of them is in a file."""
    from inlet.commands import rejects as reading

    if first := reading.to_inspect(project, shown):
        where = [] if folder == HERE else ["--project", f"{folder}"]
        words = shlex.join([f"{folder / first[0]}", "--at", f"{first[1]}", "--records", "1", *where])
        out.print(f"the bytes of such a record: inlet inspect {words}", style="dim", markup=False, soft_wrap=True)


def _check_words(has_choice: bool, closed: bool, close: bool, reopen: bool, reason: str) -> None:
    """Raises: ConfigError where what is asked for is not one thing, or where not all of it is given."""
    if closed + close + reopen > 1:
        raise ConfigError("--closed, --close and --reopen are three commands", "Give one of them")
    if not (close or reopen):
        if reason:
            raise ConfigError("--reason is given with --close or --reopen", "Give one of them")
        return
    if not reason.strip():
        raise ConfigError(
            f"--{'close' if close else 'reopen'} needs a reason",
            "Say why in a few words, such as --reason 'lost at the source, see ticket 42': it is kept",
        )
    if not has_choice:
        raise ConfigError(
            f"--{'close' if close else 'reopen'} needs a choice",
            "Choose rejects with --source, --kind, --table, --batch, --unit or --at",
        )
