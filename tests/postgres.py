"""A real PostgreSQL for tests: a server of its own on loopback, and random work whose every change its triggers log.

`serve` starts a server with a fresh data folder and stops it; `work` runs transactions on three connections,
interleaved, and gives them in commit order: what each changed, as the triggers logged it, and at some of them what
`SELECT *` of every table gave.
"""

import contextlib
import datetime as dt
import json
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.statements import TABLES, transaction

# "A_log" sorts before the triggers of foreign keys, so that a row is logged before the rows that follow it by cascade,
# as in a log of writes
LOG = """
create table log (place bigserial, transaction_id bigint default txid_current(),
                  statement_at timestamptz default statement_timestamp(),
                  name text, operation text, before jsonb, after jsonb);
create function log_change() returns trigger language plpgsql as $$ begin
  if tg_op = 'TRUNCATE' then       -- every row that goes
    execute format('insert into log (name, operation, before) select %L, %L, to_jsonb(t) from %I t',
      tg_table_name, tg_op, tg_table_name);
  else
    insert into log (name, operation, before, after) values (tg_table_name, tg_op, to_jsonb(old), to_jsonb(new));
  end if;
  return null;
end $$;
"""
TRIGGERS = """
create trigger "A_log" after insert or update or delete on {0} for each row execute function log_change();
create trigger "A_log_truncate" before truncate on {0} for each statement execute function log_change();
"""
FOREIGN_KEY = "alter table lines add foreign key (customer) references customers on update cascade on delete cascade;"


class Logged(NamedTuple):
    """One row of the log, with Python values; a statement is told by when it began."""

    name: str
    operation: str  # INSERT UPDATE DELETE, and TRUNCATE for every row that went
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    statement_at: dt.datetime


@dataclass
class Commit:
    """One committed transaction, and what the tables held right behind it, where that was asked."""

    transaction_id: int
    changes: list[Logged]
    snapshot: dict[str, list[dict[str, Any]]] | None = None


# -- the server
# -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def serve():
    """Start a server; give the text that connects to it. Skips the test where there is no PostgreSQL."""
    initdb = shutil.which("initdb") or max(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), default=None)
    is_root = os.getuid() == 0  # PostgreSQL does not run as root
    if not initdb or is_root and "postgres" not in {user.pw_name for user in pwd.getpwall()}:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    folder, password, port = Path(tempfile.mkdtemp(prefix="inlet-postgres-")), secrets.token_hex(16), free_port()
    (folder / "password").write_text(password)
    as_user = {}
    if is_root:
        as_user = {"user": "postgres", "group": pwd.getpwnam("postgres").pw_gid, "extra_groups": []}
        for path in (folder, folder / "password"):
            shutil.chown(path, "postgres")
    server = None
    try:
        subprocess.run(
            [
                initdb,
                "-D",
                folder / "data",
                "-U",
                "inlet",
                "-A",
                "scram-sha-256",
                f"--pwfile={folder}/password",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
            ],
            check=True,
            capture_output=True,
            cwd=folder,
            **as_user,
        )
        with (folder / "log").open("wb") as log:
            settings = ["fsync=off", "autovacuum=off", "listen_addresses=127.0.0.1", "timezone=UTC"]
            server = subprocess.Popen(
                [
                    Path(initdb).resolve().with_name("postgres"),
                    "-D",
                    folder / "data",
                    "-p",
                    str(port),
                    "-k",
                    folder,
                    *(word for said in settings for word in ("-c", said)),
                ],
                stdout=log,
                stderr=log,
                cwd=folder,
                **as_user,
            )
        yield ready(
            f"host=127.0.0.1 port={port} user=inlet password={password} dbname=postgres", server, folder / "log"
        )
    finally:
        if server:
            server.send_signal(signal.SIGINT)  # ends sessions, then the server
            server.wait(30)
        shutil.rmtree(folder)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def ready(where: str, server: subprocess.Popen, log: Path) -> str:
    """Wait until the server answers. Raises: AssertionError with its log when it does not."""
    for _ in range(200):
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(where):
            return where
        assert server.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError(f"PostgreSQL did not answer in 20 s: {log.read_text()}")


# -- the work
# -------------------------------------------------------------------------------------------------------------


