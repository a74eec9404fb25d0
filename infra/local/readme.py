"""Runs the commands of README.md: in a ```console block each line that begins with `$ `. One that fails, fails the gate.

A command whose exit code is meant to be another says so: `$ inlet decode broken.lxg   # exits 3`. `make` and `git`
commands are run by .ci/run itself.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN_ELSEWHERE = ("make ", "git ", "cd ", "source ")


def commands(text: str) -> list[tuple[str, int]]:
    """(command, exit code it should end with) in order."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        for line in re.findall(r"^\$ (.+)$", block, re.M):
            command, _, remark = line.partition("   # ")
            code = re.search(r"exits (\d+)", remark)
            if not command.startswith(RUN_ELSEWHERE):
                found.append((command.strip(), int(code[1]) if code else 0))
    return found


def main() -> None:
    environment = os.environ | {"PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}"}
    num_failed = 0
    for command, code in commands((ROOT / "README.md").read_text()):
        done = subprocess.run(command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, executable="/bin/bash")
        print(f"{'ok  ' if done.returncode == code else 'FAIL'} {command}", flush=True)
        if done.returncode != code:
            num_failed += 1
            print(f"     exit {done.returncode}, expected {code}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
    sys.exit(num_failed and 1)


if __name__ == "__main__":
    main()
