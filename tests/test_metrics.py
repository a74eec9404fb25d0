"""Metrics and lineage, read back as those do who read them. Both are off unless inlet.yml asks for them."""

import contextlib
import http.server
import json
import os
import queue
import threading
from pathlib import Path
from unittest import mock

import pytest
import yaml
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from prometheus_client.parser import text_string_to_metric_families

from inlet import config
from inlet.commands import lineage, metrics, runs
from inlet.errors import CheckFailed, EnvironmentLacks, TryAgain
from inlet.log import Log
from tests import lakes, projects
from tests.lakes import BEGAN, batch, point, rejected, seq
from tests.test_cli import inlet


def asked(root: Path, **of) -> config.Project:
    """A project whose inlet.yml asks for metrics."""
    (root / "landing" / "depot").mkdir(parents=True, exist_ok=True)
    projects.make(root)
    path = root / "pipelines" / "inlet.yml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"metrics": of}))
    return config.load(root)


@contextlib.contextmanager
def server(status: int):
    """A lineage server that always gives the same answer; none for 0. Out: its port, and what it has been asked."""
    asked, is_over = queue.Queue(), threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked.put(json.loads(self.rfile.read(int(self.headers["content-length"])))["eventType"])
            if not status:
                is_over.wait()
                return
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever).start()
        try:
            yield listening.server_port, asked
        finally:
            is_over.set()
            listening.shutdown()


def samples(project) -> dict[tuple, float]:
    text = (project.root / "build" / "inlet.prom").read_text()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def events(path: Path) -> list[RunEvent]:
    """Events as the library's own types, which refuse what is none."""
    found = []
    for line in path.read_text().splitlines():
        fields = json.loads(line)
        found.append(
            RunEvent(
                eventType=RunState[fields["eventType"]],
                eventTime=fields["eventTime"],
                producer=fields["producer"],
                run=Run(fields["run"]["runId"], fields["run"].get("facets")),
                job=Job(fields["job"]["namespace"], fields["job"]["name"]),
                inputs=[InputDataset(one["namespace"], one["name"]) for one in fields["inputs"]],
                outputs=[
                    OutputDataset(one["namespace"], one["name"], facets=one["facets"]) for one in fields["outputs"]
                ],
            )
        )
    return found


def test_the_metrics_file_has_what_the_lakehouse_has(tmp_path):
    project = asked(tmp_path, prometheus="build/inlet.prom")
    lakes.write(
        project,
        "silver.batches",
        batch(1, "depot", seq(10), num_changes=90, num_rejected=1),
        batch(2, "depot", seq(40), num_changes=10, num_control=5),
    )
    lakes.write(project, "gold.published", point(1, BEGAN, depot=seq(10)))
    lakes.write(project, "silver.rejects", rejected("depot", "bad_digit"))
    log = Log(is_human=False)
    with runs.recorded(project, log):
        for _ in range(2):
            with log.step("silver"):
                pass
    found = samples(project)
    assert found["inlet_records_total", "changes", "depot"] == 100
    assert found["inlet_records_total", "control", "depot"] == 5
    assert found["inlet_lag_seconds", "depot"] == 1800
    assert found["inlet_rejects_open", "bad_digit", "depot"] == 1
    assert found[("inlet_last_run_exit_code",)] == 0 and ("inlet_step_seconds", "silver") in found
    assert found[("inlet_last_success_timestamp_seconds",)] == found[("inlet_last_run_timestamp_seconds",)]


def test_a_failed_run_leaves_the_time_of_the_last_good_one(tmp_path):
    project = asked(tmp_path, prometheus="build/inlet.prom")
    good = {"began": "2026-01-05T12:00:00+00:00", "seconds": 60, "command": "run", "exit_code": 0, "steps": []}
    metrics.tell(project, Log(is_human=False), good)
    metrics.tell(project, Log(is_human=False), good | {"began": "2026-01-05T13:00:00+00:00", "exit_code": 3})
    found = samples(project)
    assert found[("inlet_last_run_exit_code",)] == 3
    assert found[("inlet_last_run_timestamp_seconds",)] - found[("inlet_last_success_timestamp_seconds",)] == 3600


def test_a_run_with_nothing_new_is_a_good_one(tmp_path):
    project = asked(tmp_path, prometheus="build/inlet.prom")
    assert inlet("run", "--project", project.root).returncode == 0
    assert samples(project)[("inlet_last_success_timestamp_seconds",)] > 0


def test_each_run_tells_what_it_reads_and_writes_and_how_it_ended(tmp_path):
    project = asked(tmp_path, openlineage="build/lineage.jsonl")
    log = Log(is_human=False)
    with runs.recorded(project, log):
        pass
    with pytest.raises(CheckFailed), runs.recorded(project, log):
        raise CheckFailed("1 check of gold failed")
    found = events(tmp_path / "build" / "lineage.jsonl")
    assert [event.eventType.name for event in found] == ["START", "COMPLETE", "START", "FAIL"]
    assert found[0].run.runId == found[1].run.runId != found[2].run.runId == found[3].run.runId
    assert found[3].run.facets["errorMessage"]["message"] == "1 check of gold failed"
    assert {event.job.name for event in found} == {f"{tmp_path.name}.run"}
    [read], [written] = found[1].inputs, found[1].outputs
    assert (read.namespace, read.name) == ("file", f"{tmp_path}/landing/depot/*.lxg")
    assert (written.namespace, written.name) == ("file", f"{tmp_path}/lakehouse/public/items")
    columns = [(field["name"], field["type"]) for field in written.facets["schema"]["fields"]]
    assert columns == [("source", "string"), ("item_id", "int"), ("name", "string"), ("price", "decimal(7,2)")]


