"""The command line. Each command is thin: read the project, call one function, say what happened.

Exit codes (errors.py): 0 done, 1 internal error, 2 wrong usage or configuration, 3 a check of severity `error` failed,
`verify` or `reconcile` found a difference, `decode` a reject or `status --file` a file that is not all there, 4 the
accounting of a batch does not add up, 5 the environment lacks something, 6 something that may pass by itself.
"""

import codecs
import io
import json
import os
import signal
import sys
from typing import Any

import typer

from inlet.cli import work  # noqa: F401  each module brings its commands, in the order of the help
from inlet.cli import read  # noqa: F401, I001
from inlet.cli import rejects  # noqa: F401
from inlet.cli import project  # noqa: F401
from inlet.cli import inspect  # noqa: F401
from inlet.cli.app import LOGGED, app, begin_log, state
from inlet.errors import InletError
from inlet.log import Log, console

__all__ = ["app", "main"]
UsageError: Any = typer.BadParameter.__base__  # typer has no public name for it


def _interrupted(*_) -> None:
    """Ctrl-C. A KeyboardInterrupt on the way through py4j would end in stack traces; the JVM would go on for a moment,
    and hold the lakehouse. What is done at the end of a process is not done here, so a shared catalog is left first.
    """
    console(stderr=True).show_cursor(True)
    if engine := sys.modules.get("inlet.lake.engine"):
        engine.kill_jvm()
    _say("interrupted; nothing is lost, the next `inlet run` goes on from here", "")
    try:
        if connect := sys.modules.get("inlet.lake.connect"):
            connect.end_session()
        if catalog := sys.modules.get("inlet.lake.catalog"):
            catalog.leave_all()
    finally:
        os._exit(130)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """What the character set of a stream lacks, as JSON escapes it: a line of JSON stays JSON."""
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def main() -> None:
    """Entry point: it returns where all went well, for schedulers that call it take any SystemExit for a failure.
    Raises: SystemExit with the code of what went wrong."""
    try:
        _main()
    except SystemExit as end:
        if end.code:
            raise


def _main() -> None:
    """Errors become one line on standard error and an exit code."""
    state["log"] = None
    signal.signal(signal.SIGINT, _interrupted)
    codecs.register_error("inlet", _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="inlet")
    try:
        sys.exit(
            app(prog_name="inlet", standalone_mode=Log().is_human)
        )  # a person gets typer's own words for wrong usage
    except UsageError as error:
        _say_usage(error)
        sys.exit(error.exit_code)
    except typer.Abort:  # the input ended where something was asked for
        _say("aborted", "")
        sys.exit(1)
    except InletError as error:
        if state["debug"]:
            raise
        _say(error.message, error.remedy)
        sys.exit(error.exit_code)
    except Exception as error:  # below the command line nothing is swallowed; here it is put in words
        if state["debug"]:
            raise
        from inlet.lake import spark_errors  # only here: it takes long to import

        if known := spark_errors.worded(error):
            _say(known.message, known.remedy)
            sys.exit(known.exit_code)
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        why = "This is a fault of Inlet or of its setting; `inlet --debug ...` shows the whole trace"
        _say(f"{type(error).__name__}: {first}", why)
        sys.exit(1)


def _say_usage(error: Any) -> None:
    """Wrong usage, where no person reads it: what is wrong, and what was maybe meant."""
    command, text = error.ctx and error.ctx.command.name, " ".join(error.format_message().split())
    if not text:  # no command at all: the help is printed
        return
    if command in LOGGED:
        begin_log()
    message, meant, near = text.partition(" Did you mean")
    path = error.ctx.command_path if error.ctx else "inlet"
    _say(message.rstrip("."), (meant + near).strip() or f"`{path} --help` shows what there is")


def _say(message: str, remedy: str) -> None:
    """Why a command ends: a line of its log, of a command without one a sentence."""
    (state["log"] or Log(is_human=True)).error(message, remedy)
