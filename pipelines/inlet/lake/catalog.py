"""Which catalog a process opens: the one embedded in the lakehouse folder, or one on a server that several share.

Derby lets one process at a time open a catalog in its folder. So there are two kinds of servers (derby.py):

- `inlet catalog` serves all lakehouses of the machine until Ctrl-C. A process uses it that has its address in
  INLET_CATALOG.
- `shared` serves one lakehouse for as long as somebody uses it. Its address stands in the lakehouse folder
  (`_catalog_server`, readable by its owner alone), where every session that begins meanwhile finds it. Each user holds
  a shared lock on that file until its process ends; the last one to leave stops the server. A server that was left
  behind (its last user was killed) is used by the next one, who stops it.

Whoever looks at that file, starts or stops a server, or opens the embedded catalog holds `_catalog_opening` meanwhile,
so nobody sees a server that is about to end, and no two begin at once.
"""

import atexit
import fcntl
import json
import os
import stat
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO

from inlet.errors import EnvironmentLacks, TryAgain
from inlet.lake import derby, place
from inlet.lake.jars import CLASS_PATH
from inlet.log import Log

FILE, GUARD = "_catalog_server", "_catalog_opening"
GUARD_SECONDS = 120  # longer than a session or a server takes to start
EMBEDDED_SECONDS = 10.0  # longer than a JVM takes to end; a session that goes on is not waited for
STARTS = 3  # of a server, where somebody else takes the port meanwhile


@dataclass
class Joined:
    """A shared server that this process uses."""

    server: derby.Server
    file: IO
    pid: int  # whose: a fork does not leave for its parent
    num_users: int = 0
    class_path: str | None = None  # as it was before


_joined: dict[str, Joined] = {}  # by lakehouse


def server(lakehouse: str) -> str:
    """host:port of the server that this process uses; '' where the catalog is opened in the folder."""
    if at := os.environ.get("INLET_CATALOG", ""):
        return at
    return _joined[lakehouse].server.place if lakehouse in _joined else ""


def settings(lakehouse: str) -> dict[str, str]:
    """Spark settings that open the catalog of a lakehouse. In: its absolute path."""
    at, home = server(lakehouse), place.home(lakehouse)
    url = f"jdbc:derby://{at}/{home}" if at else f"jdbc:derby:;databaseName={home}"
    driver = "Client" if at else "Embedded"
    return {
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"{url}/_catalog;create=true",
        "spark.hadoop.javax.jdo.option.ConnectionDriverName": f"org.apache.derby.jdbc.{driver}Driver",
    }


@contextmanager
def shared(lakehouse: str):
    """Share the catalog of a local lakehouse: use the server there is, or start one. Settings and sessions of this
    process, and of every one that begins meanwhile, use it. In: the absolute path or address; a process with
    INLET_CATALOG goes on as ever.

    Raises: TryAgain where a process has the catalog open by itself, EnvironmentLacks where no server can be had,
    ConfigError where the catalog is of another place.
    """
    place.check(lakehouse)
    if not _is_ours(lakehouse):
        yield
        return
    if lakehouse not in _joined:
        with guarded(lakehouse):
            _join(lakehouse, _running(lakehouse) or _started(lakehouse))
    _joined[lakehouse].num_users += 1
    try:
        yield
    finally:
        leave(lakehouse)


@contextmanager
def opening(lakehouse: str):
    """What a session does around its start: it uses the shared server, where there is one, until this process ends;
    else it opens the catalog in the folder, and nobody starts a server meanwhile.

    Raises: TryAgain where another process has it open, EnvironmentLacks where INLET_CATALOG does not answer; both
    before a JVM takes half a minute to find out.
    """
    if not _is_ours(lakehouse):
        if at := os.environ.get("INLET_CATALOG", ""):
            check(at)
        yield
        return
    with ExitStack() as held:
        if lakehouse not in _joined:
            held.enter_context(guarded(lakehouse))
            if found := _running(lakehouse):
                _join(lakehouse, found)
                held.close()
            else:
                check_embedded(lakehouse)
        if lakehouse in _joined:
            _joined[lakehouse].num_users += 1
        yield


def is_shared(lakehouse: str) -> bool:
    """Does a server run for this lakehouse, for whoever begins now?"""
    if not _is_ours(lakehouse) or not (place.home(lakehouse) / FILE).exists():
        return False
    with guarded(lakehouse):
        return _running(lakehouse) is not None


def check(at: str) -> None:
    """Raises: EnvironmentLacks where no server answers."""
    if not derby.answers(at):
        raise EnvironmentLacks(
            f"No catalog answers at INLET_CATALOG={at}", "Start `inlet catalog`, or unset INLET_CATALOG"
        )


