"""Decoding that outlives its decoder.

A codec rejects what it cannot read. Where it fails instead, the units that it was given are decoded in halves, down to
the one that makes it fail; that one is set aside (kind `decoder_failed`) and the others go on. An exception is caught
where it happens. A process that dies takes its Spark task with it, so silver decodes the batch once more, with each try
in a process of its own.
"""

import gc
import os
import pickle
import re
import signal
import sys
import traceback
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from inlet import errors, storage
from inlet.errors import InletError

KIND = "decoder_failed"
CACHE = "inlet.fields.compiled.cache"  # not loaded where nothing compiled is called
EXPECTED = "a decoder that reads or rejects it"
SAID_BY_WORKER = re.compile(r"^inlet\.errors\.(\w+): (.+)$", re.MULTILINE)


def said_by_worker(error: Exception) -> InletError | None:
    """The InletError that a Spark worker ended with, out of what the JVM says of it; None where it was another."""
    found = SAID_BY_WORKER.search(str(error))
    return getattr(errors, found[1])(found[2]) if found else None


def guarded(decode, set_aside, is_apart: bool):
    """A decoder of Arrow batches that sets aside what it fails on. In: decode, batches of units -> batches; set_aside,
    a batch of one unit and why it failed -> batches; is_apart, whether each try is a process of its own. Raises:
    InletError, which is no fault of a unit."""
    attempt = _in_child if is_apart else _in_place

    def halves(units):
        found = attempt(decode, units)
        if not isinstance(found, str):
            return found
        if units.num_rows == 1:
            return set_aside(units, found)
        middle = units.num_rows // 2
        return [*halves(units.slice(0, middle)), *halves(units.slice(middle))]

    def batches(units):
        for batch in units:
            yield from halves(batch)

    return batches


def why(error: Exception) -> str:
    """What failed, and where in the code."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    text = (
        "no memory is left" if isinstance(error, MemoryError) else " ".join(str(error).split()) or type(error).__name__
    )
    return f"{text} ({Path(at.filename).name}, line {at.lineno})"


def _in_place(decode, units) -> list | str:
    """What the units decode to, or why they do not."""
    try:
        return list(decode(iter([units])))
    except InletError:
        raise
    except Exception as error:  # whatever a codec did not foresee
        return why(error)


def _in_child(decode, units) -> list | str:
    """The same in a child, so that a death is one more reason."""
    try:
        return in_child(lambda: _in_place(decode, units))
    except Died as death:
        return str(death)


class Died(Exception):
    """A process that ended before it could say what it found."""


_called: dict = {}  # compiled functions that children have called: later ones find them loaded, which takes up to 1 s


def in_child(call):
    """What a call gives, made in a process of its own. Raises: what the call raises; Died."""
    if _called:
        _compiled().load(_called)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        gc.freeze()  # what is left of clients, a broker's say, is the parent's to end: their threads are not here
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as out:
                found = _found(call)
                pickle.dump((*found, _compiled().called() if CACHE in sys.modules else {}), out)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        found, error, called = pickle.loads(answer)
    except (EOFError, pickle.UnpicklingError):
        raise Died(
            f"its process was ended by signal {-code} ({signal.strsignal(-code)})"
            if code < 0
            else f"its process ended with code {code}"
        ) from None
    _called.update(called)
    if error:
        raise error
    return found


def _compiled():
    return import_module(CACHE)


def _found(call):
    try:
        return call(), None
    except Exception as error:  # it crosses the border between the processes
        return None, error


def apart(call, *paths: str):
    """What a call gives, made in a process of its own; in this one where there is nothing to read, or a fork is not
    safe."""
    return in_child(call) if paths and can_be_apart(paths) else call()


def can_be_apart(paths: Iterable[str]) -> bool:
    """True if a process of its own can read these files. The clients of stores that this process has opened do not
    outlive a fork."""
    return not storage.has_opened() or all(map(storage.is_local, paths))
