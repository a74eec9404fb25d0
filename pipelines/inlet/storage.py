"""Where files and tables lie: in a folder of this machine, or at an address of a store (`s3://`, `abfss://`, `gs://`,
or any that fsspec knows). Nothing else asks which of the two a place is, or opens a store.

    storage:                           # of inlet.yml; needed where a store is not the one that its scheme means
      s3://landing:                    # for addresses that begin so; of several that fit, the longest
        endpoint: http://127.0.0.1:9000
        region: eu-central-1

Secrets are no settings. Each library takes them from the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or a
profile, or the role of the machine), AZURE_STORAGE_ACCOUNT_KEY, GOOGLE_APPLICATION_CREDENTIALS.
"""

import glob
import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field

from inlet.errors import ConfigError, EnvironmentLacks
from inlet.store_errors import answering, without_user

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[a-z0-9+.-]+)*://")  # `simplecache::s3://...` is one of fsspec's, too


MANAGED = "catalog://"  # how a lakehouse is called whose catalog alone reaches its tables (layout.py)


class Store(BaseModel):
    """What reaching a store takes besides its address."""

    model_config = ConfigDict(extra="forbid")
    endpoint: str | None = Field(None, pattern="^https?://.")  # of a store that is not its vendor's own
    region: str | None = None


# of a request: tries with pauses of up to 1, 2, 4, 8 s
S3_LIMITS = {"connect_timeout": 5, "read_timeout": 15, "retries": {"mode": "standard", "total_max_attempts": 5}}
S3FS_TRIES = 2  # of those, where a store is silent, breaks off or says SlowDown; of a read twice as many


def _s3(store: Store) -> dict[str, Any]:
    region = {"region_name": store.region} if store.region else {}
    given = {"client_kwargs": region, "endpoint_url": store.endpoint}
    return given | {"config_kwargs": S3_LIMITS, "session": _s3_session(os.getpid())}


@cache
def _s3_session(process: int) -> Any:
    """One for a process, because fsspec keeps a file system by its options. Its parser of times is a fast one:
    botocore's takes two thirds of the time of a listing."""
    from aiobotocore.session import AioSession
    from botocore.utils import parse_timestamp

    def parse(text: str) -> datetime:
        try:
            return datetime.fromisoformat(text)
        except (TypeError, ValueError):  # a time of a header is written in another form
            return parse_timestamp(text)

    session = AioSession()
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=parse)
    return session


# of one request and of its repeats together: a commit has ended 40 s after it was begun (lake/lease.py)
LIMITS = {"timeout": "20s", "connect_timeout": "5s", "max_retries": "5", "retry_timeout": "20s"}


def _s3_delta(store: Store) -> dict[str, str]:
    given = {"aws_endpoint_url": store.endpoint, "aws_region": store.region, "aws_allow_http": "true", **LIMITS}
    return {name: value for name, value in given.items() if value}


# of a request of Spark's: 2 * 4 tries where the store is silent or breaks off, 6 within 16 s where it is busy. Delta
# reads its log up to three times. Hadoop's own (core-default.xml) are 200 s a try, and 20 pauses that double from 0.1 s
SPARK_LIMITS = {
    "fs.s3a.connection.establish.timeout": "5s",
    "fs.s3a.connection.timeout": "15s",
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "3",
    "fs.s3a.retry.throttle.limit": "5",
    "fs.s3a.retry.throttle.interval": "500ms",
}


def _s3_spark(store: Store) -> dict[str, str]:
    """Secrets are in none of them: Hadoop's client looks for them in the environment by itself."""
    files = "org.apache.hadoop.fs.s3a.S3AFileSystem"
    given = {"fs.s3.impl": files, "fs.s3a.endpoint": store.endpoint, "fs.s3a.endpoint.region": store.region}
    given |= SPARK_LIMITS
    given["fs.s3a.path.style.access"] = "true" if store.endpoint else None  # few others have a host a bucket
    commits = {f"spark.delta.logStore.{scheme}.impl": "inlet.ConditionalLogStore" for scheme in ("s3", "s3a")}
    return commits | {f"spark.hadoop.{name}": value for name, value in given.items() if value}


class Scheme(NamedTuple):
    extra: str  # of Inlet's, that installs what fsspec needs
    settings: tuple[str, ...] = ()  # of a Store
    options: Callable[[Store], dict[str, Any]] = lambda store: {}  # as fsspec takes them
    delta: Callable[[Store], dict[str, str]] = lambda store: {}  # as delta-rs does
    spark: Callable[[Store], dict[str, str]] = lambda store: {}  # settings of a session
    jars: tuple[str, ...] = ()  # coordinates of what Spark needs


S3_JARS = (  # of the Hadoop that pyspark brings, and what hadoop-aws needs
    "org.apache.hadoop:hadoop-aws:3.4.2",
    "software.amazon.awssdk:bundle:2.29.52",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.2.1",
)
S3 = Scheme("s3", ("endpoint", "region"), _s3, _s3_delta, _s3_spark, S3_JARS)
SCHEMES = {
    "s3": S3,
    "s3a": S3,
    "abfss": Scheme("azure"),
    "gs": Scheme("gcs", ("endpoint",), lambda store: {"endpoint_url": store.endpoint} if store.endpoint else {}),
}
_stores: dict[str, Store] = {}  # of the project that was read last, by how addresses begin
_has_opened = False


def use(stores: dict[str, Store]) -> None:
    """Reach addresses so from now on, in this process and in those that it forks."""
    _stores.clear()
    _stores.update(stores)


