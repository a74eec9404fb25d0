"""qlik_avro with schemas from a schema registry: recorded answers, and a real one (a proof)."""

import http.server
import json
import threading
from contextlib import contextmanager

import pytest

from inlet.bronze import lookups
from inlet.codecs import CODECS
from inlet.codecs.results import Decoded
from inlet.config import Project
from inlet.errors import TryAgain
from inlet.source import Source
from inlet.table import Table
from tests import test_cases
from tests.encode import qlik_avro
from tests.encode.qlik_avro import How
from tests.encode.qlik_change_table import Column

CODEC = CODECS["qlik_avro"]
HOW = How(namespace="com.attunity.queue.msg.shop.SHOP.T")  # a registry takes names of Avro alone
FIRST = [Column("ID", "INT8", key=1), Column("NAME", "WSTRING", 20)]
SECOND = [*FIRST, Column("COLOR", "STRING", 9)]
TABLE = Table(
    table="SHOP.T",
    name="t",
    key=["ID"],
    columns=[{"name": "ID", "type": "bigint"}, *({"name": n, "type": "string"} for n in ("NAME", "COLOR"))],
)
ROW = {"ID": 1, "NAME": "山", "COLOR": "red"}


def project_of(tmp_path, address: str) -> tuple[Project, Source]:
    place = {"transport": "parquet", "path": "landing", "lookups": f"{address}/schemas/ids/{{name}}"}
    source = Source(name="shop", codec="qlik_avro", tables={"t": "SHOP.T"}, **{"from": place})
    return Project(root=tmp_path, lakehouse="", sources={"shop": source}, tables={"SHOP.T": TABLE}), source


def message(schema_id: int, columns: list[Column]) -> dict:
    change = {"operation": "INSERT", "change_seq": "1" * 35, "after": ROW}
    value = qlik_avro.registered(schema_id, qlik_avro.datum(change, columns, HOW))
    return test_cases._message({"topic": "t", "value": value})


def decoded(project: Project, source: Source, given: dict) -> Decoded:
    """A message with what its codec names, as a run looks it up."""
    found = {name: lookups.fetch(project, source, name) for name in CODEC.lookups(given, source)}
    return CODEC.decode_message(lookups.with_lookups(CODEC, given, source, found), source, {"SHOP.T": TABLE}, [])


@contextmanager
def recorded(answers: dict[str, str]):
    """A server that gives a registry's answers."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            schema = answers.get(self.path)
            body = json.dumps({"schema": schema} if schema else {"error_code": 40403, "message": "not found"}).encode()
            self.send_response(200 if schema else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def assert_registry_is_asked(project: Project, source: Source, first: int, second: int) -> None:
    """Each message is read by the schema under its id; one whose id is unknown waits."""
    for schema_id, columns in ((first, FIRST), (second, SECOND)):
        [row] = decoded(project, source, message(schema_id, columns)).changes
        assert row["after"] == {name: ROW[name] for name in [c.name for c in columns]}
    [reject] = decoded(project, source, message(1 << 30, FIRST)).rejects
    assert reject.kind == "definition_missing"


def test_the_schema_of_a_message_is_what_a_registry_has_under_its_id(tmp_path):
    answers = {f"/schemas/ids/{n}": qlik_avro.data_schema(columns, HOW) for n, columns in ((7, FIRST), (8, SECOND))}
    with recorded(answers) as address:
        project, source = project_of(tmp_path, address)
        assert_registry_is_asked(project, source, 7, 8)
    with pytest.raises(TryAgain, match="cannot be looked up"):  # exit code 6
        decoded(project, source, message(7, FIRST))


@pytest.mark.proof
def test_a_real_registry_gives_the_schemas_and_ends_a_run_while_it_is_down(tmp_path):
    from infra.local import registry

    with registry.started(tmp_path / "registry") as running:
        ids = [running.register("t-value", qlik_avro.data_schema(columns, HOW)) for columns in (FIRST, SECOND)]
        project, source = project_of(tmp_path, running.address)
        assert_registry_is_asked(project, source, *ids)
    with pytest.raises(TryAgain, match="cannot be looked up"):
        decoded(project, source, message(ids[0], FIRST))
