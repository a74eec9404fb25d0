"""A store that is large, slow, silent or busy, and objects that are written again: the requests, and the messages."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inlet import bronze, config, publish, storage, store_errors
from inlet.bronze import blocks, landing
from inlet.commands import runs, serve
from inlet.errors import InletError, TryAgain
from inlet.gold import generate
from inlet.log import Log
from tests import faulty_store, projects, stores
from tests.both_ways import in_tasks
from tests.encode import linkexpress
from tests.test_cli import inlet
from tests.test_storage import plan, project_of, with_storage

OTHER = linkexpress.encode_file(projects.item_records(5, 4), True, "big", "cp932", {1: projects.LAYOUT})
REPO = Path(__file__).resolve().parents[1]
NUM_TRIES = storage.S3_LIMITS["retries"]["total_max_attempts"]


@pytest.fixture(scope="module")
def upstream():
    with stores.s3("landing") as store:
        yield store


@pytest.fixture
def faulty(upstream, monkeypatch):
    """Its address, what makes it fail, what it was asked; without pauses between tries."""
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)
    with stores.faulty(upstream[0]) as store:
        yield store


LOOK = """
import json, resource, sys
from datetime import datetime
from inlet import bronze, config
from tests import faulty_store
project, one = config.load(sys.argv[1]), json.loads(sys.argv[2])
one["modified_at"] = datetime.fromisoformat(faulty_store.WRITTEN)
known = [one | {"path": f"s3://many/in/{n:06}.lxg"} for n in range(faulty_store.NUM_MANY - 3)]
past = bronze.History(project, known)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = bronze.plan_batch(project, list(project.sources.values()), past)
print(json.dumps([row["path"] for row in found.files]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_look_at_a_hundred_thousand_objects_takes_a_request_a_page_and_one_for_each_that_is_new(
    faulty, upstream, tmp_path
):
    endpoint, _, requests = faulty
    upstream[1].put_object(Bucket="landing", Key="one/1.lxg", Body=faulty_store.OBJECT)
    [one] = plan(project_of(tmp_path / "one", "s3://landing/one/*.lxg", endpoint)).files
    requests()
    project_of(tmp_path, "s3://many/in/*.lxg", endpoint)
    command = [sys.executable, "-c", LOOK, str(tmp_path), json.dumps(one, default=str)]
    paths, kilobytes = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout.splitlines()
    assert json.loads(paths) == [f"s3://many/in/{n:06}.lxg" for n in range(99_997, 100_000)]
    assert requests() == {"LIST": 100, "GET": 3}
    assert int(kilobytes) < 400_000  # half of it was used; all of it is linear


def failing(status: int, code: str, of: str, **times: int) -> dict:
    return {"of": of, "status": status, "code": code} | times


@pytest.mark.parametrize("code", ["SlowDown", "ServiceUnavailable"])
def test_a_store_that_is_busy_for_a_while_is_asked_again(faulty, upstream, tmp_path, code):
    endpoint, fail, requests = faulty
    upstream[1].put_object(Bucket="landing", Key="busy/1.lxg", Body=faulty_store.OBJECT)
    project = project_of(tmp_path, "s3://landing/busy/*.lxg", endpoint)
    requests()
    fail(*(failing(503, code, of, times=NUM_TRIES - 1) for of in ("LIST", "GET")))
    [row] = plan(project).files
    assert row["ofs_end"] == len(faulty_store.OBJECT)
    assert requests() == {"LIST": NUM_TRIES, "GET": NUM_TRIES}


@pytest.mark.parametrize(
    "code, of, num_tries",
    [
        ("SlowDown", "LIST", NUM_TRIES * storage.S3FS_TRIES),
        ("ServiceUnavailable", "LIST", NUM_TRIES),
        ("SlowDown", "GET", NUM_TRIES * storage.S3FS_TRIES),
        ("ServiceUnavailable", "GET", NUM_TRIES),
    ],
)
def test_a_store_that_stays_busy_is_left_to_the_next_run(faulty, upstream, tmp_path, code, of, num_tries):
    endpoint, fail, requests = faulty
    upstream[1].put_object(Bucket="landing", Key="busy/1.lxg", Body=faulty_store.OBJECT)
    project = project_of(tmp_path, "s3://landing/busy/*.lxg", endpoint)
    requests()
    fail(failing(503, code, of))
    with pytest.raises(TryAgain, match=f"its store does not answer: .*{code} is meant"):
        for error in plan(project).unlisted.values():
            raise error
    assert requests()[of] == num_tries


@pytest.mark.parametrize("of, num_tries", [("LIST", 2 * storage.S3FS_TRIES), ("GET", 2 * storage.S3FS_TRIES**2)])
def test_a_store_that_is_silent_is_left_to_the_next_run(faulty, upstream, tmp_path, monkeypatch, of, num_tries):
    limits = storage.S3_LIMITS | {"read_timeout": 0.2, "retries": {"mode": "standard", "total_max_attempts": 2}}
    monkeypatch.setattr(storage, "S3_LIMITS", limits)
    endpoint, fail, requests = faulty
    upstream[1].put_object(Bucket="landing", Key="silent/1.lxg", Body=faulty_store.OBJECT)
    project = project_of(tmp_path, "s3://landing/silent/*.lxg", endpoint)
    requests()
    fail({"of": of, "is_silent": True})
    with pytest.raises(TryAgain, match="its store does not answer: Read timeout"):
        for error in plan(project).unlisted.values():
            raise error
    assert requests()[of] == num_tries


def test_a_planned_object_of_a_store_that_stays_busy_is_not_set_aside(faulty, upstream, tmp_path):
    endpoint, fail, _ = faulty
    upstream[1].put_object(Bucket="landing", Key="later/1.lxg", Body=faulty_store.OBJECT)
    project = project_of(tmp_path, "s3://landing/later/*.lxg", endpoint)
    [row] = plan(project).files
    fail(failing(503, "SlowDown", "GET"))
    with pytest.raises(TryAgain, match="its store does not answer"):
        landing._problem_now(project, row)


@pytest.mark.parametrize(
    "status, code, expected",
    [
        (503, "SlowDown", "its store does not answer"),
        (403, "AccessDenied", "a person: it cannot be opened"),
        (404, "NoSuchKey", None),
    ],
)
def test_a_store_that_fails_in_a_task_fails_as_in_the_driver(faulty, upstream, tmp_path, status, code, expected):
    endpoint, fail, _ = faulty
    for number in range(3):
        upstream[1].put_object(Bucket="landing", Key=f"tasks/{number}.lxg", Body=faulty_store.OBJECT)
    project = project_of(tmp_path, "s3://landing/tasks/*.lxg", endpoint)
    fail(failing(status, code, "GET"))
    outcomes = []
    for planned in (plan, in_tasks):
        try:
            found = planned(project, bronze.History(project, [])) if planned is in_tasks else planned(project)
            outcomes.append((found.files, found.held, found.waiting, None))
        except TryAgain as error:
            outcomes.append(([], {}, {}, (error.message, error.remedy)))
    assert outcomes[0] == outcomes[1]
    files, held, waiting, error = outcomes[0]
    said = [*held.values(), *filter(None, [error and error[0]])]
    assert (files, waiting) == ([], {}) and all(expected in words for words in said) and bool(said) == bool(expected)


def test_a_body_that_breaks_off_is_read_again(faulty, upstream, tmp_path):
    endpoint, fail, requests = faulty
    upstream[1].put_object(Bucket="landing", Key="broken/1.lxg", Body=faulty_store.OBJECT)
    project = project_of(tmp_path, "s3://landing/broken/*.lxg", endpoint)
    requests()
    fail({"of": "GET", "len_sent": 10, "times": 1})
    assert [row["ofs_end"] for row in plan(project).files] == [len(faulty_store.OBJECT)]
    assert requests()["GET"] == 2


def test_an_object_that_is_replaced_after_it_was_listed_is_planned_by_the_next_run(upstream, tmp_path, monkeypatch):
    endpoint, client = upstream
    project = project_of(tmp_path, "s3://landing/replaced/*.lxg", endpoint)
    client.put_object(Bucket="landing", Key="replaced/1.lxg", Body=OTHER)
    find = storage.find

    def find_and_replace(pattern):
        yield from find(pattern)
        client.put_object(Bucket="landing", Key="replaced/1.lxg", Body=faulty_store.OBJECT)

    monkeypatch.setattr(storage, "find", find_and_replace)
    assert plan(project).files == []
    monkeypatch.setattr(storage, "find", find)
    [row] = plan(project).files
    assert b"".join(block["bytes"] for block in blocks.units_of(project, row)) == faulty_store.OBJECT


def test_an_object_that_is_replaced_after_it_was_planned_is_not_landed(upstream, tmp_path):
    endpoint, client = upstream
    project = project_of(tmp_path, "s3://landing/planned/*.lxg", endpoint)
    client.put_object(Bucket="landing", Key="planned/1.lxg", Body=OTHER)
    [row] = plan(project).files
    client.put_object(Bucket="landing", Key="planned/1.lxg", Body=faulty_store.OBJECT)
    with pytest.raises(store_errors.Replaced):  # the listing is still known
        list(blocks.units_of(project, row))
    storage.open_store(row["path"])[0].invalidate_cache()  # as in a worker of Spark
    with pytest.raises(InletError, match="sha-256 .* planned"):
        list(blocks.units_of(project, row))


def test_an_object_that_is_replaced_while_it_is_read_gives_no_bytes_of_the_other(upstream, monkeypatch):
    endpoint, client = upstream
    monkeypatch.setattr(storage, "_stores", {"s3://": storage.Store(endpoint=endpoint, region=stores.REGION)})
    monkeypatch.setattr("s3fs.S3FileSystem.default_block_size", 1 << 20)
    client.put_object(Bucket="landing", Key="large", Body=bytes(4 << 20))
    with storage.Stream("s3://landing/large") as stream:
        assert stream.read(10) == bytes(10)
        client.put_object(Bucket="landing", Key="large", Body=b"x" * (4 << 20))
        with pytest.raises(store_errors.Replaced, match="s3://landing/large was written again while it was read"):
            stream.read(3 << 20)


def test_an_object_of_several_parts_is_seen_once_it_is_complete(upstream, tmp_path):
    endpoint, client = upstream
    project = project_of(tmp_path, "s3://landing/parts/*.lxg", endpoint)
    place = {"Bucket": "landing", "Key": "parts/1.lxg"}
    upload = place | {"UploadId": client.create_multipart_upload(**place)["UploadId"]}
    size = -(-(5 << 20) // len(faulty_store.OBJECT)) * len(faulty_store.OBJECT)  # the least of a part
    parts = []
    for number, body in enumerate((faulty_store.OBJECT * (size // len(faulty_store.OBJECT)), OTHER), start=1):
        tag = client.upload_part(**upload, PartNumber=number, Body=body)["ETag"]
        parts.append({"PartNumber": number, "ETag": tag})
        assert plan(project).files == []
    client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    assert [row["ofs_end"] for row in plan(project).files] == [size + len(OTHER)]


REFUSALS = {  # what the store answers, the exit code, the message
    "denied": (failing(403, "AccessDenied", "*"), 5, "The "),
    "cannot be listed": (failing(403, "AccessDenied", "LIST"), 5, "does not allow it"),
    "expired": (failing(400, "ExpiredToken", "*"), 5, "does not allow it: ExpiredToken"),
    "no bucket": (failing(404, "NoSuchBucket", "*"), 2, "does not exist: NoSuchBucket"),
    "busy": (failing(503, "SlowDown", "*"), 6, "does not answer: SlowDown"),
}


def lakehouse_at(endpoint: str, root: Path) -> None:
    """A project with a file to land, whose lakehouse is in a store."""
    made = projects.make(root, {"depot": projects.DEPOT | {"from": "landing/*.lxg"}}, lakehouse="s3://landing/house")
    project = with_storage(made, {"s3://": {"endpoint": endpoint, "region": stores.REGION}})
    (root / "landing").mkdir()
    (root / "landing" / "20260105031500_000012.lxg").write_bytes(faulty_store.OBJECT)
    shutil.copytree(REPO / "dbt", root / "dbt", ignore=shutil.ignore_patterns("target", "gold"))
    generate.write(project)


@pytest.mark.parametrize("why", REFUSALS)
@pytest.mark.parametrize("words", [["status"], ["show", "items", "--key", "1"], ["sql", "select 1"], ["run"]])
def test_a_lakehouse_whose_store_refuses_ends_a_command_with_one_sentence(faulty, tmp_path, why, words):
    endpoint, fail, _ = faulty
    lakehouse_at(endpoint, tmp_path)
    answer, code, message = REFUSALS[why]
    fail(answer)
    result = inlet(*words, "--project", str(tmp_path))
    assert result.returncode == code and "Traceback" not in result.stderr
    [line] = result.stderr.splitlines()
    assert "lakehouse" in line and message in line


def test_a_plain_dbt_of_a_lakehouse_whose_store_refuses_ends_with_the_same_sentence(faulty, tmp_path):
    endpoint, fail, _ = faulty
    lakehouse_at(endpoint, tmp_path)
    answer, _, message = REFUSALS["expired"]
    fail(answer)
    environment = os.environ | {"INLET_LAKEHOUSE": "s3://landing/house"}
    dbt = [Path(sys.executable).with_name("dbt"), "build"]
    done = subprocess.run(dbt, cwd=tmp_path / "dbt", env=environment, text=True, capture_output=True, timeout=120)
    assert done.returncode == 2 and "Traceback" not in done.stdout + done.stderr
    assert message in done.stdout


def test_a_server_goes_on_while_the_store_of_its_lakehouse_is_busy(faulty, tmp_path, monkeypatch, capsys):
    endpoint, fail, _ = faulty
    lakehouse_at(endpoint, tmp_path)
    monkeypatch.setattr(serve, "SHOW_SECONDS", 0.01)
    monkeypatch.setattr(serve, "_show", lambda project: pytest.fail("no point is published"))
    looks, newest = [], publish.newest

    def look(project):
        looks.append(project)
        if len(looks) == 2:
            fail(failing(503, "SlowDown", "*"))
            server.stdin.close()
        return newest(project)

    monkeypatch.setattr(publish, "newest", look)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as server:  # in place of Spark's; it ends with its input
        assert serve.wait(config.load(tmp_path), server) == 0
    assert "the views stay at their point for now: The store of the lakehouse" in capsys.readouterr().err


def test_the_end_of_a_run_does_not_wait_for_a_silent_store_to_note_it(faulty, tmp_path, monkeypatch, capsys):
    endpoint, fail, _ = faulty
    lakehouse_at(endpoint, tmp_path)
    monkeypatch.setattr(runs, "NOTE_SECONDS", 0.5)
    fail({"of": "*", "is_silent": True})
    began = time.monotonic()
    with pytest.raises(TryAgain, match="meant"), runs.recorded(config.load(tmp_path), Log()):
        raise TryAgain("meant", "")
    assert time.monotonic() - began < 5
    assert "could not be noted in _runs: s3://landing/house did not answer" in capsys.readouterr().err


def test_errors_of_a_file_of_a_lakehouse_are_those_of_its_store(faulty, monkeypatch):
    endpoint, fail, _ = faulty
    monkeypatch.setattr(storage, "_stores", {"s3://": storage.Store(endpoint=endpoint, region=stores.REGION)})
    for answer, code, _ in REFUSALS.values():
        fail(answer | {"of": "LIST"})
        files, place = storage.open_store("s3://landing/house/_runs")
        with pytest.raises(OSError) as raised:
            files.call_s3("list_objects_v2", Bucket="landing")
        assert store_errors.worded(raised.value).exit_code == code
