"""Commands that work on a lakehouse."""

import contextlib
import shlex
import signal
import time
from typing import Annotated

import typer

from inlet import config
from inlet.cli.app import HERE, ProjectDir, app, begin_log, out
from inlet.cli.tries import again
from inlet.errors import REJECT_KINDS, ConfigError, InletError, together
from inlet.log import Log, counted, json_of, print_rows


@app.command()
def run(
    project: ProjectDir = HERE,
    source: Annotated[list[str], typer.Option(help="Land only this source; may be given several times.")] = [],
    table: Annotated[list[str], typer.Option(help="Build only this gold table; may be given several times.")] = [],
    step: Annotated[str | None, typer.Option(help="Run one step alone: bronze, silver, gold or publish.")] = None,
    until: Annotated[str | None, typer.Option(help="Run up to and with this step.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on in micro-batches until Ctrl-C or SIGTERM.")] = False,
    every: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="With --follow: how long to wait when nothing is new.")
    ] = 5,
    tries: Annotated[
        int, typer.Option(min=1, help="Try so often, at growing intervals, what may pass by itself (exit code 6).")
    ] = 1,
    lakehouse: Annotated[
        str, typer.Option(metavar="PLACE", help="Take this lakehouse, as catalog://main/cdc_, not that of inlet.yml.")
    ] = "",
):
    """Land what is new, decode it, bring the tables up to date, check each step, publish. Safe to run again at any
    time.
    """
    from inlet.commands import run as running

    log = begin_log()
    steps = running.steps_to_run(step, until)
    if follow and tries > 1:
        raise ConfigError("--tries goes without --follow", "A run that follows tries again by itself")
    if follow:
        from inlet.commands.follow import follow as go_on

        go_on(lambda: config.load(project, lakehouse=lakehouse), steps, source, table, log, every)
        return
    again(lambda: _run_once(config.load(project, lakehouse=lakehouse), steps, source, table, log), tries, log)


def _run_once(loaded: config.Project, steps: tuple[str, ...], source: list[str], table: list[str], log: Log) -> None:
    """One run. Raises: what ends it; where sources could not be asked, that, after the others went all the way."""
    from inlet import lake
    from inlet.commands import run as running
    from inlet.commands import runs

    with lake.writing(loaded.lakehouse_path(), tell=log.say) as hold:
        work = running.find_work(loaded, steps, source, table)
        if work:
            running.run(loaded, work, steps, table, log, hold)
        else:
            running.say_what_waits(work.plan, log)
            runs.idle(loaded, log, work.plan.unlisted)
            if not loaded.sources:
                log.say({"step": "run", "because": "pipelines/inlet.yml has no sources yet"})
            num_asked = len(work.sources) - len(work.plan.unlisted)
            if num_asked or not work.plan.unlisted:
                log.say(
                    {"step": "run", "nothing_new": True}
                    if not log.is_human
                    else {"step": "nothing", "new": f"in {counted(num_asked, 'source')} since the last run"}
                )
    if why := together(work.plan.unlisted.values()):  # all other sources went on
        raise why


