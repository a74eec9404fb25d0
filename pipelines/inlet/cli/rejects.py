"""`inlet rejects`."""

import json
import shlex
from typing import Annotated

import typer

from inlet import config
from inlet.cli.app import HERE, ProjectDir, app, out
from inlet.errors import REJECT_KINDS, ConfigError
from inlet.log import counted, print_rows
from inlet.commands.next_steps import NEXT_STEPS


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
    if close or reopen:
        rows = rows[: len(rows) - num_unnamed]
        what = ", ".join(filter(None, [f"{selection}", f"table {table}" if table else ""]))
        if not rows:
            raise ConfigError(
                f"There is no {'open' if close else 'closed'} reject of {what}", "`inlet rejects` lists them"
            )
        (reading.close if close else reading.reopen)(known, rows, reason.strip())
        print_rows(out, reading.counts(rows), "closed" if close else "open again")
        if close:
            out.print("[dim]`inlet rejects --closed` lists them; --reopen makes them open again[/]")
        return
    num = limit if limit is not None else 0 if is_json else 20
    shown = rows[:num] if num else rows
    stays = reading.first_of(known, shown)
    if is_json:
        for row in shown:
            of_first = (
                {"stays": stays.get((row["source"], row["change_seq"]))} if row["kind"] == reading.CONFLICT else {}
            )
            printed = row | {"file_offset": place[1] if (place := reading.in_file(known, row)) else None}
            printed |= of_first | {"raw": (row["raw"] or b"").hex()}
            print(json.dumps(printed, default=str, ensure_ascii=False))
        return
    if len(rows) > len(shown):
        print_rows(out, reading.counts(rows), "rejects by source and kind")
    places = [reading.in_file(known, row) for row in shown]
    lines = [
        reading.reject_line(row, raw, stays, place[1] if place else None, verbose) for row, place in zip(shown, places)
    ]
    print_rows(out, lines, "closed rejects" if closed else "rejects")
    if len(rows) > len(shown):
        out.print(
            f"[dim]{len(shown):,} of {len(rows):,}; --limit 0 shows all, --kind, --source and --table "
            "choose, --json has them whole[/]"
        )
    for kind_ in () if closed else dict.fromkeys(row["kind"] for row in shown):
        out.print(f"{kind_}: {NEXT_STEPS[kind_]}", style="dim", markup=False, soft_wrap=True)
    if num_unnamed:
        out.print(f"[dim]{counted(num_unnamed, 'reject')} without a table, the last ones, may be of {table}, too[/]")
    if first := reading.to_inspect(known, shown):
        where = [] if project == HERE else ["--project", f"{project}"]
        words = shlex.join([f"{project / first[0]}", "--at", f"{first[1]}", "--records", "1", *where])
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
