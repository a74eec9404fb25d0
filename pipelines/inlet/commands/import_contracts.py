"""`inlet import`: write and update contracts from the column lists that feeds have given (silver.table_versions), or
from definition files.

A list that is none of the contract's versions becomes its newest version; the one before it moves under `earlier`, with
the place up to which it was in force. What became of a column that is gone, a person says: it was renamed (`--renamed
OLD=NEW`) or dropped (`--dropped OLD`). A contract that lacks the vendor's types, or the places of columns in a record,
takes them from a definition file. Nothing is written unless all of it can be, and what a contract says beside its
columns stays as it is.
"""

import io
import re
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML

from inlet.change import LEN_SEQ
from inlet.commands.import_definitions import differs, merged, table_of
from inlet.config import Project
from inlet.errors import ConfigError, in_words
from inlet.log import counted
from inlet.table import Table, by_name
from inlet.table_column import PLACE, TableColumn, without_place

FLOW_WIDTH = 150


@dataclass
class Answers:
    """What a person said of columns that are gone, for one import."""

    renamed: dict[str, str] = field(default_factory=dict)  # former name -> name
    dropped: set[str] = field(default_factory=set)
    since: str = ""  # change_seq from which a column list is in force that tells no time itself


@dataclass
class Contract:
    """A contract as it shall be, and why."""

    path: Path
    text: str
    what: str


def place_of(time: str) -> str:
    """The change_seq before all changes of a time. In: YYYYMMDDHHmmSS. Raises: ConfigError."""
    try:
        datetime.strptime(time, "%Y%m%d%H%M%S")
    except ValueError as error:
        raise ConfigError(f"--since {time}: {error}", "Write a time as 20260131235959") from error
    return time.ljust(LEN_SEQ, "0")


def contracts(project: Project, definitions: list[dict], answers: Answers) -> list[Contract]:
    """The contracts that definitions make or change. Raises: ConfigError where a person has to say more, or where a
    definition contradicts itself.
    """
    of_table: dict[str, list[dict]] = {}
    for row in definitions:
        of_table.setdefault(table_of(row), []).append(row)
    known, found = by_name(project.tables.values()), []
    files = _files(project) if known.keys() & of_table.keys() else {}
    taken = {t.name for t in project.tables.values()}
    for name, rows in sorted(of_table.items()):
        path = files[known[name].table] if name in known else None
        made = _updated(project, path, name, rows, answers) if path else _new(project, name, rows, answers, taken)
        if made:
            found.append(made)
            taken.add(made.path.stem)
    answered = {*answers.renamed, *answers.dropped}
    if answered and (
        idle := answered
        - {c["name"] for row in definitions for c in row["columns"]}
        - {c.name for t in known.values() for v in t.versions for c in v.columns}
    ):
        raise ConfigError(
            f"There is no column {', '.join(sorted(idle))} in what is imported", "Name columns as the definitions do"
        )
    return found


def write(made: list[Contract]) -> None:
    for contract in made:
        contract.path.parent.mkdir(parents=True, exist_ok=True)
        contract.path.write_text(contract.text, encoding="utf-8")


def _yaml() -> YAML:
    yaml = YAML()
    yaml.width, yaml.preserve_quotes = FLOW_WIDTH, True
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _files(project: Project) -> dict[str, Path]:
    """SCHEMA.TABLE -> the file of its contract."""
    paths = sorted((project.root / "pipelines" / "tables").glob("*.yml"))
    return {(_yaml().load(path) or {}).get("table", ""): path for path in paths}


def _new(project: Project, name: str, rows: list[dict], answers: Answers, taken: set[str]) -> Contract:
    word = _name_of(name, taken)
    contract = {
        "table": name,
        "name": word,
        "key": list(rows[0]["key"]),
        "columns": [_column(c) for c in rows[0]["columns"]],
    }
    if (rows[0].get("version") or 1) > 1:
        contract["version"] = rows[0]["version"]
    for before, row in pairwise(rows):
        _follow(contract, name, row, answers)
        if row["key"] and row["key"] != before["key"]:
            _change_key(contract, before, row)
    return _made(
        project.root / "pipelines" / "tables" / f"{word}.yml",
        contract,
        f"{name}: new, {counted(len(contract['columns']), 'column')}"
        + (
            ""
            if re.search("[a-z0-9]", name.split(".", 1)[1].lower())
            else f", called {word} (`name:` may be any of small ASCII letters)"
        )
        + ("" if contract["key"] else ", without a key: if the table has one, name it in the contract"),
        rows,
    )