@app.command()
def replay(
    project: ProjectDir = HERE,
    source: Annotated[str | None, typer.Option(help="Only rejects of this source.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only rejects of this kind.")] = None,
    batch: Annotated[int | None, typer.Option(help="Only rejects of this batch.")] = None,
    unit: Annotated[str | None, typer.Option(help="Only rejects of this unit; `inlet rejects` shows it.")] = None,
    file: Annotated[
        str | None,
        typer.Option(help="Instead, read this file again as it is now: one that was landed damaged or cut short."),
    ] = None,
):
    """Decode again what was rejected, after a contract, an option or a codec was fixed; then build, check and
    publish. With --file, take a file anew that was delivered again under its name.
    """
    from inlet import bronze, lake
    from inlet.commands import replay as replaying
    from inlet.commands import run as running
    from inlet.lake.spark import session

    log, loaded, anew = begin_log(), config.load(project), None
    with lake.writing(loaded.lakehouse_path(), tell=log.say) as hold:
        if source:
            config.known(loaded.sources, source, "source")
        if kind:
            config.known(dict.fromkeys([*REJECT_KINDS, replaying.IGNORED]), kind, "kind of reject")
        if file:
            if kind or batch is not None or unit:
                raise ConfigError("--file goes with --source alone", "A file is read again as a whole")
            anew = replaying.file_anew(loaded, file, source)
            if anew and anew.plan:
                spark = session(loaded.lakehouse_path(), new_bytes=0)
                hold(spark)
                bronze.write_plan(loaded, anew.plan)
                log.say({"step": "replay", "batch": anew.plan.batch_id, "file": anew.path})
                if anew.read_behind:
                    because = "it was read with what the damaged file said: `inlet replay --file` takes it anew, too"
                    log.say({"step": "warning", "file": anew.read_behind, "because": because})
            else:
                log.say({"step": "replay", "because": "a run that ended early had planned it"})
        elif rejects := replaying.chosen(loaded, source, kind, batch, unit):
            spark = session(loaded.lakehouse_path(), new_bytes=0)
            hold(spark)
            number = replaying.plan(loaded, spark, rejects)
            log.say({"step": "replay", "batch": number, "rejects": len(rejects)})
        else:
            log.say({"step": "replay", "because": "a run that ended early had planned it"})
        steps = running.STEPS[1:]
        running.run(loaded, running.find_work(loaded, steps, [], []), steps, [], log, hold, "replay")
        if anew and (others := replaying.not_landed(loaded, anew.path)):
            told = f"{counted(len(others), 'other file')} of its source, from {others[0]} on"
            log.say({"step": "bronze", "waiting": f"{told}: `inlet run` lands those that are ready"})


@app.command()
def verify(
    project: ProjectDir = HERE,
    table: Annotated[list[str], typer.Option(help="Verify only this gold table; may be given several times.")] = [],
    limit: Annotated[int, typer.Option(help="Differences shown at most, per table.")] = 20,
):
    """Compare gold with a fold of all that silver holds, made from nothing. Exit code 3 where they differ."""
    from inlet import gold, lake
    from inlet.lake.spark import session

    log, loaded = begin_log(), config.load(project)
    names = loaded.table_names(table) or sorted(t.name for t in loaded.tables.values())
    if not names:
        out.print("there are no tables to verify")
        return
    logs = {t.name for t in loaded.tables.values() if not t.key}
    num_differing = 0
    with lake.writing(loaded.lakehouse_path(), tell=log.say) as hold:  # what it compares must stand still
        with log.working("spark"):
            spark = session(loaded.lakehouse_path(), new_bytes=0)
            hold(spark)
        began = time.monotonic()
        for n, name in enumerate(names):
            with log.working("verify", table=name):
                log.now("folds all that silver holds of it", done=n, of=len(names), since=began)
                num_versions, num, rows = gold.verify(loaded, spark, name, limit)
            out.print(
                f"{name}: {counted(num_versions, 'change' if name in logs else 'version')} compared, "
                + (f"[red]{counted(num, 'difference')}[/]" if num else "[green]equal[/]")
            )
            if rows:
                print_rows(out, rows)
            num_differing += num
    if num_differing:
        out.print("`inlet rebuild --table T` makes gold anew from silver", markup=False)
    raise typer.Exit(3 if num_differing else 0)


