"""`inlet serve`: Spark's Thrift Server on a lakehouse, for JDBC, beeline and PyHive. It only asks.

The server is a process of its own: Spark's HiveThriftServer2 with the settings of every other session
(inlet.lake.spark), the catalog that runs share (inlet.lake.catalog), and classes of ours (lake/scala): one lets in what
a connection may say, one refuses whatever is no question, one knows users by a file. It holds no lock that runs need.
It ends when this process ends, however that ends.
"""

import errno
import ipaddress
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import pbkdf2_hmac
from pathlib import Path

from inlet import publish, storage, store_errors
from inlet.config import Project
from inlet.errors import ConfigError, EnvironmentLacks, InletError, TryAgain
from inlet.lake import catalog, engine, jars
from inlet.lake import spark as sessions
from inlet.lake.scala_classes import classes
from inlet.lake.secrets import VARIABLE
from inlet.publish.point import is_logged

MAIN = "org.apache.spark.sql.hive.thriftserver.InletServer"
READY_SECONDS = 300
SHOW_SECONDS = 60.0  # after which it is asked for a point that another machine has published
ROUNDS = 200_000  # of PBKDF2: a tenth of a second


@dataclass
class Access:
    """Who may ask, and from where."""

    host: str = "127.0.0.1"
    port: int = 10000
    passwords: Path | None = None  # a file that `inlet password` writes
    ldap: str | None = None  # a URL
    ldap_base: str | None = None  # users are uid=NAME below it
    ldap_domain: str | None = None  # users are NAME@DOMAIN

    @property
    def word(self) -> str:
        """Hive's word for the kind of authentication."""
        return "CUSTOM" if self.passwords else "LDAP" if self.ldap else "NONE"

    def check(self) -> None:
        """Raises: ConfigError where this cannot be meant, EnvironmentLacks where the port is taken."""
        if self.passwords and self.ldap:
            raise ConfigError("--passwords and --ldap are two ways of authentication", "Choose one")
        if self.passwords and not self.passwords.is_file():
            raise ConfigError(f"{self.passwords} is no file", f"`inlet password {self.passwords} NAME` makes it")
        if (self.ldap_base or self.ldap_domain) and not self.ldap:
            raise ConfigError("--ldap-base and --ldap-domain say where users are in --ldap", "Name its URL")
        if self.word == "NONE" and not is_loopback(self.host):
            raise ConfigError(
                f"{self.host} can be reached from other machines, and nobody has to say who they are",
                "Give --passwords FILE or --ldap URL, or serve on 127.0.0.1",
            )
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            socket.getaddrinfo(self.host, self.port, family)
            socket.create_server((self.host, self.port), family=family).close()
        except (socket.gaierror, UnicodeError) as error:
            raise ConfigError(f"--host {self.host} is not known: {error}", "Give an address of this machine") from error
        except OSError as error:
            raise EnvironmentLacks(
                f"{self.host}:{self.port} cannot be listened on: {os.strerror(error.errno) if error.errno else error}",
                "Give an address of this machine as --host"
                if error.errno == errno.EADDRNOTAVAIL
                else "End what listens there, or give another --port",
            ) from error

    def settings(self) -> dict[str, str]:
        """Hive's settings that say so."""
        said = {
            "hive.server2.thrift.bind.host": self.host,
            "hive.server2.thrift.port": str(self.port),
            "hive.server2.authentication": self.word,
            "hive.server2.enable.doAs": "false",  # files are read as this user, whoever asks
            "hive.variable.substitute": "false",  # no ${env:...} of a client is filled in
        }
        if self.passwords:
            said["hive.server2.custom.authentication.class"] = "inlet.PasswordFile"
        for name, value in (("url", self.ldap), ("baseDN", self.ldap_base), ("Domain", self.ldap_domain)):
            if value:
                said[f"hive.server2.authentication.ldap.{name}"] = value
        return said


def is_loopback(host: str) -> bool:
    """Can only this machine reach it?"""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def serving(project: Project, access: Access):
    """Serve a lakehouse while this goes on. Out: the server's process, which answers by then.

    Raises: ConfigError and EnvironmentLacks as Access.check, TryAgain where a run has the catalog open by itself.
    """
    lakehouse = project.lakehouse_path()
    access.check()
    if not (Path(lakehouse, "_catalog").exists() if storage.is_local(lakehouse) else publish.newest(project)):
        raise ConfigError(f"There is nothing in {lakehouse} yet", "`inlet run` brings and publishes tables")
    our_classes = classes()
    with catalog.shared(lakehouse):
        if is_logged(project):
            _show(project)
        log = sessions.LOG_FOLDER / f"serve-{access.port}.log"
        process = _start(project, access, our_classes, log)
        try:
            _await(process, access, log)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdin.close()


def wait(project: Project, process: subprocess.Popen) -> int:
    """Wait until the server ends; meanwhile, of a lakehouse in a store, bring its views to each point that another
    machine publishes. Where the store does not answer, questions go on, and it is asked again later. Out: its exit
    code."""
    if not is_logged(project):
        return process.wait()
    shown = publish.newest(project)
    while True:
        try:
            return process.wait(SHOW_SECONDS)
        except subprocess.TimeoutExpired:
            try:
                if (newest := publish.newest(project)) != shown:
                    _show(project)
                    shown = newest
            except Exception as error:
                worded = error if isinstance(error, InletError) else store_errors.worded(error)
                if not isinstance(worded, TryAgain):
                    raise
                print(f"inlet: the views stay at their point for now: {worded}", file=sys.stderr, flush=True)


