"""The command line. Each command is thin: read the project, call one function, say what happened.

Exit codes (errors.py): 0 done, 1 internal error, 2 wrong usage or configuration, 3 a check of severity `error` failed,
`verify` or `reconcile` found a difference or `decode` a reject, 4 the accounting of a batch does not add up, 5 the environment lacks something.
"""

import contextlib
import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from inlet import config
from inlet.errors import REJECT_KINDS, ConfigError, InletError
from inlet.log import Log, as_json, as_text, console, print_rows, print_table

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich",
                  help="Change streams of Qlik and Linkexpress into a lakehouse: bronze, silver, gold, with checks at each step.",
                  context_settings={"help_option_names": ["-h", "--help"]})
out = console()

ProjectDir = Annotated[Path, typer.Option("--project", metavar="DIR", help="Project folder (holds pipelines/inlet.yml).")]
HERE = Path(".")
state = {"debug": False}


@app.callback()
def options(debug: Annotated[bool, typer.Option(help="Show the stack trace of an error.")] = False):
    state["debug"] = debug


@app.command("import")
def import_(files: Annotated[list[Path] | None, typer.Argument(help="Definition files of the vendor; without any, the column lists that feeds gave.")] = None,
            project: ProjectDir = HERE,
            source: Annotated[str | None, typer.Option(help="Only what this source gave; needed with files.")] = None,
            table: Annotated[str | None, typer.Option(help="Only this table, as SCHEMA.TABLE.")] = None,
            renamed: Annotated[list[str], typer.Option(metavar="OLD=NEW", help="A column that was renamed; may be given several times.")] = [],
            dropped: Annotated[list[str], typer.Option(metavar="COLUMN", help="A column that is gone for good; may be given several times.")] = [],
            dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the contracts, and write nothing.")] = False):
    """Write and update contracts from column lists that feeds gave. Columns that are gone are asked for, never guessed."""
    from inlet.commands import import_contracts as importing

    loaded = config.load(project)
    if source or files:
        config.known(loaded.sources, source or "", "source")
    if wrong := [pair for pair in renamed if pair.count("=") != 1]:
        raise ConfigError(f"--renamed {wrong[0]}: expected OLD=NEW", "Name the column as it was, and as it is")
    rows = importing.from_files(loaded, source or "", files) if files else importing.from_feeds(loaded, source, table)
    made = importing.contracts(loaded, rows, importing.Answers(dict(pair.split("=") for pair in renamed), set(dropped)))
    for contract in made:
        out.print(escape(contract.what))
        if dry_run:
            out.print(escape(contract.text))
    if dry_run or not made:
        out.print("contracts say what the feeds say" if not made else "nothing was written")
        return
    importing.write(made)
    config.load(project)
    out.print("next: inlet generate, then inlet run; what was rejected for its columns is decoded again")


@app.command()
def replay(project: ProjectDir = HERE,
           source: Annotated[str | None, typer.Option(help="Only rejects of this source.")] = None,
           kind: Annotated[str | None, typer.Option(help="Only rejects of this kind.")] = None,
           batch: Annotated[int | None, typer.Option(help="Only rejects of this batch.")] = None,
           unit: Annotated[str | None, typer.Option(help="Only rejects of this unit; `inlet rejects` shows it.")] = None):
    """Decode again what was rejected, after a contract, an option or a codec was fixed; then build, check and publish."""
    from inlet import lake
    from inlet.commands import replay as replaying
    from inlet.commands import run as running
    from inlet.lake.spark import session

    log, loaded = Log(), config.load(project)
    with lake.writing(loaded.lakehouse_path()) as hold:
        if source:
            config.known(loaded.sources, source, "source")
        rejects = replaying.chosen(loaded, source, kind, batch, unit)
        spark = session(loaded.lakehouse_path())
        hold(spark)
        number = replaying.plan(loaded, spark, rejects)
        log.say({"step": "replay", "batch": number, "rejects": len(rejects)})
        steps = running.STEPS[1:]
        running.run(loaded, running.find_work(loaded, steps, [], []), steps, [], log, hold)


@app.command()
def run(project: ProjectDir = HERE,
        source: Annotated[list[str], typer.Option(help="Land only this source; may be given several times.")] = [],
        table: Annotated[list[str], typer.Option(help="Build only this gold table; may be given several times.")] = [],
        step: Annotated[str | None, typer.Option(help="Run one step alone: bronze, silver, gold or publish.")] = None,
        until: Annotated[str | None, typer.Option(help="Run up to and with this step.")] = None):
    """Land what is new, decode it, bring the tables up to date, check each step, publish. Safe to run again at any time."""
    from inlet import lake
    from inlet.commands import run as running

    log = Log()
    loaded = config.load(project)
    steps = running.steps_to_run(step, until)
    with lake.writing(loaded.lakehouse_path()) as hold:
        work = running.find_work(loaded, steps, source, table)
        if work:
            running.run(loaded, work, steps, table, log, hold)
        else:
            log.say({"step": "run", "nothing_new": True} if not log.is_human else
                    {"step": "nothing", "new": f"in {len(loaded.sources)} sources since the last run"})


@app.command()
def verify(project: ProjectDir = HERE,
           table: Annotated[list[str], typer.Option(help="Verify only this gold table; may be given several times.")] = [],
           limit: Annotated[int, typer.Option(help="Differences shown at most, per table.")] = 20):
    """Compare gold with a fold of all that silver holds, made from nothing. Exit code 3 where they differ."""
    from inlet import gold, lake
    from inlet.lake.spark import session

    loaded = config.load(project)
    names = loaded.table_names(table) or sorted(t.name for t in loaded.tables.values())
    if not names:
        out.print("there are no tables to verify")
        return
    logs = {t.name for t in loaded.tables.values() if not t.key}
    num_differing = 0
    with lake.writing(loaded.lakehouse_path()) as hold:                        # what it compares must stand still
        spark = session(loaded.lakehouse_path())
        hold(spark)
        for name in names:
            num_versions, num, rows = gold.verify(loaded, spark, name, limit)
            out.print(f"{name}: {num_versions:,} {'changes' if name in logs else 'versions'} compared, " + (f"[red]{num:,} differences[/]" if num else "[green]equal[/]"))
            if rows:
                print_rows(out, rows)
            num_differing += num
    if num_differing:
        out.print("`inlet rebuild --table T` makes gold anew from silver", markup=False)
    raise typer.Exit(3 if num_differing else 0)


@app.command()
def reconcile(table: Annotated[str, typer.Option(help="The gold table.")],
              jdbc: Annotated[str, typer.Option(metavar="URL", help="The source's database: jdbc:postgresql://host:5432/database.")],
              project: ProjectDir = HERE,
              source: Annotated[str | None, typer.Option(help="Compare the rows of this source; needed where gold has several.")] = None,
              source_table: Annotated[str | None, typer.Option(help="The table there, as its SQL names it; else the contract's SCHEMA.TABLE.")] = None,
              user: str | None = None,
              password_env: Annotated[str | None, typer.Option(metavar="NAME", help="The environment variable that holds the password.")] = None,
              driver: Annotated[str | None, typer.Option(metavar="GROUP:ARTIFACT:VERSION", help="Maven coordinates of the JDBC driver.")] = None,
              wait: Annotated[float, typer.Option(help="Seconds between two looks: longer than a change needs from the source into gold.")] = 60,
              limit: Annotated[int, typer.Option(help="Keys shown at most.")] = 20):
    """Compare gold with the live table at its source, twice, so that rows in flight are no alarm. Exit code 3 where they differ."""
    from inlet.commands import reconcile as reconciling
    from inlet.lake.spark import session

    loaded = config.load(project)
    name, = loaded.table_names([table])
    contract = next(t for t in loaded.tables.values() if t.name == name)
    live = reconciling.Live(jdbc, source_table or contract.table, user, reconciling.password(password_env))
    package, _ = reconciling.driver(jdbc, driver)
    source, through = reconciling.source_of(loaded, name, source)
    spark = session(loaded.lakehouse_path(), packages=(package,), has_catalog=False)
    found = reconciling.reconcile(loaded, spark, contract, source, live, wait)
    num_in_flight = len(found.rows) - found.num_differing
    out.print(f"{name}: {found.num_source:,} rows in {live.table}, {found.num_gold:,} in gold of {source} through {through}, "
              + (f"[red]{found.num_differing:,} differences[/]" if found.num_differing else "[green]equal[/]")
              + (f", {num_in_flight:,} in flight" if num_in_flight else ""))
    if found.rows:
        print_rows(out, found.rows[:limit])
    raise typer.Exit(3 if found.num_differing else 0)


@app.command()
def rebuild(table: Annotated[list[str], typer.Option(help="The gold table; may be given several times.")],
            project: ProjectDir = HERE):
    """Make a table's gold anew from silver: the same rows that batch after batch has made."""
    from inlet import checks, lake
    from inlet.commands import run as running
    from inlet.lake.spark import session

    loaded, log = config.load(project), Log()
    names = loaded.table_names(table)
    with lake.writing(loaded.lakehouse_path()) as hold:
        spark = session(loaded.lakehouse_path())
        hold(spark)
        with log.step("gold", rebuilt=", ".join(names)) as figures:
            figures["models"] = len(running.build_gold(loaded, spark, names, full_refresh=True, tell=log.now))
        with log.step("checks", of="gold") as figures:
            results = checks.check(loaded, spark, "gold", tables=names)
            figures |= {"passed": sum(r.success for r in results), "warned": sum(not r.success for r in results)}
        running.publish_views(loaded, spark, log)


@app.command()
def catalog(port: Annotated[int, typer.Option(help="On 127.0.0.1.")] = 1527):
    """Serve the catalogs of this machine's lakehouses until Ctrl-C: others ask while a run goes on, where otherwise one process at a time can."""
    from inlet.lake.catalog import served

    for ends in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ends, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), served(port) as (environment, process):
        for name, value in environment.items():
            print(f"export {name}={shlex.quote(value)}", flush=True)
        raise InletError(f"The catalog's server ended by itself, with code {process.wait()}", "Start `inlet catalog` again")