@app.command()
def reconcile(
    table: Annotated[str, typer.Option(help="The gold table.")],
    jdbc: Annotated[
        str, typer.Option(metavar="URL", help="The source's database: jdbc:postgresql://host:5432/database.")
    ],
    project: ProjectDir = HERE,
    source: Annotated[
        str | None, typer.Option(help="Compare the rows of this source; needed where gold has several.")
    ] = None,
    source_table: Annotated[
        str | None, typer.Option(help="The table there, as its SQL names it; else the contract's SCHEMA.TABLE.")
    ] = None,
    user: str | None = None,
    password_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The environment variable that holds the password.")
    ] = None,
    driver: Annotated[
        str | None, typer.Option(metavar="GROUP:ARTIFACT:VERSION", help="Maven coordinates of the JDBC driver.")
    ] = None,
    wait: Annotated[
        float, typer.Option(help="Seconds between two looks: longer than a change needs from the source into gold.")
    ] = 60,
    limit: Annotated[int, typer.Option(help="Keys shown at most.")] = 20,
):
    """Compare gold with the live table at its source, twice, so that rows in flight are no alarm. Exit code 3 where
    they differ.
    """
    from inlet.commands import live_table
    from inlet.commands import reconcile as reconciling
    from inlet.lake.spark import session

    loaded = config.load(project)
    (name,) = loaded.table_names([table])
    contract = next(t for t in loaded.tables.values() if t.name == name)
    live = live_table.Live(jdbc, source_table or contract.table, user, live_table.password(password_env))
    package, _ = live_table.driver(jdbc, driver)
    source, through = reconciling.source_of(loaded, name, source)
    spark = session(loaded.lakehouse_path(), packages=(package,), has_catalog=False)
    found = reconciling.reconcile(loaded, spark, contract, source, live, wait)
    num_in_flight = len(found.rows) - found.num_differing
    out.print(
        f"{name}: {counted(found.num_source, 'row')} in {live.table}, "
        f"{found.num_gold:,} in gold of {source} through {through}, "
        + (f"[red]{counted(found.num_differing, 'difference')}[/]" if found.num_differing else "[green]equal[/]")
        + (f", {num_in_flight:,} in flight" if num_in_flight else "")
    )
    if found.rows:
        print_rows(out, found.rows[:limit])
    raise typer.Exit(3 if found.num_differing else 0)


@app.command()
def rebuild(
    table: Annotated[list[str], typer.Option(help="The gold table; may be given several times.")],
    project: ProjectDir = HERE,
):
    """Make a table's gold anew from silver: the same rows that batch after batch has made."""
    from inlet import checks, lake
    from inlet.commands import run as running
    from inlet.commands import runs
    from inlet.lake.spark import session

    log, loaded = begin_log(), config.load(project)
    names = loaded.table_names(table)
    with lake.writing(loaded.lakehouse_path(), tell=log.say) as hold, runs.recorded(loaded, log, "rebuild"):
        spark = session(loaded.lakehouse_path(), new_bytes=0)
        hold(spark)
        with log.step("gold", rebuilt=", ".join(names)) as figures:
            figures["models"] = len(running.build_gold(loaded, spark, names, full_refresh=True, tell=log.now))
        with log.step("checks", of="gold") as figures:
            results = checks.check(loaded, spark, "gold", tables=names)
            figures |= {"passed": sum(r.success for r in results), "warned": sum(not r.success for r in results)}
        running.publish_views(loaded, spark, log)


@app.command(name="move-load")
def move_load(
    load: Annotated[
        str, typer.Argument(help="The load, as silver.control_events has it: SHOP.ORDERS@2026010203040567.")
    ],
    source: Annotated[str, typer.Option(help="Its source.")],
    project: ProjectDir = HERE,
    seconds: Annotated[
        float, typer.Option(min=0, help="By how much at least; else as much as is needed, or a hundredth.")
    ] = 0,
):
    """Give a full load of messages an earlier place in the order, and make its table's gold again: for rows that share
    a place with those of another load, or that hide changes which came after them.
    """
    from inlet import lake
    from inlet.commands import move_load as moving
    from inlet.lake.spark import session

    log, loaded = begin_log(), config.load(project)
    config.known(loaded.sources, source, "source")
    with lake.writing(loaded.lakehouse_path(), tell=log.say) as hold:
        spark = session(loaded.lakehouse_path(), new_bytes=0)
        hold(spark)
        table, start = moving.move(loaded, spark, source, load, seconds)
        log.say({"step": "move-load", "load": load, "start": start})
    names = [t.name for t in loaded.tables.values() if t.table == table]
    if names and lake.exists(loaded.lakehouse_path(), f"gold.{names[0]}__before_after"):
        rebuild(table=names, project=project)
    with lake.writing(loaded.lakehouse_path(), tell=log.say):
        moving.finish(session(loaded.lakehouse_path(), new_bytes=0), source, load)


