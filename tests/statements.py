"""Three tables and random transactions on them, for a real PostgreSQL (tests/postgres.py).

A statement is a generator: it rests where other transactions may go on. What it does is drawn from few keys, so that
rows meet.
"""

import datetime as dt
from decimal import Decimal

import psycopg

# table -> key, its constraint, columns: name, PostgreSQL's type, the contract's type, Linkexpress's type
TABLES = {
    "customers": (
        ["id"],
        "",
        [
            ("id", "integer", "int", "INTEGER"),
            ("code", "char(5)", "string", "CHAR(5)"),
            ("name", "varchar(40)", "string", "VARCHAR(160)"),
            ("balance", "numeric(11,2)", "decimal(11,2)", "DECIMAL(11,2)"),
            ("since", "date", "date", "DATE"),
            ("rating", "double precision", "double", "DOUBLE"),
        ],
    ),
    "lines": (
        ["order_no", "line"],
        "deferrable",
        [
            ("order_no", "integer", "int", "INTEGER"),
            ("line", "smallint", "smallint", "SMALLINT"),
            ("customer", "integer", "int", "INTEGER"),
            ("quantity", "numeric(18,4)", "decimal(18,4)", "NUMERIC(18,4)"),
            ("note", "varchar(40)", "string", "VARCHAR(160)"),
            ("shipped", "timestamp(0)", "timestamp_ntz", "TIMESTAMP"),
        ],
    ),
    "papers": (
        ["title", "version"],
        "deferrable",
        [
            ("title", "text", "string", None),
            ("version", "bigint", "bigint", None),
            ("is_public", "boolean", "boolean", None),
            ("size", "numeric(38,10)", "decimal(38,10)", None),
            ("made", "timestamp", "timestamp_ntz", None),
            ("seen", "timestamptz", "timestamp", None),
            ("body", "text", "string", None),
            ("photo", "bytea", "binary", None),
        ],
    ),
}
TEXTS = [
    "",
    "a",
    "A",
    " a ",
    'O\'Neil "x" \\ / %s {}',
    "null",
    "x" * 40,
    "tab\tline\nend\r",
    "ä ß é e\u0301",
    "日本語 ｱｲｳ",
    "😀👩\u200d👧",
    "\u0001\u007f\u2028\ufeff",
]
VALUES = {
    "smallint": lambda rng: rng.randint(1, 4),
    "integer": lambda rng: rng.randint(1, 5),
    "bigint": lambda rng: rng.choice([1, 2, -1, 2**63 - 10, -(2**63)]),
    "boolean": lambda rng: rng.random() < 0.5,
    "char(5)": lambda rng: rng.choice(["", "a", "ab cd", " x"]),
    "varchar(40)": lambda rng: rng.choice(TEXTS),
    "text": lambda rng: rng.choice([*TEXTS, "".join(rng.choices("aä\\\n😀", k=rng.randint(1, 9000)))]),
    "bytea": lambda rng: rng.choice([b"", b"\0", b"\\x41", bytes(range(256)), rng.randbytes(3000)]),
    "numeric(11,2)": lambda rng: Decimal(
        rng.choice([0, 1, -1, 10**11 - 1, 1 - 10**11, rng.randint(-(10**6), 10**6)])
    ).scaleb(-2),
    "numeric(18,4)": lambda rng: Decimal(
        rng.choice([0, 10, -1, 10**18 - 1, 1 - 10**18, rng.randint(-(10**6), 10**6)])
    ).scaleb(-4),
    "numeric(38,10)": lambda rng: Decimal(
        f"{rng.choice([0, 1, -1, 10**38 - 1, 1 - 10**38, rng.randint(-(10**30), 10**30)])}e-10"
    ),
    "double precision": lambda rng: rng.choice([0.0, 0.1, -1e300, 5e-324, 1 / 3, 1e16, rng.uniform(-9, 9)]),
    "date": lambda rng: rng.choice(
        [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29), dt.date(1582, 10, 10)]
    ),
    "timestamp(0)": lambda rng: rng.choice(
        [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59), dt.datetime(2026, 3, 29, 2, 30)]
    ),
    "timestamp": lambda rng: rng.choice(
        [
            dt.datetime(1, 1, 1, 0, 0, 0, 1),
            dt.datetime(2026, 3, 29, 2, 30, 0, 999999),
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        ]
    ),
    "timestamptz": lambda rng: rng.choice(
        [dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=h, minutes=30))) for h in (-3, 5)]
        + [dt.datetime(1900, 1, 1, 0, 0, 0, 123400, dt.UTC)]
    ),
}
KEYS = {
    ("papers", "title"): ["a", "A", 'ä\n😀 "\\'],
    ("papers", "version"): [1, 2, 2**63 - 10],
}  # few, so that they meet


