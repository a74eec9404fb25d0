"""An object store on this machine, with the interface of S3."""

import subprocess
import sys
import time
from contextlib import contextmanager

import boto3
import requests

from inlet.lake.derby import answers, free_port

REGION = "eu-central-1"
SERVER = """
import logging, sys
from moto.server import main
logging.getLogger("werkzeug").setLevel(logging.ERROR)
main(["-H", "127.0.0.1", "-p", sys.argv[1]])
"""


@contextmanager
def s3(bucket: str):
    """A store with an empty bucket, in a process of its own: delta-rs asks it while it holds this one's interpreter.
    Out: its address, and a client of it."""
    port = free_port()
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(port)], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while not answers(f"127.0.0.1:{port}"):
            assert server.poll() is None and time.monotonic() < until
            time.sleep(0.1)
        endpoint = f"http://127.0.0.1:{port}"
        client = boto3.client("s3", endpoint_url=endpoint, region_name=REGION)
        client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        yield endpoint, client
    finally:
        server.terminate()
        server.wait()


@contextmanager
def faulty(upstream: str):
    """A store in front of another one (`faulty_store`). Out: its address, fail(*faults), and requests() -> how many of
    each kind came since it was asked last."""
    command = [sys.executable, "-m", "tests.faulty_store", upstream.removeprefix("http://")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout
    endpoint = f"http://127.0.0.1:{int(server.stdout.readline())}"

    def fail(*faults: dict) -> None:
        requests.put(f"{endpoint}/_faults", json=faults, timeout=10).raise_for_status()

    def counted() -> dict[str, int]:
        return requests.get(f"{endpoint}/_requests", timeout=10).json()

    try:
        yield endpoint, fail, counted
    finally:
        server.kill()
        server.wait()