@app.command()
def relocate(project: ProjectDir = HERE):
    """Make a lakehouse that was copied or moved one of its own: its catalog names the tables of its own folder. The one
    at the other place stays as it is.
    """
    from inlet import lake
    from inlet.lake import place
    from inlet.lake.relocate import relocate as write_places

    lakehouse = config.load(project).lakehouse_path()
    if not place.has_catalog(lakehouse):
        raise ConfigError(
            f"{lakehouse} holds no catalog", "Only a lakehouse in a folder is relocated, after a first run"
        )
    with lake.writing(lakehouse, relocates=True):
        old = write_places(lakehouse)
    names = f"named the tables of {', '.join(old)}, and names its own now" if old else "names its own tables already"
    out.print(f"{lakehouse}: its catalog {names}", markup=False, soft_wrap=True)


@app.command()
def maintain(
    project: ProjectDir = HERE,
    is_dry: Annotated[
        bool, typer.Option("--dry-run", help="Show what is due and what is kept, and do nothing. Needs no Spark.")
    ] = False,
    retain: Annotated[
        str, typer.Option(metavar="TIME", help="How long files that newer versions lack are kept: 168h, 7d.")
    ] = "168h",
    is_json: Annotated[bool, typer.Option("--json", help="As JSON lines, one a table.")] = False,
):
    """Write small files together, put large tables in the order of their key, write checkpoints, and remove files that
    nothing reads. Safe next to readers, and at any time.
    """
    from inlet import lake
    from inlet.commands import maintain as maintaining
    from inlet.commands import runs

    loaded, hours = config.load(project), maintaining.hours_of(retain)
    if is_dry:
        plans = maintaining.plans(loaded, hours)
    else:
        log = begin_log()
        with lake.writing(loaded.lakehouse_path(), tell=log.say) as hold, runs.recorded(loaded, log, "maintain"):
            plans = maintaining.maintain(loaded, log, hold, hours)
    rows = [plan.row() for plan in plans]
    if is_json:
        for row in rows:
            print(json_of(row))
        return
    print_rows(out, [row for row in rows if row["does"] != "nothing" or row["keeps"]], "due" if is_dry else "done")
    num_idle = sum(row["does"] == "nothing" and not row["keeps"] for row in rows)
    out.print(f"{counted(num_idle, 'other table')}: nothing is due, and nothing is kept for a reader")


@app.command()
def catalog(port: Annotated[int, typer.Option(min=1, max=65535, help="On 127.0.0.1.")] = 1527):
    """Serve the catalogs of this machine's lakehouses until Ctrl-C: others ask while a run goes on, where otherwise one
    process at a time can.
    """
    from inlet.lake.catalog import served

    for ends in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ends, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), served(port) as (environment, process):
        for name, value in environment.items():
            print(f"export {name}={shlex.quote(value)}", flush=True)
        raise InletError(
            f"The catalog's server ended by itself, with code {process.wait()}", "Start `inlet catalog` again"
        )


@app.command()
def pin(
    database: Annotated[
        str | None, typer.Argument(help="The database to make: month_end. None: list the pins.")
    ] = None,
    project: ProjectDir = HERE,
    point: Annotated[
        int | None, typer.Option(help="The published point, as gold.published numbers it; else the newest.")
    ] = None,
):
    """Keep a published point: a database of the same views, which show it for good. `inlet unpin` drops it."""
    from inlet import lake
    from inlet.lake.spark import session
    from inlet.publish import pins

    loaded = config.load(project)
    if database is None:
        print_rows(out, pins.listed(loaded, session(loaded.lakehouse_path(), new_bytes=0)), "pins")
        return
    with lake.writing(loaded.lakehouse_path()) as hold:  # maintenance must not remove what is about to be pinned
        found = pins.find(loaded, database, point)
        spark = session(loaded.lakehouse_path(), new_bytes=0)
        hold(spark)
        tables = pins.pin(loaded, spark, database, found)
    out.print(
        f"{database} shows {counted(len(tables), 'table')} at point {found.number}: inlet sql --database {database} "
        f'"select * from {tables[0] if tables else "..."}"',
        markup=False,
    )


@app.command()
def unpin(database: Annotated[str, typer.Argument(help="The pin.")], project: ProjectDir = HERE):
    """Drop a pin: its views, no rows."""
    from inlet.lake.spark import session
    from inlet.publish import pins

    loaded = config.load(project)
    pins.unpin(loaded, session(loaded.lakehouse_path(), new_bytes=0), database)
    out.print(f"{database} is gone", markup=False)