@app.command()
def decode(file: Annotated[Path, typer.Argument(help="A file of any source: an extract, or Parquet with Kafka messages.")],
           project: ProjectDir = HERE,
           source: Annotated[str | None, typer.Option(help="Read it as a file of this source; else the only one, or that whose "
                                                           "folder or pattern it matches.")] = None,
           limit: Annotated[int | None, typer.Option(help="Stop after this many changes.")] = None):
    """Print a file's changes as JSON lines; rejects go to standard error. Nothing is written. Exit code 3 if any was rejected."""
    from inlet.commands import decode

    num_changes = num_rejects = 0
    for kind, row in decode.decode_file(config.load(project), file, source):
        if kind == "change" and num_changes == limit:
            break
        num_changes += kind == "change"
        num_rejects += kind == "reject"
        print(json.dumps(row, ensure_ascii=False, default=as_json), file=sys.stderr if kind == "reject" else sys.stdout)
    raise typer.Exit(3 if num_rejects else 0)


@app.command()
def status(project: ProjectDir = HERE, is_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False):
    """What has been landed, decoded and built, and what waits. Needs no Spark."""
    from inlet.commands import status as reading

    found = reading.status(config.load(project))
    if is_json:
        print(json.dumps(found, default=str))
    else:
        for title, rows in found.items():
            print_rows(out, rows, title)