def test_a_topic_is_a_dataset_of_its_broker(tmp_path):
    read = {"transport": "kafka", "servers": "b1:9092, b2:9092", "topics": ["shop.orders", "depot.*"]}
    source = {"codec": "qlik_json", "from": read, "tables": {"shop.orders": "DEPOT.ITEMS"}}
    found = lineage._inputs(projects.make(tmp_path, {"shop": source}))
    assert [(one.namespace, one.name) for one in found] == [
        ("kafka://b1:9092,b2:9092", "shop.orders"),
        ("kafka://b1:9092,b2:9092", "depot.*"),
    ]


def test_the_library_s_own_settings_say_where_events_go(tmp_path, monkeypatch):
    settings = {"transport": {"type": "file", "log_file_path": str(tmp_path / "events.jsonl"), "append": True}}
    (tmp_path / "openlineage.yml").write_text(yaml.safe_dump(settings))
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(tmp_path / "openlineage.yml"))
    with runs.recorded(asked(tmp_path, openlineage=True), Log(is_human=False)):
        pass
    assert [event.eventType.name for event in events(tmp_path / "events.jsonl")] == ["START", "COMPLETE"]


def test_a_server_that_does_not_answer_is_asked_once_and_again_some_minutes_later(tmp_path, capsys):
    project, log = asked(tmp_path, openlineage=True), Log(is_human=False)
    with server(0) as (port, heard):
        settings = {"TYPE": "http", "URL": f"http://127.0.0.1:{port}", "TIMEOUT": "0.2"}
        with mock.patch.dict(os.environ, {f"OPENLINEAGE__TRANSPORT__{name}": it for name, it in settings.items()}):
            for _ in range(3):
                with runs.recorded(project, log):
                    pass
            assert heard.get(timeout=30) == "START" and heard.empty()
            lineage._paused_until[project.root] -= lineage.PAUSE_SECONDS
            with runs.recorded(project, log):
                pass
            assert heard.get(timeout=30) == "START" and heard.empty()
    assert capsys.readouterr().err.count("nothing is sent for 5 minutes") == 2


def test_a_server_is_tried_as_often_as_the_library_s_own_settings_say(tmp_path):
    retry = {"total": 2, "backoff_factor": 0}
    with server(503) as (port, heard):
        transport = {"type": "http", "url": f"http://127.0.0.1:{port}", "retry": retry}
        (tmp_path / "openlineage.yml").write_text(yaml.safe_dump({"transport": transport}))
        with mock.patch.dict(os.environ, {"OPENLINEAGE_CONFIG": str(tmp_path / "openlineage.yml")}):
            with runs.recorded(asked(tmp_path, openlineage=True), Log(is_human=False)):
                pass
    assert [heard.get_nowait() for _ in range(heard.qsize())] == ["START"] * 3


def test_a_password_in_an_address_is_in_no_warning_and_in_no_event(tmp_path, capsys):
    with server(401) as (port, _):
        with mock.patch.dict(os.environ, {"OPENLINEAGE_URL": f"http://me:pa55word@127.0.0.1:{port}"}):
            with runs.recorded(asked(tmp_path / "refused", openlineage=True), Log(is_human=False)):
                pass
    warning = capsys.readouterr().err
    assert "401" in warning and f"http://127.0.0.1:{port}" in warning and "pa55word" not in warning
    with pytest.raises(TryAgain), runs.recorded(asked(tmp_path, openlineage="events.jsonl"), Log(is_human=False)):
        raise TryAgain("sftp://me:pa55word@host/in does not answer")
    failed = events(tmp_path / "events.jsonl")[-1]
    assert failed.run.facets["errorMessage"]["message"] == "sftp://host/in does not answer"


def test_what_cannot_be_told_fails_no_run(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    project = asked(tmp_path, prometheus="file/inlet.prom", openlineage="file/lineage.jsonl")
    with runs.recorded(project, Log(is_human=False)):
        pass
    warnings = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["step"] for line in warnings] == ["warning"] * 2
    assert "START could not be sent" in warnings[0]["openlineage"] and "could not be written" in warnings[1]["metrics"]
    assert [run["exit_code"] for run in runs.last(project)] == [0]


def test_a_library_that_is_not_there_is_said_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setitem(metrics.LIBRARIES, "prometheus", "no_such.library")
    project, is_begun = asked(tmp_path, prometheus="build/inlet.prom"), False
    with pytest.raises(EnvironmentLacks, match="pip install"), runs.recorded(project, Log(is_human=False)):
        is_begun = True
    assert not is_begun


def test_nothing_is_told_unless_asked_for(tmp_path):
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    project = projects.make(tmp_path)
    with runs.recorded(project, Log(is_human=False)):
        pass
    assert not list(tmp_path.rglob("*.prom")) and not (tmp_path / "build").exists()
