"""An object store on this machine, with the interface of S3."""

import logging
from contextlib import contextmanager

import boto3
from moto.server import ThreadedMotoServer

REGION = "eu-central-1"


@contextmanager
def s3(bucket: str):
    """A store with an empty bucket. Out: its address, and a client of it."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        client = boto3.client("s3", endpoint_url=endpoint, region_name=REGION)
        client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        yield endpoint, client
        made = boto3.resource("s3", endpoint_url=endpoint, region_name=REGION).Bucket(bucket)
        made.objects.all().delete()  # all stores of a process hold the same buckets
        made.delete()
    finally:
        server.stop()
