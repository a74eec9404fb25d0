"""What a run says while it works: to a log collector one JSON object a line, to a person a spinner."""

import json
import threading

from rich.console import Console

from inlet.commands.run import say_rejects
from inlet.log import Doing, Log
from tests import lakes, projects


def said(capsys) -> list[dict]:
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    return [{name: value for name, value in line.items() if name not in ("at", "seconds")} for line in lines]


def test_each_part_of_a_long_step_gets_a_line_when_it_is_done(capsys):
    log = Log(is_human=False)
    with log.step("gold", tables=2) as figures:
        log.now("orders__current", done=0, of=2)
        log.now("orders__current", done=1, of=2, finished={"table": "orders", "seconds": 3.5})
        figures["models"] = 6
    assert said(capsys) == [
        {"step": "gold", "table": "orders", "done": 1, "of": 2},
        {"step": "gold", "tables": 2, "models": 6},
    ]


def test_what_a_run_rejected_is_one_line_by_kind_and_none_where_nothing_was(tmp_path, capsys):
    project = projects.make(tmp_path)
    kinds = {1: ["bad_date", "missing_key", "bad_date"], 2: ["bad_text"]}
    rows = [lakes.rejected("depot", kind, batch_id=n) for n, found in kinds.items() for kind in found]
    say_rejects(project, [1], Log(is_human=False))
    lakes.write(project, "silver.rejects", *rows)
    say_rejects(project, [3], Log(is_human=False))
    say_rejects(project, [], Log(is_human=False))
    assert capsys.readouterr().err == ""
    say_rejects(project, [1], Log(is_human=False))
    kinds = {"bad_date": 2, "missing_key": 1}
    assert said(capsys) == [{"step": "rejects", "new": 3, "kinds": kinds, "see": "inlet rejects"}]
    say_rejects(project, [1], Log(is_human=True))
    line = "rejects  new 3  kinds bad_date 2, missing_key 1  see inlet rejects"
    assert capsys.readouterr().err.strip() == line


def test_a_step_that_goes_on_says_so_again_and_again(capsys):
    log, heard = Log(is_human=False, every=0.01), threading.Event()
    log.say, say = lambda entry: (say(entry), heard.set()), log.say
    with log.step("silver", batch=7):
        log.now("decoding messages of shop")
        heard.clear()
        assert heard.wait(30)
    first = next(line for line in said(capsys) if line.get("doing"))
    assert first.pop("so_far").endswith(" s")
    assert first == {"step": "silver", "batch": 7, "doing": "decoding messages of shop"}
    assert log.doing is None


def test_a_step_that_fails_is_said_and_kept_as_one_that_did(capsys):
    log = Log(is_human=False)
    try:
        with log.step("gold"):
            raise ValueError("no")
    except ValueError:
        pass
    assert said(capsys) == [{"step": "gold", "failed": True}] and log.steps[0]["failed"]


def test_a_spinner_tells_what_is_done_and_what_is_left():
    doing = Doing("verify", {"table": "orders"})
    doing.now("folds all that silver holds of it", 1, 3, doing.began - 60)
    text = doing.__rich__().plain
    assert text.startswith("verify table orders ...") and "1 of 3 done" in text and text.endswith("about 2 min left")


def test_names_in_what_a_spinner_says_are_no_markup():
    doing, to = Doing("gold", {"table": "[red]odd"}), Console(width=200)
    doing.now("[bold]model", 0, 0, None)
    with to.capture() as shown:
        to.print(doing)
    assert "[red]odd" in shown.get() and "[bold]model" in shown.get()
