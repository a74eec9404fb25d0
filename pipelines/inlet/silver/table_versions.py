"""The column lists that changes were read by (`silver.table_versions`), against those of the contracts."""

import json

from inlet import lake
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.table import by_name, same_columns

FROM_FEED = [
    "source",
    "source_schema",
    "source_table",
    "table_version",
    "columns",
    "key",
    "change_seq",
    "unit_id",
    "unit_offset",
    "feed_version",
    "batch_id",
]

AT = ["change_seq", "unit_id", "unit_offset"]
OF_FEED = ["source", "source_schema", "source_table", "columns", "key", *AT, "feed_version", "detail"]  # a definition


def _closed(project: Project, rows: list[dict]) -> set[int]:
    """The batches of rows that the ledger has."""
    if not rows:
        return set()
    batches = ", ".join(str(batch) for batch in sorted({row["batch_id"] for row in rows}))
    of_batches = f"where batch_id in ({batches})"
    return {row["batch_id"] for row in lake.peek(project.lakehouse_path(), "silver.batches", ["batch_id"], of_batches)}


def used(project: Project) -> dict[tuple[str, str, int], list[dict]]:
    """(source, SCHEMA.TABLE, version) -> its columns, as batches that the ledger has have used them."""
    rows = lake.peek(
        project.lakehouse_path(),
        "silver.table_versions",
        ["source", "source_schema", "source_table", "table_version", "columns", "batch_id", "origin"],
    )
    closed = _closed(project, rows)
    return {
        (r["source"], f"{r['source_schema']}.{r['source_table']}", r["table_version"]): json.loads(r["columns"])
        for r in rows
        if r["batch_id"] in closed and r["origin"] == "contract"
    }


def seen(project: Project) -> list[dict]:
    """Definitions that feeds gave, in their order, as batches that the ledger has have found them; `version` is the
    feed's own number. Read without Spark.
    """
    rows = lake.peek(project.lakehouse_path(), "silver.table_versions", FROM_FEED, "where origin = 'feed'")
    closed = _closed(project, rows)
    found = [
        row
        | {
            "columns": json.loads(row["columns"]),
            "key": json.loads(row["key"] or "[]"),
            "change_seq": row["change_seq"] or "",
            "version": row["feed_version"],
        }
        for row in rows
        if row["batch_id"] in closed
    ]
    return in_order(found)


def in_order(definitions: list[dict]) -> list[dict]:
    """Definitions by source, table and place. A list that has a number is there once, from the least of its places on;
    where no place is known, it follows the list of its table with the number before.
    """
    lists: dict[tuple, dict] = {}
    for row in sorted(definitions, key=lambda row: (row["change_seq"] == "", row["change_seq"])):
        lists.setdefault(_content(row), row)
    places: dict[tuple, str] = {}
    keyed = []
    for row in sorted(lists.values(), key=lambda row: (row["version"] or 0, row["change_seq"])):
        table = (row["source"], row["source_schema"], row["source_table"])
        at = row["change_seq"] or (places.get(table, "") if row["version"] is not None else "")
        places[table] = max(at, places.get(table, ""))
        keyed.append(((row["source"], at, row["version"] or 0), row))
    return [row for _, row in sorted(keyed, key=lambda one: one[0])]


def new_definitions(project: Project, found: list[dict]) -> list[dict]:
    """Rows of silver.table_versions for definitions of a feed that are not there yet, with the version of the contract
    that says the same.
    """
    tables = by_name(project.tables.values())
    known = {_content(row): row["change_seq"] for row in seen(project)}
    new: dict[tuple, dict] = {}
    for row in sorted(found, key=lambda row: (row["change_seq"] == "", *(row[name] for name in AT))):
        columns = json.loads(row["columns"])
        content = _content(row | {"columns": columns, "key": json.loads(row["key"]), "version": row["feed_version"]})
        if content in new or content in known and not _is_earlier(row["change_seq"], known[content]):
            continue
        table = tables.get(f"{row['source_schema']}.{row['source_table']}")
        version = next((v.version for v in table.versions if same_columns(v, columns)), None) if table else None
        new[content] = {name: row[name] for name in OF_FEED} | {"table_version": version, "origin": "feed"}
    return list(new.values())


def _is_earlier(change_seq: str, known: str) -> bool:
    """Is a place before one that is known, or the first that is known?"""
    return bool(change_seq) and (not known or change_seq < known)


def _content(row: dict) -> tuple:
    """What tells a definition from another: its place, or its number where it has one."""
    place = row["change_seq"] if row["version"] is None else (row["version"], json.dumps(row["key"]))
    return row["source"], row["source_schema"], row["source_table"], place, json.dumps(row["columns"])


def check(project: Project) -> None:
    """A column list that changes were read by is not another one under the same version. Raises: ConfigError."""
    tables = by_name(project.tables.values())
    for (source, name, number), columns in used(project).items():
        if source not in project.sources or name not in tables:
            continue
        before = [f"{c['name']} {c['type']}" for c in columns]
        now = next(
            (
                [f"{c.name} {c.type}" for c in version.columns]
                for version in tables[name].versions
                if version.version == number
            ),
            None,
        )
        if before != now:
            what = [f"{c} is new" for c in now or () if c not in before] + [
                f"{c} is gone" for c in before if c not in (now or before)
            ]
            raise ConfigError(
                f"{name}: changes were read by version {number} with other columns than its contract says: "
                + ("it says nothing of that version" if now is None else ", ".join(what) or "their order is another"),
                f"Under `earlier` of the contract, keep version {number} with its columns and `until`, the UTC time "
                "at which the source changed; the columns of now get a `version` above it. Its columns: "
                f"{', '.join(before)}",
            )
