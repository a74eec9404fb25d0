"""`inlet sql` without a query: one session answers any number of questions, typed at a terminal or read from a file."""

import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from inlet import change, unit
from inlet.commands import sql
from inlet.commands.statements import is_whole, split
from inlet.config import Project
from inlet.errors import ConfigError, InletError
from inlet.gold.generate import models
from inlet.lake import beside, engine
from inlet.log import console
from inlet.publish import checkpoints

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Print = Callable[[list[str], list[tuple], bool], None]  # columns, rows, whether there is more
ENDS = ("\\q", "quit", "exit")
USE = re.compile(r"use\s+(\w+)", re.I)
KEYWORDS = (
    "select from where group by order by having limit with as join left full inner anti semi on using union all "
    "distinct case when then else end and or not in is null like rlike between exists cast interval timestamp date "
    "show tables describe explain use qualify over partition rows values true false asc desc"
).split()
HELP = "One session, to be read only. A question ends with ; and may have several lines. Ctrl-C cancels, \\q ends."


def answer_all(project: Project, text: str, limit: int, database: str, show: Print) -> int:
    """Answer each statement of a text; one that fails does not end it. Out: the exit code of the first that failed."""
    statements, rest = split(text)
    statements += [rest] if rest else []
    first_code, spark = 0, None
    for number, statement in enumerate(statements, 1):
        try:
            sql.check_reads(statement)
            spark = spark or sql.begin(project, database)
            rows, columns, is_more = sql.answer(spark, statement, limit)
            show(columns, rows, is_more)
        except InletError as error:
            print(f"inlet: statement {number}: {error}", file=sys.stderr)
            first_code = first_code or error.exit_code
            if spark is None and not isinstance(error, ConfigError):
                break  # no session is to be had
    return first_code


def interact(project: Project, limit: int, database: str, show: Print) -> None:
    """Ask a person, answer, and again, until \\q or Ctrl-D. Other processes share the catalog meanwhile.

    Raises: as lake.spark.session.
    """
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.lexers import PygmentsLexer
    from pygments.lexers.sql import SqlLexer

    from inlet.lake import catalog

    out = console(stderr=True)
    with catalog.shared(project.lakehouse_path()):
        with out.status("Spark starts ..."):
            spark = sql.begin(project, database)
        out.print(f"[dim]{HELP}[/]")
        words = names(project, database) + KEYWORDS + _functions(spark)
        typed: PromptSession[str] = PromptSession(
            history=FileHistory(str(history_file())),
            completer=WordCompleter(words, ignore_case=True, pattern=re.compile(r"[\w.]+")),
            complete_while_typing=False,
            lexer=PygmentsLexer(SqlLexer),
            prompt_continuation="   ... ",
        )
        typed.multiline = Condition(lambda: not _is_asked(typed.default_buffer.text))
        while True:
            try:
                text = typed.prompt("inlet> ").strip()
            except KeyboardInterrupt:
                continue  # what was typed is given up
            except EOFError:
                return
            if text.rstrip("; ").lower() in ENDS:
                return
            statements, rest = split(text)
            for statement in [*statements, *([rest] if rest else [])]:
                _answer(spark, statement, limit, show)


def names(project: Project, database: str = "public") -> list[str]:
    """What can be asked for: tables and functions of the public views, other tables, columns. Needs no Spark."""
    tables, columns = [], {}
    for table in project.tables.values():
        ends = ("", "__history", "__before_after", "__committed", "__live") if table.key else ("__before_after",)
        tables += [f"{table.name}{end}" for end in ends]
        functions = ("_at(", "_as_of(", *(("_at_checkpoint(",) if checkpoints.sources(project) else ()))
        tables += [f"{table.name}{function}" for function in functions] if table.key else []
        for name, (_, _, of_model, _) in models(table).items():
            tables.append(f"gold.{name}")
            columns |= {column: None for column, *_ in of_model}
    for name, declared in (change.TABLES | unit.TABLES).items():
        tables.append(name)
        columns |= {column.name: None for column in declared}
    return list(dict.fromkeys([*tables, *columns]))


def history_file() -> Path:
    return beside.of_user() / "sql_history"


def _is_asked(text: str) -> bool:
    """Does Enter end what was typed?"""
    return not text.strip() or text.strip().lower() in ENDS or is_whole(text)


def _functions(spark: "SparkSession") -> list[str]:
    found: Iterable = spark.sql("show functions").collect()
    return sorted(row[0] for row in found if row[0][0].isalpha() and "." not in row[0])


def _answer(spark: "SparkSession", statement: str, limit: int, show: Print) -> None:
    """Answer one statement of a person, or say why not."""
    begun, out = time.monotonic(), console(stderr=True)
    try:
        if use := USE.fullmatch(statement):
            sql.use(spark, use[1])
            out.print(f"names without a database are those of {use[1]}", style="dim")
            return
        sql.check_reads(statement)
        found = _cancellable(spark, lambda: sql.answer(spark, statement, limit))
        if found is None:
            out.print("cancelled", style="dim")
            return
        rows, columns, is_more = found
        show(columns, rows, is_more)
    except InletError as error:
        out.print(f"inlet: {error}", markup=False, style="red")
        return
    out.print(f"{len(rows):,} row{'s' * (len(rows) != 1)}, {time.monotonic() - begun:.2f} s", style="dim")


def _cancellable(spark: "SparkSession", work: Callable):
    """Do the work while Ctrl-C cancels Spark's jobs. Out: what it gives; None where it was cancelled. Raises: as it."""
    result: list = []
    is_done, is_cancelled = threading.Event(), False

    def do() -> None:
        try:
            engine.begin_question(spark)
            result.append(work())
        except Exception as error:  # the thread that waits raises it
            result.append(error)
        finally:
            is_done.set()

    threading.Thread(target=do, daemon=True).start()
    while not is_done.is_set():  # Python 3.11 takes a thread for ended whose join() was interrupted
        try:
            is_done.wait(0.2)
            if is_cancelled and not is_done.is_set():
                engine.interrupt(spark)  # again: a query that was being planned has none at first
        except KeyboardInterrupt:
            is_cancelled = True
    if is_cancelled:
        return None
    if isinstance(result[0], Exception):
        raise result[0]
    return result[0]
