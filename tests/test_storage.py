"""Places: which are addresses, what a store lists, and what is said where it cannot be reached."""

import http.server
import socket
import threading
from functools import partial

import pytest
import requests
import yaml

from inlet import bronze, config, lake, storage, store_errors
from inlet.bronze import blocks
from inlet.errors import ConfigError, EnvironmentLacks, TryAgain
from inlet.lake import snapshots
from tests import projects, stores
from tests.encode import linkexpress

BUCKET = "landing"
NAMES = ["20260105031500_000012.lxg", "it's 100% [1].lxg", "在庫 #1+1?&=.lxg", "a::b.lxg", "dt=1;x.lxg"]


@pytest.fixture(scope="module")
def store():
    with stores.s3(BUCKET) as store:
        yield store


@pytest.fixture
def strict_store():
    """A store that knows no credentials."""
    with stores.s3("strict") as (endpoint, _):
        requests.post(f"{endpoint}/moto-api/reset-auth", data=b"0", timeout=10).raise_for_status()
        yield endpoint
        requests.post(f"{endpoint}/moto-api/reset-auth", data=b"inf", timeout=10).raise_for_status()


def with_storage(project: config.Project, stores: dict) -> config.Project:
    """A project with a block `storage`."""
    path = project.root / "pipelines" / "inlet.yml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"storage": stores}))
    return config.load(project.root)


def project_of(root, pattern: str, endpoint: str) -> config.Project:
    options = projects.DEPOT["options"] | {"file_name": r".*(?P<time>)"}
    made = projects.make(root, {"depot": {**projects.DEPOT, "from": pattern, "options": options}})
    return with_storage(made, {"s3://": {"endpoint": endpoint, "region": stores.REGION}})


def plan(project, *before) -> bronze.Plan:
    return bronze.plan_batch(project, list(project.sources.values()), bronze.History(project, [*before]), now=1e12)


@pytest.mark.parametrize(
    "pattern, expected",
    [
        ("names", NAMES),
        ("names/*.lxg", NAMES),
        ("names/it*.lxg", NAMES[1:2]),
        ("names/**/*.lxg", [*NAMES, "deep/er/last.lxg"]),
        ("names/*/er/*", ["deep/er/last.lxg"]),
        ("none", []),
    ],
)
def test_a_pattern_names_objects_as_it_names_files_of_a_folder(store, tmp_path, pattern, expected):
    endpoint, client = store
    for name in [*NAMES, "deep/er/last.lxg", ".hidden", "_SUCCESS", "folder/"]:
        client.put_object(Bucket=BUCKET, Key=f"names/{name}", Body=name.encode())
    project = project_of(tmp_path, f"s3://{BUCKET}/{pattern}", endpoint)
    found = plan(project).files
    assert sorted(row["path"] for row in found) == sorted(f"s3://{BUCKET}/names/{name}" for name in expected)
    for row in found:
        read = b"".join(block["bytes"] for block in blocks.units_of(project, row))
        assert row["path"].endswith(read.decode()) and row["modified_at"] is not None


def test_an_object_that_was_written_again_and_longer_is_read_from_where_it_was(store, tmp_path):
    endpoint, client = store
    project = project_of(tmp_path, f"s3://{BUCKET}/grown/*.lxg", endpoint)
    records = [projects.item_records(1 + 4 * n, 4) for n in range(2)]
    first, second = (linkexpress.encode_file(some, True, "big", "cp932", {1: projects.LAYOUT}) for some in records)
    ends = []
    before: list[dict] = []
    for body in (first, first, first + second):  # in one process: its listing is a new one each time
        client.put_object(Bucket=BUCKET, Key="grown/a.lxg", Body=body)
        new = plan(project, *before).files
        ends.append([(row["ofs_start"], row["ofs_end"]) for row in new])
        before += new
    assert ends == [[(0, len(first))], [], [(len(first), len(first + second))]]