def _name_of(table: str, taken: set[str]) -> str:
    """A name for a contract, of small ASCII letters, where the table's has any. In: SCHEMA.TABLE, names that are taken.

    >>> _name_of("SHOP.Order Lines", set()), _name_of("SHOP.社員", set())
    ('order_lines', 'shop_table')
    >>> _name_of("SHOP.社員", {"shop_table"}), _name_of("B.ITEMS", {"items"})
    ('shop_table_2', 'b_items')
    """
    schema, word = (re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_") for part in table.split(".", 1))
    word = word or f"{schema}_table".strip("_")
    word = word if word[0].isalpha() else f"t_{word}"
    tried = [word, f"{schema}_{word}" if schema[:1].isalpha() and not word.startswith(f"{schema}_") else word]
    return next(one for one in (*tried, *(f"{word}_{n}" for n in range(2, len(taken) + 3))) if one not in taken)


def _updated(project: Project, path: Path, name: str, rows: list[dict], answers: Answers) -> Contract | None:
    contract = _yaml().load(path)
    before, moved = contract.get("version", 1), ""
    completed: list[str] = []
    for last, row in zip([rows[0], *rows], rows):
        table = Table(**_plain(contract))
        if any(_holds(project, version, row) for version in table.versions):
            continue
        has_other_key = bool(row["key"]) and row["key"] != last["key"] == table.key
        if not any(_is_same(v, row) for v in table.versions) or has_other_key or _is_back(table, row):
            _follow(contract, name, row, answers)
            if has_other_key:
                _change_key(contract, last, row)
        else:
            moved = _move(contract, table, row) or moved
            completed += [_complete(contract, row)] if _is_same(table.versions[-1], row) else []
    if contract.get("version", 1) != before:
        return _made(path, contract, f"{name}: version {before} -> {contract['version']}", rows)
    what = "; ".join(filter(None, (moved, *completed)))
    return _made(path, contract, f"{name}: {what}", rows) if what else None


def _move(contract: dict, table: Table, row: dict) -> str:
    """Let a version begin where its list does, if a place before is known now. Out: what was done."""
    same = [n for n, v in enumerate(table.versions) if _is_same(v, row) and row["key"] in ([], v.key)]
    place = row["change_seq"] if row.get("feed_version") is not None else ""
    if len(same) != 1 or same[0] == 0 or not place or place >= table.earlier[same[0] - 1].until:
        return ""
    contract["earlier"][same[0] - 1]["until"] = place
    return f"version {table.versions[same[0]].version} is in force from {place} on"


def _change_key(contract: dict, before: dict, row: dict) -> None:
    contract["earlier"][-1]["key"], contract["key"] = list(before["key"]), list(row["key"])


def _holds(project: Project, version: Table, row: dict) -> bool:
    """Does a version hold all values of a definition of the same version, though that says other types?"""
    given = [{"name": c.name, "source_type": c.source_type} for c in version.columns]
    listed = [{"name": c["name"], "source_type": c.get("source_type")} for c in row["columns"]]
    if row.get("version") != version.version or given == listed:
        return False
    found = merged(project, given, row | {"columns": listed})
    return found is not None and [c["source_type"] for c in found] == [c["source_type"] for c in given]


def _is_back(table: Table, row: dict) -> bool:
    """Is a former list in force again, behind the place where the newest began?"""
    is_behind = bool(table.earlier) and row["change_seq"] > table.earlier[-1].until
    return is_behind and not _is_same(table.versions[-1], row)


def _is_same(version: Table, row: dict) -> bool:
    """Does a definition give the columns of a version? A list of a feed that has a number is read by names, so their
    order says nothing.
    """
    known, given, is_by_name = list(version.columns), row["columns"], row.get("feed_version") is not None
    if is_by_name:
        known, given = sorted(known, key=lambda c: c.name), sorted(given, key=lambda c: c["name"])
    return [c.name for c in known] == [c["name"] for c in given] and all(
        _is_same_column(one, found, is_by_name or not row["change_seq"]) for one, found in zip(known, given)
    )


def _is_same_column(known: TableColumn, found: dict, gives_types: bool) -> bool:
    """Where both tell the vendor's type it decides, for a person chooses the contract's. A column without one takes it
    from a definition file, or from a list that has a number; its codec checks whether the contract's type holds it.
    """
    if known.source_type and found.get("source_type"):
        types = known.source_type, found["source_type"]
        if not all(map(PLACE.search, types)):  # a place that one of them lacks contradicts nothing
            types = without_place(types[0]), without_place(types[1])
        return types[0] == types[1] and found.get("charset") in (None, known.charset)
    return known.type == found["type"] or gives_types and bool(found.get("source_type"))


def _complete(contract: dict, row: dict) -> str:
    """Give the columns that lack it the vendor's type, or its place in a record. Out: what was done."""
    found = {c["name"]: c for c in row["columns"] if c.get("source_type")}
    lacking = [
        c
        for c in contract["columns"]
        if c["name"] in found
        and not c.get("dropped")
        and not PLACE.search(c.get("source_type") or "")
        and c.get("source_type") != found[c["name"]]["source_type"]
    ]
    typed = [c["name"] for c in lacking if not c.get("source_type")]
    placed = [c["name"] for c in lacking if c.get("source_type")]
    for column in lacking:
        column |= {k: v for k, v in found[column["name"]].items() if k in ("source_type", "charset")}
    done = [f"source_type is added to {', '.join(typed)}"] * bool(typed)
    done += [f"its place in a record is added to the source_type of {', '.join(placed)}"] * bool(placed)
    return "; ".join(done)


def _follow(contract: dict, name: str, row: dict, answers: Answers) -> None:
    """Make a definition the newest version of a contract. In: the contract's fields, which are changed."""
    present = [c for c in contract["columns"] if not c.get("dropped")]
    names, new = [c["name"] for c in present], [c["name"] for c in row["columns"]]
    gone, added = [n for n in names if n not in new], [n for n in new if n not in names]
    if open_ := [n for n in gone if n not in answers.renamed and n not in answers.dropped]:
        which = " or ".join(f"--renamed {open_[0]}={n}" for n in added[:3])
        raise ConfigError(
            f"{name}: {', '.join(open_)} {'is' if len(open_) == 1 else 'are'} gone in the column list that "
            f"{row['unit_id']} gives"
            + (f"; {', '.join(added)} {'is' if len(added) == 1 else 'are'} new" if added else ""),
            f"Say what became of {'it' if len(open_) == 1 else 'each'}: "
            f"{which + ' or ' if which else ''}--dropped {open_[0]}",
        )
    if wrong := [f"{n}={answers.renamed[n]}" for n in gone if n in answers.renamed and answers.renamed[n] not in added]:
        raise ConfigError(
            f"{name}: --renamed {wrong[0]}: that is no new column", f"New are {', '.join(added) or 'none'}"
        )
    since, version, own = row["change_seq"] or answers.since, contract.get("version", 1), row.get("version")
    if own and own < version and not contract.get("earlier"):
        raise ConfigError(
            f"{name}: {row['unit_id']} tells version {own}, older than {version}, with which the contract begins",
            "Leave out the file, or write its columns into the contract under `earlier`",
        )
    if not since:
        raise ConfigError(
            f"{name}: the definition in {row['unit_id']} is not that of the contract "
            f"({differs(present, row['columns'])}), and tells no time from which it is in force",
            "Say it with --since YYYYMMDDHHmmSS, the time of the first file that is written so",
        )
    contract.setdefault("earlier", []).append(
        {
            "version": version,
            "until": since,
            "columns": [{k: v for k, v in c.items() if k not in ("formerly", "dropped")} for c in present],
        }
    )
    if any(key in gone for key in contract.get("key", [])):
        contract["earlier"][-1]["key"] = list(contract["key"])
        contract["key"] = [answers.renamed.get(key, key) for key in contract["key"]]
    kept, former = (
        {c["name"]: c for c in contract["columns"]},
        {after: before for before, after in answers.renamed.items() if before in gone},
    )
    columns = []
    for column in row["columns"]:
        known = kept.get(column["name"]) or kept.get(former.get(column["name"], "")) or {}
        entry = {name: value for name, value in known.items() if name != "dropped"} | _column(column)
        said = column.get("source_type")
        if said and without_place(said) == without_place(known.get("source_type") or ""):
            entry["type"] = known["type"]
        if column["name"] in former:
            entry["formerly"] = [*known.get("formerly", []), former[column["name"]]]
        columns.append(entry)
    columns += [kept[n] | {"dropped": True} for n in kept if n not in new and n not in former.values()]
    contract["columns"], contract["version"] = columns, max(version + 1, own or 0)


def _column(column: dict) -> dict:
    entry = {"name": column["name"], "type": column["type"]}
    entry |= {name: column[name] for name in ("source_type", "charset", "encoding") if column.get(name)}
    return entry | ({} if column.get("nullable", True) else {"nullable": False})


def _plain(value) -> Any:
    """Fields without the marks that a YAML reader keeps for writing."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _made(path: Path, contract: dict, what: str, rows: list[dict]) -> Contract:
    try:
        Table(**_plain(contract))
    except ValidationError as error:
        raise ConfigError(
            f"{contract['table']}: the column list that {rows[-1]['unit_id']} gives is no contract: "
            f"{in_words(error.errors(), Table.model_fields)}",
            "Nothing is written; write its contract by hand",
        ) from error
    from ruamel.yaml.comments import CommentedMap

    for columns in [contract["columns"], *(e["columns"] for e in contract.get("earlier", []))]:
        for n, column in enumerate(columns):
            columns[n] = CommentedMap(column)
            columns[n].fa.set_flow_style()
    out = io.StringIO()
    _yaml().dump(contract, out)
    return Contract(path, out.getvalue(), what)