def check_embedded(lakehouse: str) -> None:
    """Wait up to EMBEDDED_SECONDS for another process that has the catalog in the folder open: it may be about to end.
    Raises: TryAgain where it has it open still."""
    lock = place.home(lakehouse) / "_catalog" / "dbex.lck"
    until, is_announced = time.monotonic() + EMBEDDED_SECONDS, False
    while True:
        try:
            held = lock.open("rb")
        except FileNotFoundError:  # who closes a database removes it
            return
        with held:
            try:
                fcntl.lockf(held, fcntl.LOCK_SH | fcntl.LOCK_NB)  # what Derby's JVM holds while it is open
                return
            except OSError as error:
                if time.monotonic() > until:
                    raise taken(lakehouse) from error
        if not is_announced:
            Log().say({"step": "catalog", "waiting": f"up to {EMBEDDED_SECONDS:.0f} s: another process has it open"})
            is_announced = True
        time.sleep(0.1)


def taken(lakehouse: str) -> TryAgain:
    return TryAgain(
        f"Another process has the catalog of {lakehouse} open",
        "Wait for the other run (or close its session) and try again; or let several share it, with `inlet serve` or "
        "`inlet catalog`",
    )


@contextmanager
def served(port: int):
    """Serves the catalogs of all lakehouses on this machine, and stops. Out: what the environment of a process must say
    to use them, and the server's process.

    Raises: EnvironmentLacks where the jars cannot be had or the port is taken.
    """
    if derby.answers(f"{derby.HOST}:{port}"):
        raise EnvironmentLacks(
            f"Something listens on {derby.HOST}:{port} already",
            "If that is a catalog, export both lines that it printed; one whose start was killed goes on: end its "
            "process; else give another --port",
        )
    found, process = derby.start(port)
    try:
        derby.wait_until_ready(found)
        yield {"INLET_CATALOG": found.place, CLASS_PATH: found.class_path()}, process
    finally:
        found.stop()
        process.wait()


def leave(lakehouse: str) -> None:
    """Say that one use of the shared server by this process has ended; the last user of all stops it."""
    joined = _joined.get(lakehouse)
    if joined is None or joined.pid != os.getpid():
        return
    joined.num_users -= 1
    if joined.num_users > 0:
        return
    del _joined[lakehouse]
    if joined.class_path is None:
        os.environ.pop(CLASS_PATH, None)
    else:
        os.environ[CLASS_PATH] = joined.class_path
    with guarded(lakehouse), joined.file as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # others use it
        joined.server.stop()
        path = place.home(lakehouse) / FILE
        if path.exists() and path.stat().st_ino == os.fstat(file.fileno()).st_ino:  # else it is that of a later server
            path.unlink()


@atexit.register
def leave_all() -> None:
    """Ends every use by this process. One that is killed is not asked: its locks go with it."""
    for lakehouse in list(_joined):
        _joined[lakehouse].num_users = 1
        leave(lakehouse)


def _is_ours(lakehouse: str) -> bool:
    """Is it for us to say which server is used?"""
    return not os.environ.get("INLET_CATALOG")


@contextmanager
def guarded(lakehouse: str):
    """Raises: TryAgain where another process holds the guard for longer than any needs."""
    path, until = place.home(lakehouse) / GUARD, time.monotonic() + GUARD_SECONDS
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        guard = path.open("w")
    except OSError as error:
        raise EnvironmentLacks(
            f"{path} cannot be written: {error.strerror}", "Give this user the right to it"
        ) from error
    with guard:
        while True:
            try:
                fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > until:
                    raise TryAgain(f"Another process is opening the catalog of {lakehouse}", "Try again") from error
                time.sleep(0.05)
        yield


def _running(lakehouse: str) -> derby.Server | None:
    """The server that the file names, ready; none where it has died. Raises: EnvironmentLacks where the file is another
    user's."""
    path = place.home(lakehouse) / FILE
    try:
        with path.open() as file:
            about, text = os.fstat(file.fileno()), file.read()
    except FileNotFoundError:
        return None
    except OSError:
        about = None
    if about is None or about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
        raise EnvironmentLacks(
            f"{path} is not this user's alone",
            "Another user serves this catalog: work as that user, or remove the file",
        )
    try:
        found = derby.Server(**json.loads(text))
    except (ValueError, TypeError):
        return None  # its writer was killed: it is written anew
    if not found.is_running():
        return None
    derby.wait_until_ready(found)
    return found


def _started(lakehouse: str) -> derby.Server:
    """Start a server and name it in the file. Raises: as `shared`."""
    check_embedded(lakehouse)
    path = place.home(lakehouse) / FILE
    for start in range(STARTS):
        found, _ = derby.start(derby.free_port())
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(found._asdict(), file)  # before it is ready: whoever comes after a kill finds it
        try:
            derby.wait_until_ready(found)
            return found
        except EnvironmentLacks:
            found.stop()
            if start == STARTS - 1:
                path.unlink()
                raise
    raise AssertionError("unreachable")


def _join(lakehouse: str, found: derby.Server) -> None:
    file = (place.home(lakehouse) / FILE).open()
    fcntl.flock(file, fcntl.LOCK_SH)
    before = os.environ.get(CLASS_PATH)
    os.environ[CLASS_PATH] = os.pathsep.join(filter(None, (found.class_path(), before)))
    _joined[lakehouse] = Joined(found, file, os.getpid(), class_path=before)