def is_local(place: str) -> bool:
    """Is it a path of this machine?

    >>> is_local("landing/a:b/*.lxg"), is_local("s3://shop/landing"), is_local("memory://landing")
    (True, False, False)
    """
    return not ADDRESS.match(place)


def is_managed(place: str) -> bool:
    """True if a place is one of tables that their catalog alone reaches, by name."""
    return place.startswith(MANAGED)


def as_path(place: str) -> str:
    """The path that a `file:` URL names; every other place as it is.

    >>> as_path("file:///data/my%20lake"), as_path("file:/data"), as_path("s3://shop")
    ('/data/my lake', '/data', 's3://shop')
    """
    return unquote(urlsplit(place).path) if place.startswith("file:/") else place


def store_of(address: str) -> Store:
    """How an address is reached."""
    fitting = [start for start in _stores if address.startswith(start)]
    return _stores[max(fitting, key=len)] if fitting else Store()


def scheme_of(address: str) -> Scheme | None:
    """How its kind of store is opened; None where fsspec knows by itself, and for a path."""
    return SCHEMES.get(address.partition("://")[0])


def delta_options(place: str) -> dict[str, str] | None:
    """What delta-rs needs to reach a table; None for a path."""
    known = scheme_of(place)
    return known.delta(store_of(place)) if known else None


def is_reached(place: str) -> bool:
    """True if delta-rs reaches the tables of a place, and not Spark alone."""
    return is_local(place) or bool((known := scheme_of(place)) and known.jars)


def spark_settings(lakehouse: str) -> dict[str, str]:
    """What a session needs to reach a lakehouse, besides `spark_jars`."""
    known = scheme_of(lakehouse)
    return known.spark(store_of(lakehouse)) if known else {}


def spark_jars(lakehouse: str) -> tuple[str, ...]:
    """Coordinates of the jars that a session needs to reach a lakehouse."""
    known = scheme_of(lakehouse)
    return known.jars if known else ()


def open_store(place: str) -> "tuple[AbstractFileSystem, str]":
    """The file system of a path or an address, and the place on it. Raises: EnvironmentLacks where its package is not
    installed, or fsspec knows no such store."""
    import fsspec

    global _has_opened
    known, _has_opened = scheme_of(place), _has_opened or not is_local(place)
    try:
        if known is None:
            return fsspec.core.url_to_fs(place)
        store = fsspec.filesystem(place.partition("://")[0], **known.options(store_of(place)))
        if known is S3:
            store.retries = S3FS_TRIES
        return store, store._strip_protocol(place)  # `url_to_fs` reads `a::b` in a name as two addresses
    except (ImportError, ValueError) as error:
        remedy = f"pip install 'inlet[{known.extra}]'" if known else "See to what the error says"
        raise EnvironmentLacks(f"{without_user(place)} cannot be opened: {error}", remedy) from error


def has_opened() -> bool:
    """True if this process has opened a store, so that it may have a client with threads and connections."""
    return _has_opened


def find(pattern: str) -> Iterator[tuple[str, dict]]:
    """(address, what its store tells of it) of the files that a pattern names; without a wildcard it names a folder.
    Raises: ConfigError where the bucket does not exist, EnvironmentLacks where it may not be listed, TryAgain where the
    store does not answer."""
    from fsspec.utils import glob_translate

    store, place = open_store(pattern if glob.has_magic(pattern) else pattern.rstrip("/") + "/*")
    store.invalidate_cache()  # of listings: a run that follows looks again
    root = re.split(r"[*?[]", place, maxsplit=1)[0].rpartition("/")[0]
    depth = None if "**" in place else place.removeprefix(root).strip("/").count("/") + 1
    is_flat = depth is None and scheme_of(pattern) is not None  # listed in pages, whatever folders there are
    with answering(pattern):
        try:
            on_error = {} if is_flat else {"on_error": "raise"}  # else what may not be listed is left out silently
            listed = store.find(root, maxdepth=depth, detail=True, **on_error)
        except FileNotFoundError:  # no file has come, or
            if scheme_of(pattern) and not store.exists(bucket := root.partition("/")[0]):
                raise ConfigError(
                    f"{pattern}: there is no bucket {bucket}", "Create it, or name another one in `from`"
                ) from None
            listed = {}
    matching = re.compile(glob_translate(place))
    for name, about in listed.items():
        if matching.match(name) and about["type"] == "file":
            if about["size"] is None:  # as HTTP lists
                with answering(pattern):
                    about = store.info(name)
            yield store.unstrip_protocol(name), about


def listed_after(folder: str, name: str, num: int) -> list[tuple[str, str]]:
    """(name, ETag) of the first objects of a folder in S3 whose names follow a name, asked at once."""
    store, path = open_store(folder)
    bucket, _, prefix = path.rstrip("/").partition("/")
    asked = {"Prefix": f"{prefix}/", "StartAfter": f"{prefix}/{name}", "MaxKeys": num}
    with answering(folder):
        listed = store.call_s3("list_objects_v2", Bucket=bucket, **asked)
    return [(one["Key"].removeprefix(f"{prefix}/"), one["ETag"]) for one in listed.get("Contents", ())]


class Stream:
    """A file of a store that is read. Raises: TryAgain or EnvironmentLacks for the errors of the store's client,
    Replaced, and OSError as any file does."""

    def __init__(self, address: str):
        store, name = open_store(address)
        self._address = address
        with answering(address, of_files=False):
            self._file = store.open(name, "rb")

    def read(self, *num: int) -> bytes:
        with answering(self._address, of_files=False):
            return self._file.read(*num)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *error) -> None:
        self._file.close()