def row(rng, table: str) -> dict:
    """A new row; every column but the key is null at times."""
    key, _, columns = TABLES[table]
    return {
        name: rng.choice(KEYS[table, name])
        if (table, name) in KEYS
        else None
        if name not in key and rng.random() < 0.2
        else VALUES[type_](rng)
        for name, type_, _, _ in columns
    }


def a_key(cur, rng, table: str) -> list:
    """The key of a row that is there, or of any."""
    key = TABLES[table][0]
    there = cur.execute(f"select {', '.join(key)} from {table} order by 1, {len(key)}").fetchall()
    return list(rng.choice(there)) if there and rng.random() < 0.8 else [row(rng, table)[k] for k in key]


def at(table: str) -> str:
    return " and ".join(f"{k} = %s" for k in TABLES[table][0])


def assigned(names) -> str:
    return ", ".join(f"{n} = %s" for n in names)


def insert(cur, rng, table, new=None):
    new = new or row(rng, table)
    cur.execute(f"insert into {table} ({', '.join(new)}) values ({', '.join(['%s'] * len(new))})", list(new.values()))
    yield


def put(cur, rng, table):
    """Insert, or where the key is there, update."""
    new, key = row(rng, table), TABLES[table][0]
    values = [new[k] for k in key]
    if table == "customers":
        names = [n for n in new if n not in key]
        cur.execute(
            f"insert into {table} ({', '.join(new)}) values ({', '.join(['%s'] * len(new))}) on conflict (id) "
            "do update set " + ", ".join(f"{n} = excluded.{n}" for n in names),
            list(new.values()),
        )
    elif not cur.execute(f"select 1 from {table} where {at(table)}", values).fetchall():
        yield from insert(cur, rng, table, new)
    yield


def update(cur, rng, table):
    """Some columns of one row, or of some rows."""
    new, key = row(rng, table), TABLES[table][0]
    names = rng.sample([n for n in new if n not in key], k=rng.randint(1, 3))
    where, values = (
        (at(table), a_key(cur, rng, table)) if rng.random() < 0.8 else (f"{rng.choice(names)} is not null", [])
    )
    cur.execute(f"update {table} set {assigned(names)} where {where}", [*(new[n] for n in names), *values])
    yield


def touch(cur, rng, table):
    """An update of nothing."""
    name = rng.choice(TABLES[table][2])[0]
    cur.execute(f"update {table} set {name} = {name} where {at(table)}", a_key(cur, rng, table))
    yield


def delete(cur, rng, table):
    cur.execute(f"delete from {table} where {at(table)}", a_key(cur, rng, table))
    yield


def replace(cur, rng, table):
    """Delete and insert of the same key."""
    key, new = a_key(cur, rng, table), row(rng, table)
    cur.execute(f"delete from {table} where {at(table)}", key)
    yield
    yield from insert(cur, rng, table, new | dict(zip(TABLES[table][0], key)))


def flash(cur, rng, table):
    """Insert and delete of the same key."""
    new = row(rng, table)
    yield from insert(cur, rng, table, new)
    cur.execute(f"delete from {table} where {at(table)}", [new[k] for k in TABLES[table][0]])
    yield


def move(cur, rng, table):
    """Another key, with or without other values."""
    key, new = TABLES[table][0], row(rng, table)
    names = key + rng.sample([n for n in new if n not in key], k=rng.randint(0, 2))
    cur.execute(
        f"update {table} set {assigned(names)} where {at(table)}", [*(new[n] for n in names), *a_key(cur, rng, table)]
    )
    yield