@app.command()
def sql(query: Annotated[str, typer.Argument(help="One SQL statement; tables are orders, orders__history, silver.changes, ...")],
        project: ProjectDir = HERE,
        format: Annotated[str, typer.Option(help="table, csv or json (lines).")] = "table",
        limit: Annotated[int, typer.Option(help="Rows shown at most; 0 for all.")] = 100,
        database: Annotated[str, typer.Option(help="The database of names without one: public, or a pin.")] = "public"):
    """Ask the lakehouse a question. Names without a database are those of the public views: `orders`, `orders__history`, `orders_at(time)`."""
    from inlet.commands.sql import ask

    if format not in ("table", "csv", "json"):
        raise ConfigError(f"--format {format} is unknown", "Use table, csv or json")
    rows, columns, is_more = ask(config.load(project), query, limit, database)
    if format == "json" and (twice := {name for name in columns if columns.count(name) > 1}):
        raise ConfigError(f"Several columns are called {', '.join(sorted(twice))}", "A JSON object has one of a name: rename them with `as`, or use --format csv")
    if format == "table":
        print_table(out, columns, rows, null="NULL")
        if is_more:
            out.print(f"[dim]the first {limit} rows; --limit 0 shows all[/]")
        return
    import csv
    writer = csv.writer(sys.stdout)
    if format == "csv":
        writer.writerow(columns)
    for row in rows:
        if format == "csv":
            writer.writerow(map(as_text, row))
        else:
            print(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, default=as_json))


@app.command()
def pin(database: Annotated[str | None, typer.Argument(help="The database to make: month_end. None: list the pins.")] = None,
        project: ProjectDir = HERE,
        point: Annotated[int | None, typer.Option(help="The published point, as gold.published numbers it; else the newest.")] = None):
    """Keep a published point: a database of the same views, which show it for good. `inlet unpin` drops it."""
    from inlet.lake.spark import session
    from inlet.publish import pins

    loaded = config.load(project)
    if database is None:
        print_rows(out, pins.listed(loaded, session(loaded.lakehouse_path())), "pins")
        return
    found = pins.find(loaded, database, point)
    tables = pins.pin(loaded, session(loaded.lakehouse_path()), database, found)
    out.print(f"{database} shows {len(tables)} tables at point {found.number}: inlet sql --database {database} \"select * from {tables[0] if tables else '...'}\"", markup=False)


