"""Runs the commands of README.md: in a ```console block each line that begins with `$ `, with the lines up to the next
one (a here-document). One that fails, fails the gate; so does one that prints nothing or a stack trace, and a line of a
```text block that neither they nor the demo print. Tests run other pages in the same way.

Commands of `inlet` for one project that follow each other run in one process, whose Spark is started once; those with
more of a shell than its quotes, and all others, run in one of their own.

A command whose exit code is meant to be another says so: `$ inlet decode broken.lxg   # exits 3`. `make` and `git`
commands are run by .ci/run itself, which hands over what they printed. Of what README shows, times, folder names and
the width of columns may be others.
"""

import contextlib
import io
import multiprocessing
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SILENT = ("cat > ", "cat >> ", "mkdir ")
BY_HAND = ("$ inlet catalog", "$ inlet serve")  # a block that begins so: it goes on until Ctrl-C


def commands(text: str) -> list[tuple[str, int]]:
    """(command, exit code it should end with) in order."""
    in_order = []
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        for line in re.split(r"^\$ ", block, flags=re.M)[1:]:
            code = re.search(r"   # .*exits (\d+)", line)
            in_order.append((line.strip(), int(code[1]) if code else 0))
    return in_order


def lines(text: str) -> list[str]:
    """Lines without what differs from run to run."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def not_printed(text: str, printed: str) -> list[str]:
    """Lines that README shows and nothing has printed."""
    known = set(lines(printed))
    blocks = [block for block in re.findall(r"```text\n(.*?)```", text, re.S) if not block.startswith(BY_HAND)]
    return [line for block in blocks for line in lines(block) if line not in known]


def problem_of(command: str, code: int, done: subprocess.CompletedProcess) -> str:
    """What is wrong with a command that has ended; "" if nothing is."""
    output = done.stdout + done.stderr
    if done.returncode != code:
        return f"exit {done.returncode}, expected {code}"
    if "Traceback" in output or "at org.apache." in output:
        return "prints a stack trace"
    is_silent = command.startswith(SILENT) or "--quiet" in command
    return "prints nothing" if not output.strip() and not is_silent else ""


def in_shell(command: str, folder: Path) -> subprocess.CompletedProcess:
    """Run a command in a folder, with the programs that were installed next to this Python."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, executable="/bin/bash"
    )


def in_process(command: str, folder: Path) -> subprocess.CompletedProcess:
    """Run a command of `inlet` in this process."""
    from inlet.cli import main

    os.chdir(folder)
    sys.argv = shlex.split(command, comments=True)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return subprocess.CompletedProcess(command, code, out.getvalue(), errors.getvalue())


@contextlib.contextmanager
def in_few_processes() -> Iterator:
    """Gives a function as `in_shell`. A command for the project of the one before runs in the process of that one."""
    pool, of_pool = None, None

    def execute(command: str, folder: Path) -> subprocess.CompletedProcess:
        nonlocal pool, of_pool
        words = shlex.split(command, comments=True)
        is_plain = words[0] == "inlet" and not {"&&", "|", ">", ";"} & {*words}
        project = (folder, words[words.index("--project") + 1] if "--project" in words else ".") if is_plain else None
        if pool and project != of_pool:
            pool.shutdown()  # its process lets go of the catalog
            pool = None
        if not is_plain:
            return in_shell(command, folder)
        of_pool, pool = project, pool or ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        return pool.submit(in_process, command, folder).result()

    try:
        yield execute
    finally:
        if pool:
            pool.shutdown()


def run(text: str, folder: Path, printed: str = "", execute=in_shell) -> int:
    """Run a page's commands in a folder, and print how each ended. In: `printed`, what other commands of the page
    printed. Out: the number of commands that failed, and of lines that the page shows and no command prints.
    """
    num_failed = 0
    for command, code in commands(text):
        begun = time.monotonic()
        if command.startswith("cd "):
            folder = folder / command.removeprefix("cd ")
            continue
        done = execute(command, folder)
        problem = problem_of(command, code, done)
        printed += done.stdout + "\n"
        num_failed += bool(problem)
        print(
            f"{'FAIL' if problem else 'ok  '} {time.monotonic() - begun:5.1f} s  {command.partition(chr(10))[0]}"
            + (f"\n     {problem}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}" if problem else ""),
            flush=True,
        )
    missing = not_printed(text, printed)
    print("".join(f"FAIL a line is shown that no command prints: {line}\n" for line in missing), end="")
    return num_failed + len(missing)


def main(*printed_by_make: str) -> None:
    text = re.sub(r"^\$ (make|git|cd|source) .*\n", "", (ROOT / "README.md").read_text(), flags=re.M)  # .ci/run has
    with in_few_processes() as execute:
        num_wrong = run(text, ROOT, "".join(Path(path).read_text() for path in printed_by_make), execute)
    sys.exit(min(1, num_wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
