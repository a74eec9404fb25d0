"""The application, and what its commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from inlet.log import Log, console

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Change streams of GoldenGate, Linkexpress and Qlik into a lakehouse: bronze, silver, gold, with checks at "
    "each step.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = console()

ProjectDir = Annotated[
    Path, typer.Option("--project", metavar="DIR", help="Project folder (holds pipelines/inlet.yml).")
]
HERE = Path(".")
LOGGED = ("run", "replay", "verify", "rebuild", "move-load", "maintain")  # commands that begin a log
state: dict[str, Any] = {"debug": False, "log": None}  # the log of the command, once it has one


def begin_log() -> Log:
    """The log of a command; an error that ends the command is a line of it."""
    state["log"] = Log()
    return state["log"]


@app.callback()
def options(debug: Annotated[bool, typer.Option(help="Show the stack trace of an error.")] = False):
    state["debug"] = debug