@app.command()
def unpin(database: Annotated[str, typer.Argument(help="The pin.")], project: ProjectDir = HERE):
    """Drop a pin: its views, no rows."""
    from inlet.lake.spark import session
    from inlet.publish import pins

    pins.unpin(session(config.load(project).lakehouse_path()), database)
    out.print(f"{database} is gone", markup=False)


@app.command()
def rejects(project: ProjectDir = HERE, source: str | None = None, kind: str | None = None,
            limit: Annotated[int, typer.Option(help="Rows shown at most.")] = 20,
            raw: Annotated[bool, typer.Option(help="Show the record's bytes as hex and text.")] = False,
            is_json: Annotated[bool, typer.Option("--json", help="As JSON lines.")] = False):
    """What could not be decoded, and why. Needs no Spark."""
    from inlet.commands import status as reading

    known = config.load(project)
    for word, names, what in ((source, known.sources, "source"), (kind, REJECT_KINDS, "kind of reject")):
        if word and word not in names:
            raise ConfigError(f"There is no {what} {word!r}", f"There are: {', '.join(sorted(names))}")
    rows = reading.rejects(known, source, kind)
    if is_json:
        for row in rows[:limit]:
            print(json.dumps(row | {"raw": (row["raw"] or b"").hex()}, default=str, ensure_ascii=False))
        return
    print_rows(out, [reading.reject_line(row, raw) for row in rows[:limit]], "rejects")
    if len(rows) > limit:
        out.print(f"[dim]{limit} of {len(rows)}; --limit shows more[/]")


@app.command()
def doctor(project: ProjectDir = HERE):
    """Look for what is missing or wrong here, and say how to mend it."""
    from inlet.commands import doctor as examining

    worst = 0
    for finding in examining.examine(project):
        mark = "[green]ok[/]  " if finding.is_good else "[red]no[/]  "
        out.print(mark + escape(f" {finding.what}: {finding.found}" + ("" if finding.is_good else f"\n      {finding.remedy}")))
        worst = max(worst, 0 if finding.is_good else finding.exit_code)
    raise typer.Exit(worst)


@app.command()
def generate(project: ProjectDir = HERE,
             check: Annotated[bool, typer.Option(help="Write nothing; exit 2 if something is stale.")] = False):
    """Write the dbt models of the contracts in pipelines/tables/."""
    from inlet.gold import generate as generating
    loaded = config.load(project)
    stale = generating.stale(loaded)
    if check and stale:
        raise ConfigError(f"{len(stale)} generated files are stale: {', '.join(map(str, stale[:5]))}", "Run `inlet generate`")
    if not check:
        generating.write(loaded)
    out.print(f"{len(stale)} files {'would change' if check else 'written'}; {len(loaded.tables)} tables")
    for sentence in filter(None, (table.without_key for table in loaded.tables.values())):
        out.print(sentence, markup=False)


@app.command()
def init(folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet, or is empty.")]):
    """Make a new, empty project that runs as it is: config, a folder for contracts, dbt, expectations."""
    from inlet.commands import init as making

    for line in making.init(folder):
        out.print(line)


def _interrupted(*_) -> None:
    """Ctrl-C. A KeyboardInterrupt on the way through py4j would end in stack traces; the JVM would go on for a moment, and hold the lakehouse."""
    console(stderr=True).show_cursor(True)
    if "pyspark" in sys.modules and (gateway := sys.modules["pyspark"].SparkContext._gateway):
        gateway.proc.kill()
        gateway.proc.wait()
    print("inlet: interrupted; nothing is lost, the next `inlet run` goes on from here", file=sys.stderr, flush=True)
    os._exit(130)


def main() -> None:
    """Entry point: errors become one line on standard error and an exit code."""
    signal.signal(signal.SIGINT, _interrupted)
    try:
        app()
    except InletError as error:
        if state["debug"]:
            raise
        print(f"inlet: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except Exception as error:                     # below the command line nothing is swallowed; here it is put in words
        if state["debug"]:
            raise
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        print(f"inlet: {type(error).__name__}: {first}\nThis is a fault of Inlet or of its setting; "
              "`inlet --debug ...` shows the whole trace.", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
