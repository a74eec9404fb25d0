"""Definition files of Linkexpress extracts, for `inlet import`: extraction definitions (抽出定義) and CREATE TABLE.

Extraction  KEYWORD = value, one below the other; blanks and line ends may stand around `=`, a value ends with its line,
            lists are separated by commas; lines that begin with # are comments. REPNAME begins a definition. SCHEMA and
            TABLE name its table, SELECT its columns in the order of the items (none: all of them), DATATYPE in
            parentheses the types in which an Oracle database's columns are extracted
CREATE      the table as the source database knows it: column names, types, NOT NULL, PRIMARY KEY or UNIQUE. A
TABLE       definition without DATATYPE has no types: the statement stands in the same file
Becomes     a column list for each definition; where a file has none, for each CREATE TABLE
Facts       [documented] keywords, comments and how values are written: Replication option manual, 6.20; that SELECT
            gives the items and DATATYPE their form; definition names, schemas and tables
            ASSUMED: DATATYPE names one type for each column of SELECT, in its order
Source      docs/formats/linkexpress_group.md, linkexpress_table.md
"""

import re
from typing import NamedTuple

from inlet.codecs.linkexpress.item import ITEMS, LEN_INTEGER
from inlet.codecs.linkexpress.options import Options, options_of
from inlet.codecs.results import Definition
from inlet.errors import ConfigError
from inlet.fields import sql_type
from inlet.source import Source

TOKEN = re.compile(r"""--[^\n]*|/\*.*?\*/|"(?:[^"]|"")*"|'(?:[^']|'')*'|[\w$@]+|[^\s\w]""", re.DOTALL)
KEYWORD = re.compile(r"^[ \t]*([A-Z]+)\s*=\s*", re.MULTILINE)
ENDS_TYPE = {"NOT", "NULL", "DEFAULT", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "CONSTRAINT", "COLLATE", "GENERATED"}
CONSTRAINTS = {"PRIMARY", "UNIQUE", "CONSTRAINT", "CHECK", "FOREIGN"}
STRINGS = {"CHARACTER", "VARCHAR", "NCHAR", "NVARCHAR", "TIME", "TEXT"}
INTEGERS = {"SMALLINT": "smallint", "INTEGER": "int"}
REMEDY = "Give an extraction definition, or the table's CREATE TABLE"


class _Table(NamedTuple):
    schema: str
    name: str
    columns: list[dict]
    key: list[str]


def definitions_of(data: bytes, name: str, source: Source) -> list[Definition]:
    """The column lists in a definition file. Their change_seq is empty, for it tells no time. Raises: ConfigError."""
    text, options = _text(data, name, options_of(source)), options_of(source)
    tables = {(table.schema, table.name): table for table in _tables(text, name, options)}
    extractions = _extractions(text)
    found = [_extracted(one, tables, name, options) for one in extractions] or list(tables.values())
    if not found:
        raise ConfigError(f"{name} holds neither REPNAME nor CREATE TABLE", REMEDY)
    return [Definition(table.schema, table.name, table.columns, table.key, "", 0) for table in found]


def _text(data: bytes, name: str, options: Options) -> str:
    for charset in ("utf-8-sig", *(s for s in ("cp932", "euc_jp") if s == options.charset), "cp932", "euc_jp"):
        try:
            return data.decode(charset)
        except UnicodeDecodeError:
            continue
    raise ConfigError(f"{name} is no text in UTF-8, Shift-JIS or EUC", "Convert it to UTF-8")


def _extractions(text: str) -> list[dict[str, str]]:
    """Keyword -> value of each extraction definition. What follows GRPNAME is of a group, which names no table."""
    plain = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    found: list[dict[str, str]] = []
    for match in KEYWORD.finditer(plain):
        if match[1] in ("REPNAME", "GRPNAME"):
            found.append({})
        if found:
            found[-1][match[1]] = _value(plain, match.end())
    return [one for one in found if "REPNAME" in one]


def _value(text: str, start: int) -> str:
    """A value: up to the end of its line, unless a list goes on there, within parentheses or behind a comma."""
    depth, at = 0, start
    while at < len(text) and (text[at] != "\n" or depth > 0 or text[start:at].rstrip().endswith(",")):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[start:at].strip()


