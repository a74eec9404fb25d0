"""Errors of stores in words, whoever met them: fsspec and the clients below it, delta-rs, or Hadoop's client in Spark.

`answering` is for what fsspec does at an address; `worded` is asked where a command ends, of any error.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from inlet.errors import ConfigError, EnvironmentLacks, InletError, TryAgain

USER = re.compile(r"\b(?!abfss?:|wasbs?:)([a-z][a-z0-9+.-]*://)[^/\s]*@", re.I)  # Azure names a container there
CLIENTS = ("aiobotocore", "aiohttp", "azure", "botocore", "gcsfs", "google")  # whose errors are none of fsspec's
OF_STORE = re.compile(r"Generic (?!LocalFileSystem)\w+ error|\bs3a\.|awssdk|AWS\w*Exception|lacked the necessary priv")


class Cause(NamedTuple):
    pattern: str  # of what a client says
    kind: type[InletError]
    message: str  # {where}: at which address, {text}: what fits the pattern
    remedy: str


CREDENTIALS = "Export credentials that are valid, and have the right to it: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
SILENT = Cause(
    r"onnection refused|onnection reset|onnection was closed|error sending request|UnknownHost|dns error|timed out"
    r"|SocketTimeout|timeout on endpoint|not connect to the endpoint|SlowDown|ServiceUnavailable|InternalError"
    r"|(?:HTTP|Status Code:?|- Server returned non-2xx status code:) 50\d|\(50\d\)",
    TryAgain,
    "The store of the lakehouse{where} does not answer: {text}",
    "Run again when it does, or correct `storage` in inlet.yml; what was done before stays done",
)
CAUSES = (  # the first that fits
    Cause(
        "NoSuchBucket|bucket does not exist",
        ConfigError,
        "The bucket of the lakehouse{where} does not exist: {text}",
        "Create the bucket, or name another one in inlet.yml",
    ),
    Cause(  # of the machine's role, which delta-rs asks for where the environment has no credentials
        r"169\.254\.169\.254|NoAuthWithAWSException|no valid credential|Unable to locate credentials",
        EnvironmentLacks,
        "The environment has no credentials for the store of the lakehouse, and this machine has no role: {text}",
        "Export AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role",
    ),
    Cause(
        r"lacked the necessary privileges to complete for path \S+",
        EnvironmentLacks,
        "The lakehouse may not be read or written: the request {text}",
        "Give this user, or the credentials of this environment, the right to it",
    ),
    SILENT,
    Cause(
        "ExpiredToken|AccessDenied|Access Denied|InvalidAccessKeyId|SignatureDoesNotMatch|not authorized"
        r"|(?:HTTP|Status Code:?|status code:) 40[13]|40[13] (?:Forbidden|Unauth)|\(40[13]\)",
        EnvironmentLacks,
        "The store of the lakehouse{where} does not allow it: {text}",
        CREDENTIALS,
    ),
)


class Replaced(OSError):
    """An object was written again since it was listed or opened, so its bytes would be those of two objects."""


def without_user(text: str) -> str:
    """A text whose addresses name no user and no password.

    >>> without_user("401 for url: http://me:secret@host:5000/api"), without_user("abfss://container@account/in")
    ('401 for url: http://host:5000/api', 'abfss://container@account/in')
    """
    return USER.sub(r"\1", text)


def worded(error: BaseException) -> InletError | None:
    """What an error means that a store has caused; None where none has."""
    chain = _chain(error)
    text = re.sub(r"\x1b\[\d*m|^\s*at .*$", "", "\n".join(map(str, chain)), flags=re.M)  # colours, and Java's traces
    is_of_client = any(map(_is_of_client, chain))
    if not is_of_client and not OF_STORE.search(text):
        return None
    for cause in CAUSES:
        if match := re.search(cause.pattern, text):
            return _caused(cause, match[0], text)
    return _caused(SILENT, str(chain[-1]), text) if is_of_client else None


def _caused(cause: Cause, match: str, text: str) -> InletError:
    place = re.search(r"https?://[^\s?\"]+", text)  # without what signs it
    where = f" at {place[0]}" if place and place[0] not in match else ""
    return cause.kind(without_user(cause.message.format(where=where, text=match)), cause.remedy)


def _chain(error: BaseException | None) -> list[BaseException]:
    """An error and those that it was raised from."""
    return [error, *_chain(error.__cause__)] if error else []


def _is_of_client(error: BaseException) -> bool:
    return type(error).__module__.startswith(CLIENTS)


def _expired() -> tuple[type[Exception], ...]:
    """The error of s3fs for an object that is not the one that was opened; none where s3fs was not needed."""
    return (module.FileExpired,) if (module := sys.modules.get("s3fs.utils")) else ()


@contextmanager
def answering(address: str, of_files: bool = True) -> Iterator[None]:
    """Errors of a store in words. In: whether those that a file raises, too, are of the store."""
    try:
        yield
    except (InletError, FileNotFoundError):
        raise
    except _expired() as error:
        raise Replaced(f"{address} was written again while it was read") from error
    except PermissionError as error:
        if not of_files:
            raise
        remedy = "Give the credentials of this environment the right to list and to read it, or export others"
        raise EnvironmentLacks(without_user(f"{address} may not be read: {error}"), remedy) from error
    except Exception as error:  # s3fs raises what its client raised as an OSError
        if not any(map(_is_of_client, _chain(error))) and not (of_files and isinstance(error, OSError)):
            raise
        if "Credentials" in type(error).__name__:
            remedy = "Export those of its store, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            why = without_user(f"{address} cannot be read without credentials: {error}")
            raise EnvironmentLacks(why, remedy) from error
        raise TryAgain(without_user(f"{address}: its store does not answer: {error}"), SILENT.remedy) from error
