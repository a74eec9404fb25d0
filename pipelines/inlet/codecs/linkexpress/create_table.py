"""CREATE TABLE, as the source database knows a table, and the words of which vendors' definition files are made.

A definition that names no types takes those of the statement, which stands in the same file; it tells the key, too.
"""

import re
from typing import NamedTuple

from inlet.errors import ConfigError

TOKEN = re.compile(r"""--[^\n]*|/\*.*?\*/|"(?:[^"]|"")*"|'(?:[^']|'')*'|[\w$@#]+|[^\s\w]""", re.DOTALL)
ENDS_TYPE = {"NOT", "NULL", "DEFAULT", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "CONSTRAINT", "COLLATE", "GENERATED"}
CONSTRAINTS = {"PRIMARY", "UNIQUE", "CONSTRAINT", "CHECK", "FOREIGN"}
REMEDY = "Write CREATE TABLE SCHEMA.NAME (...)"


class Column(NamedTuple):
    name: str
    type: str  # as it is written
    is_nullable: bool


class CreatedTable(NamedTuple):
    schema: str
    name: str
    columns: list[Column]
    key: list[str]


def text_of(data: bytes, name: str, charset: str | None) -> str:
    """The text of a definition file, in UTF-8, the source's charset, Shift-JIS or EUC. Raises: ConfigError."""
    for encoding in ("utf-8-sig", *(s for s in ("cp932", "euc_jp") if s == charset), "cp932", "euc_jp"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ConfigError(f"{name} is no text in UTF-8, Shift-JIS or EUC", "Convert it to UTF-8")


def tables_in(text: str, name: str) -> list[CreatedTable]:
    """What CREATE TABLE statements say."""
    tokens = [token for token in TOKEN.findall(text) if not token.startswith(("--", "/*"))]
    words, found = [token.upper() for token in tokens], []
    for at in range(len(tokens)):
        if words[at : at + 2] == ["CREATE", "TABLE"] and "(" in words[at:]:
            start, first = words.index("(", at), at + 2
            first += 3 if words[first : first + 3] == ["IF", "NOT", "EXISTS"] else 0
            path = [name_of(token) for token in tokens[first:start] if token != "."]
            if not 1 <= len(path) <= 3:
                raise ConfigError(f"{name}: a CREATE TABLE without a name", REMEDY)
            found.append(_table(path[-2:] if path[1:] else ["", *path], tokens[start + 1 :]))
    return found


def _table(path: list[str], tokens: list[str]) -> CreatedTable:
    columns, primary, unique = list[Column](), list[str](), list[list[str]]()
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
            primary = [name_of(part[0])]
        elif "UNIQUE" in outside:
            unique.append([name_of(part[0])])
        is_nullable = ["NOT", "NULL"] not in [outside[n : n + 2] for n in range(len(outside))]
        columns.append(Column(name_of(part[0]), " ".join(part[1:end]), is_nullable))
    never_null = {column.name for column in columns if not column.is_nullable}
    key = primary or (unique[0] if len(unique) == 1 and set(unique[0]) <= never_null else [])
    columns = [column._replace(is_nullable=column.is_nullable and column.name not in key) for column in columns]
    return CreatedTable(path[0], path[1], columns, key)


def _names(part: list[str]) -> list[str]:
    """The columns of a constraint: what stands in its parentheses, without the order in which they are kept."""
    if "(" not in part:
        return []
    inner = part[part.index("(") + 1 : part.index(")")]
    return [name_of(token) for n, token in enumerate(inner) if n == 0 or inner[n - 1] == ","]


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


def name_of(token: str) -> str:
    """An identifier: as it stands in quotes, else in capitals, as the database keeps it."""
    return token[1:-1].replace('""', '"') if token.startswith('"') else token.upper()