def _extracted(one: dict[str, str], tables: dict, name: str, options: Options) -> _Table:
    place = f"{name}: {one['REPNAME']}"
    if lacking := [keyword for keyword in ("SCHEMA", "TABLE") if not one.get(keyword)]:
        raise ConfigError(f"{place} has no {lacking[0]}", "Give the extraction definition as it was registered")
    schema, table = one["SCHEMA"].strip('"'), one["TABLE"].strip('"')
    known = tables.get((schema, table)) or next((t for (s, n), t in tables.items() if (s, n) == ("", table)), None)
    names = [word.strip().strip('"') for word in one.get("SELECT", "").split(",") if word.strip()]
    types = [word.strip() for word in _list(one.get("DATATYPE", ""))]
    if types and len(types) != len(names):
        raise ConfigError(
            f"{place}: SELECT has {len(names)} columns, DATATYPE {len(types)} types", "Both name each one"
        )
    if types:
        key = known.key if known else []
        columns = [_column(place, n, t, n not in key, options) for n, t in zip(names, types)]
    elif known is None:
        raise ConfigError(
            f"{place} names no types, and {name} has no CREATE TABLE {schema}.{table}",
            "Put that statement into the file, too: the types are those of the database",
        )
    else:
        of = {column["name"]: column for column in known.columns}
        if wrong := [n for n in names if n not in of]:
            raise ConfigError(f"{place}: {', '.join(wrong)} is no column of its CREATE TABLE", "Give those of one time")
        columns = [of[n] for n in names or of]
        key = known.key
    return _Table(schema, table, columns, key if set(key) <= {c["name"] for c in columns} else [])


def _list(text: str) -> list[str]:
    """The members of a list in parentheses; commas within inner ones separate none."""
    inner = text.strip().removeprefix("(").removesuffix(")") if text.strip().startswith("(") else text
    return [word for word in re.split(r",(?![^(]*\))", inner) if word.strip()]


def _tables(text: str, name: str, options: Options) -> list[_Table]:
    """What CREATE TABLE statements say."""
    tokens = [token for token in TOKEN.findall(text) if not token.startswith(("--", "/*"))]
    words, found = [token.upper() for token in tokens], []
    for at in range(len(tokens) - 3):
        if words[at : at + 2] == ["CREATE", "TABLE"] and "(" in words[at:]:
            start = words.index("(", at)
            path = [_name(token) for token in tokens[at + 2 : start] if token != "."]
            found.append(_table(path[-2:] if path[1:] else ["", *path], tokens[start + 1 :], name, options))
    return found


def _table(path: list[str], tokens: list[str], name: str, options: Options) -> _Table:
    columns, keys, place = list[dict](), dict[str, list[str]](), f"{name}: {'.'.join(filter(None, path))}"
    for part in _parts(tokens):
        upper = [token.upper() for token in part]
        if upper[0] in CONSTRAINTS:
            kind = next((word for word in ("PRIMARY", "UNIQUE") if word in upper), None)
            if kind and "(" in part:
                keys[kind] = [_name(token) for token in part[part.index("(") + 1 :] if token not in (",", ")")]
            continue
        end = next((n for n, word in enumerate(upper) if n and word in ENDS_TYPE), len(part))
        is_key = "PRIMARY" in upper
        if is_key or "UNIQUE" in upper:
            keys["PRIMARY" if is_key else "UNIQUE"] = [_name(part[0])]
        is_nullable = not is_key and ["NOT", "NULL"] not in [upper[n : n + 2] for n in range(len(upper))]
        columns.append(_column(place, _name(part[0]), " ".join(part[1:end]), is_nullable, options))
    key = keys.get("PRIMARY") or keys.get("UNIQUE") or []
    for column in columns:
        column["nullable"] &= column["name"] not in key
    return _Table(path[0], path[1], columns, key)


def _parts(tokens: list[str]) -> list[list[str]]:
    """What commas separate up to the parenthesis that closes all."""
    parts, depth = [list[str]()], 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth < 0:
            break
        if token == "," and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _name(token: str) -> str:
    """An identifier: as it stands in quotes, else in capitals, as the database keeps it."""
    return token[1:-1].replace('""', '"') if token.startswith('"') else token.upper()


def _column(place: str, name: str, text: str, is_nullable: bool, options: Options) -> dict:
    source_type = re.sub(r"\s*([(),])\s*", r"\1", text).strip().upper()
    try:
        word, numbers = sql_type.parse(source_type)
        if word not in ITEMS:
            raise ValueError(f"found {text!r}")
    except ValueError as error:
        raise ConfigError(
            f"{place}.{name}: type {text!r} is not supported: {error}", f"Supported: {', '.join(ITEMS)}"
        ) from error
    return {
        "name": name,
        "type": _type(word, numbers, options),
        "nullable": is_nullable,
        "source_type": " ".join(text.upper().split())
        if word == "INTERVAL"
        else word + (f"({','.join(map(str, numbers))})" if numbers else ""),
    }


def _type(word: str, numbers: tuple[int, ...], options: Options) -> str:
    """The type of a contract that holds every value of a source_type."""
    if word in ("NUMERIC", "DECIMAL"):
        return f"decimal({numbers[0]},{(*numbers, 0)[1]})"
    if word in ("REAL", "FLOAT"):
        is_short = word == "REAL" or bool(numbers) and numbers[0] <= 23
        return "float" if is_short and not options.has_hex_floats else "double"
    if word in LEN_INTEGER:
        return INTEGERS[word]
    if word in STRINGS:
        return "string"
    return {"DOUBLE": "double", "DATE": "date", "TIMESTAMP": "timestamp_ntz"}.get(word, "binary")
