"""Commands that ask a lakehouse."""

import contextlib
import json
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from inlet import config
from inlet.cli.app import HERE, ProjectDir, app, out
from inlet.errors import ConfigError, InletError
from inlet.log import as_text, counted, json_of, print_rows, print_table


@app.command()
def status(
    project: ProjectDir = HERE,
    is_json: Annotated[
        bool, typer.Option("--json", help="As one JSON object; of --file: file, is_safe to purge, state in words.")
    ] = False,
    file: Annotated[
        str | None,
        typer.Option(help="Is every byte of this delivered file landed and accounted for? Exit code 0 if so, else 3."),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show it anew again and again, until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.5, help="Seconds between two looks of --watch.")] = 5,
):
    """What has been landed, decoded and built, and what waits. Needs no Spark."""
    from inlet.commands import status as reading

    if watch:
        from inlet.commands import watch as watching

        watching.watch(config.load(project), out, interval)
        return
    if file:
        from inlet.commands.file_state import file_state

        is_safe, words = file_state(config.load(project), file)
        if is_json:
            print(json.dumps({"file": file, "is_safe": is_safe, "state": words}, ensure_ascii=False))
        else:
            out.print(escape(words), soft_wrap=True)
        raise typer.Exit(0 if is_safe else 3)
    found = reading.status(config.load(project))
    if is_json:
        print(json.dumps(found, default=str))
    else:
        for title, rows in found.items():
            print_rows(out, rows, title)


@app.command()
def report(
    project: ProjectDir = HERE,
    file: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="The page; else report.html in the lakehouse.")
    ] = None,
):
    """Write one page for people: what needs attention, what came in, what waits, lag, rejects, checks, sizes, runs. It
    needs no network to be read, and no Spark to be made.
    """
    from inlet.commands import report as reporting

    out.print(reporting.write(config.load(project), file), markup=False, soft_wrap=True)


@app.command()
def sql(
    query: Annotated[
        str | None,
        typer.Argument(
            help="One SQL statement; tables are orders, orders__history, silver.changes, ... Without one: asks for "
            "statements, or reads them from standard input, each ended by a semicolon."
        ),
    ] = None,
    project: ProjectDir = HERE,
    format: Annotated[str, typer.Option(help="table, csv or json (lines).")] = "table",
    limit: Annotated[
        int | None, typer.Option(min=0, help="Rows at most; 0 for all. A table has 100, CSV and JSON all.")
    ] = None,
    database: Annotated[str, typer.Option(help="The database of names without one: public, or a pin.")] = "public",
):
    """Ask the lakehouse a question, or one after the other. Names without a database are those of the public views:
    `orders`, `orders__history`, `orders_at(time)`.
    """
    from inlet.commands import shell
    from inlet.commands.sql import ask

    _check_format(format)
    loaded, num = config.load(project), _limit(limit, format, 100)

    def show(columns: list[str], rows: list[tuple], is_more: bool) -> None:
        _print(columns, rows, is_more, format, num)

    if query is not None:
        rows, columns, is_more = ask(loaded, query, num, database)
        show(columns, rows, is_more)
    elif sys.stdin.isatty():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        shell.interact(loaded, num, database, show)
    else:
        raise typer.Exit(shell.answer_all(loaded, sys.stdin.read(), num, database, show))


@app.command()
def show(
    table: Annotated[str, typer.Argument(help="A public table, such as orders.")],
    project: ProjectDir = HERE,
    key: Annotated[
        list[str],
        typer.Option(help="Only the row of this key; once for each of its columns, in their order, or the first ones."),
    ] = [],
    source: Annotated[str | None, typer.Option(help="Only rows of this source.")] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Its versions, each with the places where it held.")
    ] = False,
    changes: Annotated[
        bool,
        typer.Option(
            "--changes", help="Its changes, with both images (what was not supplied is not in them), file and place."
        ),
    ] = False,
    header: Annotated[
        bool, typer.Option("--header", help="With --changes: what the feed's own header says of each.")
    ] = False,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="Rows as they were at a time, in UTC.")] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Rows as they were at each source's last checkpoint of this name."),
    ] = None,
    format: Annotated[str, typer.Option(help="table, csv or json (lines).")] = "table",
    limit: Annotated[
        int | None, typer.Option(min=0, help="Rows at most; 0 for all. A table has 20, CSV and JSON all.")
    ] = None,
):
    """Rows of a public table, as `orders`, `orders__history`, `orders__before_after`, `orders_at(time)` and
    `orders_at_checkpoint(checkpoint)` show them. Needs no Spark.
    """
    from inlet.commands import show as showing

    _check_format(format)
    if history and changes:
        raise ConfigError("--history and --changes are two questions", "Ask one after the other")
    if at is not None and checkpoint is not None:
        raise ConfigError("--at and --checkpoint are two places", "Say one of them")
    if header and not changes:
        raise ConfigError("--header is of changes", "Say --changes, too")
    loaded = config.load(project)
    (name,) = loaded.table_names([table])
    contract = next(t for t in loaded.tables.values() if t.name == name)
    view = "history" if history else "changes" if changes else "live"
    if source:
        config.known(loaded.sources, source, "source")
    num = _limit(limit, format, 20)
    found = showing.show(loaded, contract, view, key, at, num, source, header, checkpoint)
    if changes:
        found = showing.with_files(loaded, showing.as_supplied(loaded, contract, found))
    _print(found.columns, found.rows, found.is_more, format, num, is_upright=header)


