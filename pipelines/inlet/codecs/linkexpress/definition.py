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

TOKEN = re.compile(r"""--[^\n]*|/\*.*?\*/|"(?:[^"]|"")*"|'(?:[^']|'')*'|[\w$@#]+|[^\s\w]""", re.DOTALL)
KEYWORD = re.compile(r"^[ \t]*([A-Z]+)\s*=\s*", re.MULTILINE)
ENDS_TYPE = {"NOT", "NULL", "DEFAULT", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "CONSTRAINT", "COLLATE", "GENERATED"}
CONSTRAINTS = {"PRIMARY", "UNIQUE", "CONSTRAINT", "CHECK", "FOREIGN"}
STRINGS = {"CHARACTER", "VARCHAR", "NCHAR", "NVARCHAR", "TIME", "TEXT"}
INTEGERS = {"SMALLINT": "smallint", "INTEGER": "int"}
REMEDY = "Give an extraction definition, or the table's CREATE TABLE"


class _Column(NamedTuple):
    name: str
    type: str  # as it is written
    is_nullable: bool


class _Table(NamedTuple):
    schema: str
    name: str
    columns: list[_Column]
    key: list[str]


def definitions_of(data: bytes, name: str, source: Source) -> list[Definition]:
    """The column lists in a definition file. Their change_seq is empty, for it tells no time. Raises: ConfigError."""
    options = options_of(source)
    lines = _text(data, name, options).splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    tables = _tables(text, name)
    found = [_extracted(one, tables, name) for one in _extractions(text)] or tables
    if not found:
        raise ConfigError(f"{name} holds neither REPNAME nor CREATE TABLE", REMEDY)
    of_table = [f"{table.schema}.{table.name}" for table in found]
    if twice := [one for one in of_table if of_table.count(one) > 1]:
        raise ConfigError(f"{name} has two definitions of {twice[0]}", "Give one file for each time or extraction")
    if bare := [table.name for table in found if not table.schema]:
        raise ConfigError(f"{name}: CREATE TABLE {bare[0]} names no schema", "Write SCHEMA.TABLE")
    return [
        Definition(
            table.schema,
            table.name,
            [_typed(f"{name}: {table.schema}.{table.name}", column, options) for column in table.columns],
            table.key,
            "",
            0,
        )
        for table in found
    ]


def _text(data: bytes, name: str, options: Options) -> str:
    for charset in ("utf-8-sig", *(s for s in ("cp932", "euc_jp") if s == options.charset), "cp932", "euc_jp"):
        try:
            return data.decode(charset)
        except UnicodeDecodeError:
            continue
    raise ConfigError(f"{name} is no text in UTF-8, Shift-JIS or EUC", "Convert it to UTF-8")


def _extractions(text: str) -> list[dict[str, str]]:
    """Keyword -> value of each extraction definition. What follows GRPNAME is of a group, which names no table."""
    found: list[dict[str, str]] = []
    for match in KEYWORD.finditer(text):
        if match[1] in ("REPNAME", "GRPNAME"):
            found.append({})
        if found:
            found[-1][match[1]] = "" if KEYWORD.match(text, match.end()) else _value(text, match.end())
    return [one for one in found if "REPNAME" in one]


def _value(text: str, start: int) -> str:
    """A value: up to the end of its line, unless a list goes on there, within parentheses or behind a comma."""
    depth, at = 0, start
    while at < len(text) and (text[at] != "\n" or depth > 0 or text[start:at].rstrip().endswith(",")):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[start:at].strip()


def _extracted(one: dict[str, str], tables: list[_Table], name: str) -> _Table:
    place = f"{name}: {one['REPNAME']}"
    if lacking := [keyword for keyword in ("SCHEMA", "TABLE") if not one.get(keyword)]:
        raise ConfigError(f"{place} has no {lacking[0]}", "Give the extraction definition as it was registered")
    schema, table = _name(one["SCHEMA"]), _name(one["TABLE"])
    known = next((t for t in tables if (t.schema, t.name) in ((schema, table), ("", table))), None)
    of = {column.name: column for column in known.columns} if known else {}
    names = [_name(word.strip()) for word in _list(one.get("SELECT", ""))]
    types = [word.strip() for word in _list(one.get("DATATYPE", ""))]
    if types and len(types) != len(names):
        raise ConfigError(
            f"{place}: SELECT has {len(names)} columns, DATATYPE {len(types)} types", "Both name each one"
        )
    if not types and known is None:
        raise ConfigError(
            f"{place} names no types, and {name} has no CREATE TABLE {schema}.{table}",
            "Put that statement into the file, too: the types are those of the database",
        )
    if known and (wrong := [n for n in names if n not in of]):
        raise ConfigError(f"{place}: {', '.join(wrong)} is no column of its CREATE TABLE", "Give those of one time")
    columns = [of.get(n) or _Column(n, "", True) for n in names or of]
    columns = [column._replace(type=text) for column, text in zip(columns, types)] if types else columns
    key = known.key if known else []
    return _Table(schema, table, columns, key if set(key) <= {column.name for column in columns} else [])