def work(where: str, rng: random.Random, num_commits: int, num_snapshots: int) -> list[Commit]:
    """Make the tables anew and run transactions until so many have committed a change; one in ten is rolled back."""
    with contextlib.ExitStack() as stack:
        admin, *clients = [
            stack.enter_context(
                psycopg.connect(where, autocommit=n == 0, options="-c search_path=shop -c lock_timeout=2ms")
            )
            for n in range(4)
        ]
        make_tables(admin, "shop")
        running, commits, num_taken = {}, [], 0
        while len(commits) < num_commits:
            client = rng.choice(clients)
            steps = running.setdefault(client, transaction(client.cursor(), rng))
            try:
                next(steps)
                continue
            except psycopg.Error:  # a key that is there, a lock that another holds
                done = client.rollback()
            except StopIteration:
                done = commit(client) if rng.random() < 0.9 else client.rollback()
            del running[client]
            if done and admin.execute("select 1 from log where transaction_id = %s limit 1", [done]).fetchall():
                commits.append(Commit(done, []))
                if num_taken * num_commits < len(commits) * num_snapshots:
                    commits[-1].snapshot = snapshot(admin)
                    num_taken += commits[-1].snapshot is not None
        for client in clients:
            client.rollback()
        commits[-1].snapshot = snapshot(admin)
        read_log(admin, commits)
        return commits


def commits_of(where: str, transactions: list[list[str]], schema: str = "small", is_new: bool = True) -> list[Commit]:
    """Run these transactions, one after the other, on tables of their own, or on those that are there."""
    options = f"-c search_path={schema}"
    with (
        psycopg.connect(where, options=options, autocommit=True) as admin,
        psycopg.connect(where, options=options) as client,
    ):
        if is_new:
            make_tables(admin, schema)
        commits = []
        for statements in transactions:
            for statement in statements:
                client.execute(statement)
            commits.append(Commit(commit(client), [], snapshot(admin)))
        read_log(admin, commits)
        return commits


def make_tables(admin, schema: str) -> None:
    admin.execute(
        f"set client_min_messages = warning; drop schema if exists {schema} cascade; create schema {schema};" + LOG
    )
    for table, (key, constraint, columns) in TABLES.items():
        declared = ", ".join(
            [f"{name} {type_}" for name, type_, _, _ in columns] + [f"primary key ({', '.join(key)}) {constraint}"]
        )
        admin.execute(f"create table {table} ({declared});" + TRIGGERS.format(table))
    admin.execute(FOREIGN_KEY)


def commit(client) -> int | None:
    """The id of a transaction that is committed now; None where it changed nothing or its constraints refuse."""
    (transaction_id,) = client.execute("select txid_current_if_assigned()").fetchone()
    try:
        client.commit()
    except psycopg.Error:
        return None
    return transaction_id


def snapshot(admin) -> dict[str, list[dict]] | None:
    """Every table as it is; nothing commits meanwhile. None where a TRUNCATE that is not committed holds a table."""
    rows = {}
    for table in TABLES:
        try:
            found = admin.execute(f"select * from {table}")
        except psycopg.errors.LockNotAvailable:
            return None
        rows[table] = [dict(zip([c.name for c in found.description], values)) for values in found.fetchall()]
    return rows


def read_log(admin, commits: list[Commit]) -> None:
    """Give each commit its changes. What was rolled back must have left nothing."""
    by_id = {c.transaction_id: c for c in commits}
    for transaction_id, at_, name, operation, before, after in admin.execute(
        "select transaction_id, statement_at, name, operation, before::text, after::text from log where "
        "transaction_id >= %s order by place",
        [min(by_id)],
    ).fetchall():
        by_id[transaction_id].changes.append(Logged(name, operation, image(name, before), image(name, after), at_))


def image(table: str, text: str | None) -> dict | None:
    """An image of the log with the values that it was made of."""
    said = text and json.loads(text, parse_float=Decimal)
    return said and {
        name: None if said[name] is None else FROM_JSON.get(type_.partition("(")[0], lambda v: v)(said[name])
        for name, type_, _, _ in TABLES[table][2]
    }


FROM_JSON = {
    "numeric": Decimal,
    "double precision": float,
    "date": dt.date.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "timestamptz": dt.datetime.fromisoformat,
    "bytea": lambda text: bytes.fromhex(text[2:]),
}