def test_objects_are_listed_in_pages(store, tmp_path):
    endpoint, client = store
    names = {f"many/{n:05}.lxg" for n in range(1_050)}
    for name in names:
        client.put_object(Bucket=BUCKET, Key=name, Body=b"")
    project_of(tmp_path, f"s3://{BUCKET}/many", endpoint)
    assert {address.removeprefix(f"s3://{BUCKET}/") for address, _ in storage.find(f"s3://{BUCKET}/many")} == names


@pytest.mark.parametrize("pattern", ["in", "in/**/*.lxg"])
def test_a_bucket_that_does_not_exist_is_not_one_without_files(store, tmp_path, pattern):
    project = project_of(tmp_path, f"s3://landing-of-shop/{pattern}", store[0])
    assert "there is no bucket landing-of-shop. Create it" in str(plan(project).unlisted["depot"])


def test_a_store_that_does_not_answer_is_asked_again_by_the_next_run(tmp_path, monkeypatch):
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
    project = project_of(tmp_path, f"s3://{BUCKET}/in", endpoint)
    error = plan(project).unlisted["depot"]
    assert error.exit_code == TryAgain.exit_code and f"s3://{BUCKET}/in: its store does not answer" in str(error)
    with pytest.raises(TryAgain, match="a.lxg: its store does not answer"):
        storage.Stream(f"s3://{BUCKET}/in/a.lxg").read()


def test_credentials_that_a_store_does_not_know_stop_the_run(tmp_path, strict_store, monkeypatch):
    for pattern in ("s3://strict/in", "s3://strict/in/*.lxg", "s3://strict/in/**"):
        error = plan(project_of(tmp_path, pattern, strict_store)).unlisted["depot"]
        assert error.exit_code == EnvironmentLacks.exit_code and "may not be read" in str(error)
        assert "a secret" not in str(error)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    storage.open_store("s3://strict")[0].clear_instance_cache()
    storage._s3_session.cache_clear()
    error = plan(project_of(tmp_path, pattern, strict_store)).unlisted["depot"]
    assert "cannot be read without credentials" in str(error) and "AWS_ACCESS_KEY_ID" in error.remedy


def test_files_of_a_web_server_have_their_sizes_and_no_password_is_shown(tmp_path):
    (tmp_path / "a.lxg").write_bytes(b"hello")
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        assert [(name, about["size"]) for name, about in storage.find(f"{address}/*.lxg")] == [(f"{address}/a.lxg", 5)]
        server.shutdown()
    with pytest.raises(TryAgain) as raised:
        list(storage.find(address.replace("//", "//me:secret@") + "/*.lxg"))
    assert "secret" not in str(raised.value)


def test_the_longest_beginning_of_an_address_says_how_it_is_reached():
    storage.use({"s3://": storage.Store(region="a"), "s3://shop": storage.Store(region="b")})
    addresses = ("s3://shop/in", "s3://depot/in", "gs://shop/in")
    assert [storage.store_of(address).region for address in addresses] == ["b", "a", None]


@pytest.mark.parametrize(
    "block, message",
    [
        ({"s3://": {"key": "k"}}, "storage.s3://: key: is not known"),
        ({"landing": {}}, "storage.landing is no beginning of an address. It looks like `s3://bucket`"),
        ({"s3://": "eu"}, "storage.s3://: expected fields"),
        ({"s3://": {"endpoint": "127.0.0.1:9000"}}, "storage.s3://: endpoint: "),
        (
            {"abfss://": {"endpoint": "https://a"}},
            "storage.abfss://: endpoint is nothing that Inlet sets for this kind",
        ),
        ({"sftp://": {"region": "a"}}, "storage.sftp://: region is nothing that Inlet sets for this kind of store"),
        ({"s3://landung": {}}, "storage.s3://landung fits neither the lakehouse"),
    ],
)
def test_what_storage_cannot_mean_is_said(tmp_path, block, message):
    with pytest.raises(ConfigError) as raised:
        with_storage(projects.make(tmp_path), block)
    assert message in str(raised.value)