def _check_format(format: str) -> None:
    if format not in ("table", "csv", "json"):
        raise ConfigError(f"--format {format} is unknown", "Use table, csv or json")


def _limit(limit: int | None, format: str, of_table: int) -> int:
    """Rows at most; 0 for all. A program that reads CSV or JSON gets all of them, unless it says otherwise."""
    return limit if limit is not None else of_table if format == "table" else 0


def _print(
    columns: list[str], rows: list[tuple], is_more: bool, format: str, limit: int, is_upright: bool = False
) -> None:
    """Rows as a table (or each upright, where a column is long), CSV or JSON lines. Raises: ConfigError where a
    JSON object cannot hold them."""
    if format == "json" and (twice := {name for name in columns if columns.count(name) > 1}):
        raise ConfigError(
            f"Several columns are called {', '.join(sorted(twice))}",
            "A JSON object has one of a name: rename them with `as`, or use --format csv",
        )
    if format == "table":
        print_table(out, columns, rows, null="NULL", is_upright=is_upright)
        if is_more:
            out.print(f"[dim]{_first(limit)}; --limit 0 shows all[/]")
        return
    if is_more:
        print(f"inlet: {_first(limit)}; there are more", file=sys.stderr)
    import csv

    writer = csv.writer(sys.stdout)
    if format == "csv":
        writer.writerow(columns)
    for row in rows:
        if format == "csv":
            writer.writerow(map(as_text, row))
        else:
            print(json_of(dict(zip(columns, row, strict=True))))


def _first(limit: int) -> str:
    return f"the first {counted(limit, 'row')}" if limit > 1 else "the first row"


@app.command()
def serve(
    project: ProjectDir = HERE,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 10000,
    passwords: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Users and their passwords: `inlet password` writes it.")
    ] = None,
    ldap: Annotated[str | None, typer.Option(metavar="URL", help="Users are those of a directory.")] = None,
    ldap_base: Annotated[str | None, typer.Option(metavar="DN", help="They are uid=NAME below this.")] = None,
    ldap_domain: Annotated[str | None, typer.Option(metavar="DOMAIN", help="They are NAME@DOMAIN.")] = None,
):
    """Serve the lakehouse to JDBC, beeline and Python until Ctrl-C, to be read only; runs go on meanwhile."""
    from inlet.commands import serve as serving
    from inlet.lake import engine

    engine.check_embedded("`inlet serve`")

    loaded = config.load(project)
    access = serving.Access(host, port, passwords, ldap, ldap_base, ldap_domain)
    serving.stop_on(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    with contextlib.suppress(KeyboardInterrupt), serving.serving(loaded, access) as process:
        print(serving.how_to_connect(loaded, access), flush=True)
        raise InletError(
            f"Spark's Thrift Server ended by itself, with code {serving.wait(loaded, process)}", "Start it again"
        )


@app.command()
def password(
    file: Annotated[Path, typer.Argument(help="The file of users; it is made where it is not there.")],
    name: Annotated[str, typer.Argument(help="The user, new or known.")],
):
    """Set a user's password for `inlet serve --passwords`: asked for, or a line of standard input."""
    from getpass import getpass

    from inlet.commands import serve as serving

    given = getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if sys.stdin.isatty() and getpass("Again: ") != given:
        raise ConfigError("The two passwords differ", "Try again")
    serving.add_user(file, name, given)
    out.print(f"{name} may ask by {file}", markup=False)
