"""A store in front of the one of `stores.s3`, that fails on request, and counts requests.

`python -m tests.faulty_store UPSTREAM` prints its port. It has a bucket `many` of NUM_MANY objects by itself, which
it lists in pages; every other request goes to the upstream.

`PUT /_faults` takes a list of faults: `of`, a method, LIST or *; `by`, how its client calls itself, in part; `times`,
for how many requests (none: for ever); and what the answer is: `status` and `code`, or a body that breaks off after
`len_sent` bytes, or none (`is_silent`).
`GET /_requests` answers how many requests of each kind came since the last time.
"""

import http.client
import json
import sys
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests import projects
from tests.encode import linkexpress

NUM_MANY, LEN_PAGE = 100_000, 1_000
OBJECT = linkexpress.encode_file(projects.item_records(1, 4), True, "big", "cp932", {1: projects.LAYOUT})
WRITTEN = "2026-01-05T03:15:00.000Z"
LISTED = (
    f"<Contents><Key>in/{{:06}}.lxg</Key><LastModified>{WRITTEN}</LastModified><Size>{len(OBJECT)}</Size>"
    '<ETag>"9bb58f26192e4ba00f01e2e7b136bbd8"</ETag><StorageClass>STANDARD</StorageClass></Contents>'
)
requests, faults = Counter[str](), list[dict]()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self) -> None:
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        kind = "LIST" if "list-type" in asked else self.command
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if url.path == "/_faults":
            faults[:] = json.loads(body)
            return self.send(200, b"")
        if url.path == "/_requests":
            counted = json.dumps(requests)
            requests.clear()
            return self.send(200, counted.encode())
        requests[kind] += 1
        if fault := next((one for one in faults if self.is_of(one, kind)), None):
            return self.fail(fault)
        if kind == "LIST" and url.path.rstrip("/") == "/many":
            return self.send(200, page(int(asked.get("continuation-token", 0))))
        if url.path.startswith("/many/"):
            return self.send(200, OBJECT)
        return self.forward(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

    def is_of(self, fault: dict, kind: str) -> bool:
        is_by = fault.get("by", "") in self.headers.get("User-Agent", "")
        return fault["of"] in (kind, "*") and is_by and fault.get("times") != 0

    def fail(self, fault: dict) -> None:
        if "times" in fault:
            fault["times"] -= 1
        if fault.get("is_silent"):
            time.sleep(600)
        if len_sent := fault.get("len_sent"):  # of a body that breaks off
            self.send_response(206)
            self.send_header("Content-Length", str(2 * len_sent))
            self.end_headers()
            self.wfile.write(b"x" * len_sent)
            self.close_connection = True
            return
        code = fault["code"]
        self.send(fault["status"], f"<Error><Code>{code}</Code><Message>{code} is meant</Message></Error>".encode())

    def forward(self, body: bytes) -> None:
        upstream = http.client.HTTPConnection(sys.argv[1], timeout=60)
        upstream.request(self.command, self.path, body or None, dict(self.headers))
        answer = upstream.getresponse()
        data = answer.read()
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in PER_HOP}
        length = answer.getheader("Content-Length") if self.command == "HEAD" else None
        self.send(answer.status, data, headers, length)
        upstream.close()

    def send(self, status: int, body: bytes, headers: dict | None = None, length: str | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {"Content-Type": "application/xml"}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_) -> None:
        """Write no line to standard error: requests are counted."""


PER_HOP = {"connection", "content-length", "transfer-encoding", "server", "date"}


def page(first: int) -> bytes:
    """Objects of `many` from a number on."""
    until = min(first + LEN_PAGE, NUM_MANY)
    rest = f"<NextContinuationToken>{until}</NextContinuationToken>" if until < NUM_MANY else ""
    is_cut = str(until < NUM_MANY).lower()
    return (
        '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>many</Name><IsTruncated>{is_cut}</IsTruncated><KeyCount>{until - first}</KeyCount>"
        f"{rest}{''.join(map(LISTED.format, range(first, until)))}</ListBucketResult>"
    ).encode()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