def test_a_lakehouse_lies_in_a_folder_or_in_s3(tmp_path):
    with pytest.raises(ConfigError, match="a lakehouse cannot lie at gs://lake/house"):
        projects.make(tmp_path, lakehouse="gs://me:secret@lake/house")


def test_a_url_of_a_file_is_its_path(tmp_path):
    place = f"file://{tmp_path}/landing/*.lxg"
    project = projects.make(tmp_path, {"depot": {**projects.DEPOT, "from": place}}, lakehouse=f"file://{tmp_path}/lake")
    assert project.sources["depot"].path == f"{tmp_path}/landing/*.lxg"
    assert project.lakehouse_path("gold") == f"{tmp_path}/lake/gold"


DELTA = "Generic S3 error\n  \x1b[31m↳\x1b[0m GET http://me:secret@a:9000/lake/400?X-Amz-Signature=s - "


@pytest.mark.parametrize(
    "text, code",
    [
        (DELTA + "HTTP error\n ↳ error sending request\n ↳ Connection refused (os error 111)", 6),
        (DELTA + "Server returned non-2xx status code: 503 Service Unavailable", 6),
        (DELTA + "Server returned non-2xx status code: 403 Forbidden: <Code>AccessDenied</Code>", 5),
        (DELTA + "<Error><Code>ExpiredToken</Code></Error>", 5),
        (DELTA + "<Error><Code>NoSuchBucket</Code></Error>", 2),
        ("Generic S3 error: PUT http://169.254.169.254/latest/api/token - error sending request", 5),
        ("The operation lacked the necessary privileges to complete for path house/_lease/_delta_log/1.json", 5),
        ("java.io.IOException\n\tat org.apache.hadoop.fs.s3a.S3AFileSystem.open(S3AFileSystem.java:403)", None),
        ("column credential of s3://lake/day=400/x.csv has 403 records", None),
        ("Generic LocalFileSystem error: /data/500/x: No space left on device, timed out", None),
    ],
)
def test_errors_of_a_store_that_delta_rs_and_spark_meet(text, code):
    found = store_errors.worded(OSError(text))
    assert (found and found.exit_code) == code
    assert found is None or not {"secret", "Signature"} & {
        word for word in ("secret", "Signature") if word in str(found)
    }


def test_a_table_in_a_store_is_opened_again_only_where_it_was_written(store, monkeypatch):
    endpoint, client = store
    monkeypatch.setattr(storage, "_stores", {"s3://": storage.Store(endpoint=endpoint, region=stores.REGION)})
    lakehouse, opened, open_table = f"s3://{BUCKET}/house", [], snapshots.open_table

    def opening(*place):
        opened.append(place)
        return open_table(*place)

    def read() -> tuple[list[int], int]:
        monkeypatch.setattr(snapshots, "open_table", opening)
        rows = lake.peek(lakehouse, "silver.batches", ["batch_id"], "order by 1")
        monkeypatch.setattr(snapshots, "open_table", open_table)
        return [row["batch_id"] for row in rows], len(opened)

    def write(*batches: int) -> None:
        for number in batches:
            lake.add_rows(lakehouse, "silver.batches", [{"batch_id": number, "source": "depot"}])

    assert read() == ([], 1)  # no table
    write(1, 2, 3)
    assert [read(), read(), read()] == [([1, 2, 3], 1)] * 3  # the writer has opened it
    write(4)
    assert [read(), read()] == [([1, 2, 3, 4], 1)] * 2
    for listed in client.list_objects_v2(Bucket=BUCKET, Prefix="house/")["Contents"]:
        client.delete_object(Bucket=BUCKET, Key=listed["Key"])
    write(7)  # a table of the same name, made again
    assert [read(), read()] == [([7], 2)] * 2