def renumber(cur, rng, table):
    """Many keys by one; a key that is checked row by row refuses that in some orders."""
    name, step = TABLES[table][0][-1], rng.choice(["+ 1", "- 1"])
    cur.execute(f"update {table} set {name} = {name} {step} where {name} > %s", [rng.randint(0, 3)])
    yield


def rotate(cur, rng, table):
    """Swap two keys, or pass three on, by one statement."""
    key, olds = TABLES[table][0], [a_key(cur, rng, table) for _ in range(rng.randint(2, 3))]
    moves = ", ".join(["(" + ", ".join(["%s"] * 2 * len(key)) + ")"] * len(olds))
    names = ", ".join([f"old_{k}" for k in key] + [f"new_{k}" for k in key])
    cur.execute(
        f"update {table} t set {', '.join(f'{k} = new_{k}' for k in key)} from (values {moves}) v({names}) where "
        f"{' and '.join(f't.{k} = old_{k}' for k in key)}",
        [value for old, new in zip(olds, olds[1:] + olds[:1]) for value in (*old, *new)],
    )
    yield


def rotate_in_steps(cur, rng, table):
    """The same by a statement a row, which only a deferred constraint allows. Between them, something at other keys:
    what happens at these keys meanwhile could be about either of two rows, which is a known limit of the fold
    (CHANGELOG)."""
    names, places = TABLES[table][0], []
    for _ in range(rng.randint(2, 3)):
        place = a_key(cur, rng, table)
        if place not in places:
            places.append(place)
    rows = [cur.execute(f"select ctid from {table} where {at(table)} for update", place).fetchone() for place in places]
    if None in rows:
        return
    cur.execute("set constraints all deferred")
    for ctid, place in zip(rows, places[1:] + places[:1]):
        cur.execute(f"update {table} set {assigned(names)} where ctid = %s", [*place, *ctid])
        yield
        other = row(rng, table)
        if rng.random() < 0.4 and [other[k] for k in names] not in places:
            cur.execute(f"delete from {table} where {at(table)}", [other[k] for k in names])
            yield from insert(cur, rng, table, other)
    cur.execute("set constraints all immediate")


def shift_by_copy(cur, rng, table):
    """One statement deletes rows and inserts them with other keys. Not where a key is checked only at its end: see
    test_two_rows_of_one_key_within_a_transaction."""
    names, last = [n for n, _, _, _ in TABLES[table][2]], TABLES[table][0][-1]
    new = [f"{n} + 1" if n == last else n for n in names]
    cur.execute(
        f"with gone as (delete from {table} where {last} < %s returning *) "
        f"insert into {table} ({', '.join(names)}) select {', '.join(new)} from gone",
        [rng.randint(1, 4)],
    )
    yield


def truncate(cur, rng, table):
    cur.execute(f"truncate {table} cascade")
    yield


ACTIONS = {
    insert: 5,
    put: 10,
    update: 12,
    touch: 2,
    delete: 3,
    replace: 4,
    flash: 2,
    move: 6,
    renumber: 4,
    rotate: 5,
    rotate_in_steps: 4,
    shift_by_copy: 2,
    truncate: 1,
}
ONLY_OF = {
    rotate: ["lines", "papers"],
    rotate_in_steps: ["papers"],  # keys that are checked at a statement's end, and later: a format
    shift_by_copy: ["customers"],
}  # without key changes cannot say the latter (papers: only Qlik's)


def transaction(cur, rng):
    """1 to 8 statements, some within a savepoint that is taken back."""
    for _ in range(rng.randint(1, 8)):
        (action,) = rng.choices(list(ACTIONS), ACTIONS.values())
        steps = action(cur, rng, rng.choice(ONLY_OF.get(action, list(TABLES))))
        if rng.random() < 0.7:
            yield from steps
            continue
        cur.execute("savepoint here")
        try:
            yield from steps
            cur.execute(rng.choice(["rollback to here", "release here"]))
        except psycopg.Error:
            cur.execute("rollback to here")