def _show(project: Project) -> None:
    """Bring the views of this machine to the newest point, in a session that ends again. Raises: EnvironmentLacks;
    TryAgain where that may pass by itself."""
    ask = [sys.executable, "-m", "inlet.cli", "sql", "select 1", "--project", str(project.root)]
    done = subprocess.run(ask, capture_output=True, text=True)
    message = f"The views cannot be brought to the newest point: {done.stderr.strip()}"
    if done.returncode == TryAgain.exit_code:
        raise TryAgain(message)
    if done.returncode:
        raise EnvironmentLacks(message, "Start again")


def how_to_connect(project: Project, access: Access) -> str:
    """What a person reads who wants to ask."""
    url = f"jdbc:hive2://{access.host}:{access.port}/public"
    has_users = access.word != "NONE"
    python = f'hive.connect("{access.host}", {access.port}, database="public", username="me"'
    python += f', password="...", auth="{access.word}")' if has_users else ")"
    who = {
        "NONE": "Nobody is asked for a password: whoever works on this machine can ask (--passwords or --ldap "
        "change that).",
        "CUSTOM": f"Users are those in {access.passwords}.",
        "LDAP": f"Users are those of {access.ldap}.",
    }[access.word]
    encrypted = "" if is_loopback(access.host) else "\nThe line is not encrypted: use it in a network that you trust."
    return f"""Serving {project.lakehouse_path()} on {access.host}:{access.port}, to be read only, until Ctrl-C.
{who} Times are UTC.{encrypted}

JDBC      {url}   driver org.apache.hive.jdbc.HiveDriver
beeline   beeline -u {url} -n me{" -p ..." if has_users else ""}
Python    from pyhive import hive
          {python}"""


def add_user(file: Path, name: str, password: str) -> None:
    """Write a user's line, in place of an earlier one. Raises: ConfigError for a name or password that cannot be,
    and for a file in no folder; EnvironmentLacks where it cannot be written."""
    if not name or ":" in name or not name.isprintable() or not password:
        raise ConfigError("A user has a name without `:`, and a password", "Choose others")
    if not file.parent.is_dir():
        raise ConfigError(f"{file.parent} is no folder", "Make it first, or name another file")
    salt = secrets.token_bytes(16)
    digest = pbkdf2_hmac("sha256", password.encode(), salt, ROUNDS)
    line = f"{name}:{ROUNDS}:{salt.hex()}:{digest.hex()}"
    try:
        lines = file.read_text().splitlines() if file.exists() else []
        _replace(file, [*(other for other in lines if other.split(":")[0] != name), line])
    except OSError as error:
        raise EnvironmentLacks(
            f"{file} cannot be written: {error.strerror}", "Give this user the right to it, or name another file"
        ) from error


def _replace(file: Path, lines: list[str]) -> None:
    """Write a file that its owner alone can read, all of it at once."""
    new = file.with_name(file.name + ".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write("".join(f"{line}\n" for line in lines))
    new.replace(file)


def secrets_of(project: Project) -> set[str]:
    """The variables of the environment that sources name: what they hold is for runs."""
    texts = [
        text
        for s in project.sources.values()
        for text in (s.lookups or "", *(s.broker.options if s.broker else {}).values())
    ]
    return {name for text in texts for name in VARIABLE.findall(text)}


def _start(project: Project, access: Access, our_classes: Path, log: Path) -> subprocess.Popen:
    import pyspark

    home, lakehouse = Path(pyspark.__file__).parent, project.lakehouse_path()
    settings = sessions.settings(lakehouse) | jars.settings((), jars.add_to_class_path(lakehouse))
    settings[sessions.JAVA_OPTIONS] += jars.java_options()
    if access.passwords:
        settings[sessions.JAVA_OPTIONS] += f' "-Dinlet.passwords={access.passwords.resolve()}"'
    settings["spark.sql.extensions"] += ",inlet.ReadOnly"
    settings |= {
        "spark.sql.runSQLOnFiles": "false",  # no file of this account is a table for who asks
        "spark.sql.thriftServer.incrementalCollect": "true",  # a large answer does not stand in memory as a whole
        "spark.scheduler.mode": "FAIR",  # a small question does not wait behind a large one
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    words += ["--master", engine.master(), "--name", "inlet serve", "--class", MAIN]
    words += ["spark-internal", *(w for n, v in access.settings().items() for w in ("--hiveconf", f"{n}={v}"))]
    before = os.environ.get(jars.CLASS_PATH)
    withheld = secrets_of(project)
    environment = {name: value for name, value in os.environ.items() if name not in withheld} | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        jars.CLASS_PATH: os.pathsep.join(filter(None, (str(our_classes), before))),
    }
    sessions.make_log_folder()
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as output:
        return subprocess.Popen(
            [home / "bin" / "spark-submit", *words],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _await(process: subprocess.Popen, access: Access, log: Path) -> None:
    until = time.monotonic() + READY_SECONDS
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(access.host, access.host)
    while time.monotonic() < until and process.poll() is None:
        if catalog.derby.answers(f"{host}:{access.port}"):
            return
        time.sleep(0.2)
    lines = [line for line in log.read_text(errors="replace").splitlines() if "Exception" in line or "Error" in line]
    raise EnvironmentLacks(
        f"Spark's Thrift Server did not start: {(lines or ['it says nothing of why'])[-1].strip()[:300]}", f"Read {log}"
    )


def stop_on(*signals: signal.Signals) -> None:
    """These end this process as Ctrl-C does: by an exception, so that what was started is stopped."""
    for one in signals:
        signal.signal(one, signal.default_int_handler)
