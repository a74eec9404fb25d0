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
    "batch_id",
]


def used(project: Project) -> dict[tuple[str, str, int], list[dict]]:
    """(source, SCHEMA.TABLE, version) -> its columns, as batches that the ledger has have used them."""
    rows = lake.peek(
        project.lakehouse_path(),
        "silver.table_versions",
        ["source", "source_schema", "source_table", "table_version", "columns", "batch_id", "origin"],
    )
    closed = (
        {r["batch_id"] for r in lake.peek(project.lakehouse_path(), "silver.batches", ["batch_id"])} if rows else set()
    )
    return {
        (r["source"], f"{r['source_schema']}.{r['source_table']}", r["table_version"]): json.loads(r["columns"])
        for r in rows
        if r["batch_id"] in closed and r["origin"] == "contract"
    }


def seen(project: Project) -> list[dict]:
    """Definitions that feeds gave, in their order, as batches that the ledger has have found them. Read without
    Spark.
    """
    rows = lake.peek(project.lakehouse_path(), "silver.table_versions", FROM_FEED, "where origin = 'feed'")
    closed = (
        {r["batch_id"] for r in lake.peek(project.lakehouse_path(), "silver.batches", ["batch_id"])} if rows else set()
    )
    found = [
        row | {"columns": json.loads(row["columns"]), "key": json.loads(row["key"] or "[]")}
        for row in rows
        if row["batch_id"] in closed
    ]
    return sorted(found, key=lambda row: (row["source"], row["change_seq"] or ""))


def new_definitions(project: Project, found: list[dict]) -> list[tuple]:
    """Rows of silver.table_versions for definitions of a feed that are not there yet, with the version of the contract
    that says the same.
    """
    known, tables = {_content(row) for row in seen(project)}, by_name(project.tables.values())
    new: dict[tuple, tuple] = {}
    for row in found:
        columns = json.loads(row["columns"])
        content = _content(row | {"columns": columns})
        if content not in known:
            table = tables.get(f"{row['source_schema']}.{row['source_table']}")
            version = next((v.version for v in table.versions if same_columns(v, columns)), None) if table else None
            new.setdefault(
                content,
                (
                    row["source"],
                    row["source_schema"],
                    row["source_table"],
                    version,
                    row["columns"],
                    "feed",
                    row["key"],
                    row["change_seq"],
                    row["unit_id"],
                    row["unit_offset"],
                ),
            )
    return list(new.values())


def _content(row: dict) -> tuple:
    return row["source"], row["source_schema"], row["source_table"], row["change_seq"], json.dumps(row["columns"])


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