def _list(text: str) -> list[str]:
    """The members of a list, in parentheses or not; commas within inner ones separate none."""
    inner = text.strip().removeprefix("(").removesuffix(")") if text.strip().startswith("(") else text
    return [word for word in re.split(r",(?![^(]*\))", inner) if word.strip()]


def _tables(text: str, name: str) -> list[_Table]:
    """What CREATE TABLE statements say."""
    tokens = [token for token in TOKEN.findall(text) if not token.startswith(("--", "/*"))]
    words, found = [token.upper() for token in tokens], []
    for at in range(len(tokens)):
        if words[at : at + 2] == ["CREATE", "TABLE"] and "(" in words[at:]:
            start, first = words.index("(", at), at + 2
            first += 3 if words[first : first + 3] == ["IF", "NOT", "EXISTS"] else 0
            path = [_name(token) for token in tokens[first:start] if token != "."]
            if not 1 <= len(path) <= 3:
                raise ConfigError(f"{name}: a CREATE TABLE without a name", REMEDY)
            found.append(_table(path[-2:] if path[1:] else ["", *path], tokens[start + 1 :]))
    return found


def _table(path: list[str], tokens: list[str]) -> _Table:
    columns, primary, unique = list[_Column](), list[str](), list[list[str]]()
    for part in _parts(tokens):
        upper = [token.upper() for token in part]
        if upper[0] in CONSTRAINTS:
            names = _names(part) if "PRIMARY" in upper or "UNIQUE" in upper else []
            primary = names if "PRIMARY" in upper else primary
            unique += [names] if names and "PRIMARY" not in upper else []
            continue
        end = next((n for n, word in enumerate(upper) if n and word in ENDS_TYPE), len(part))
        outside = _outside(upper)
        if "PRIMARY" in outside:
            primary = [_name(part[0])]
        elif "UNIQUE" in outside:
            unique.append([_name(part[0])])
        is_nullable = ["NOT", "NULL"] not in [outside[n : n + 2] for n in range(len(outside))]
        columns.append(_Column(_name(part[0]), " ".join(part[1:end]), is_nullable))
    never_null = {column.name for column in columns if not column.is_nullable}
    key = primary or (unique[0] if len(unique) == 1 and set(unique[0]) <= never_null else [])
    columns = [column._replace(is_nullable=column.is_nullable and column.name not in key) for column in columns]
    return _Table(path[0], path[1], columns, key)


def _names(part: list[str]) -> list[str]:
    """The columns of a constraint: what stands in its parentheses, without the order in which they are kept."""
    if "(" not in part:
        return []
    inner = part[part.index("(") + 1 : part.index(")")]
    return [_name(token) for n, token in enumerate(inner) if n == 0 or inner[n - 1] == ","]


def _outside(words: list[str]) -> list[str]:
    """What stands in no parentheses."""
    found, depth = [], 0
    for word in words:
        depth += word == "("
        found += [] if depth else [word]
        depth -= word == ")"
    return found


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


def _typed(place: str, column: _Column, options: Options) -> dict:
    source_type = re.sub(r"\s*([(),])\s*", r"\1", column.type).strip().upper()
    try:
        word, numbers = sql_type.parse(source_type)
        if word not in ITEMS:
            raise ValueError(f"found {column.type!r}")
        ITEMS[word](numbers, options, "separate")
    except (ValueError, IndexError) as error:
        why = "it needs its length" if isinstance(error, IndexError) else error
        raise ConfigError(
            f"{place}.{column.name}: type {column.type!r} is not supported: {why}", f"Supported: {', '.join(ITEMS)}"
        ) from error
    text = f"{word}({','.join(map(str, numbers))})" if numbers else word
    return {
        "name": column.name,
        "type": _type(word, numbers, options),
        "nullable": column.is_nullable,
        "source_type": source_type if word == "INTERVAL" else text,
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
