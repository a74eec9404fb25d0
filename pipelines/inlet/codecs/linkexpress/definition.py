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

from inlet.codecs.linkexpress import definition_options
from inlet.codecs.linkexpress.create_table import Column, CreatedTable, name_of, tables_in, text_of
from inlet.codecs.linkexpress.item import ITEMS, LEN_INTEGER
from inlet.codecs.linkexpress.options import CommonOptions, Options, given
from inlet.codecs.results import Definition, Settings
from inlet.errors import ConfigError
from inlet.fields import sql_type
from inlet.source import Source

KEYWORD = re.compile(r"^[ \t]*([A-Z]+)\s*=\s*", re.MULTILINE)
STRINGS = {"CHARACTER", "VARCHAR", "NCHAR", "NVARCHAR", "TIME", "TEXT"}
INTEGERS = {"SMALLINT": "smallint", "INTEGER": "int"}
REMEDY = "Give an extraction definition, or the table's CREATE TABLE"


def definitions_of(data: bytes, name: str, source: Source) -> list[Definition]:
    """The column lists in a definition file. Their change_seq is empty, for it tells no time. Raises: ConfigError."""
    options = given(source).for_types()
    text = _without_comments(data, name, options.charset)
    tables = tables_in(text, name)
    extracted = [_extracted(one, tables, name) for one in _definitions(text) if "REPNAME" in one]
    # several of one table may differ in what they extract of it (DSI) alone
    found = [one for n, one in enumerate(extracted) if one not in extracted[:n]] or tables
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


def settings_of(files: list[tuple[str, bytes]], source: Source) -> Settings:
    """What the files say of the source itself. In: their names and bytes. Raises: ConfigError."""
    charset = given(source).charset
    found = [(name, one) for name, data in files for one in _definitions(_without_comments(data, name, charset))]
    return definition_options.settings(found, source)


def _without_comments(data: bytes, name: str, charset: str | None) -> str:
    lines = text_of(data, name, charset).splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def _definitions(text: str) -> list[dict[str, str]]:
    """Keyword -> value of each extraction definition (REPNAME) and each of a group (GRPNAME), which names no table."""
    found: list[dict[str, str]] = []
    for match in KEYWORD.finditer(text):
        if match[1] in ("REPNAME", "GRPNAME"):
            found.append({})
        if found:
            found[-1][match[1]] = "" if KEYWORD.match(text, match.end()) else _value(text, match.end())
    return found


def _value(text: str, start: int) -> str:
    """A value: up to the end of its line, unless a list goes on there, within parentheses or behind a comma."""
    depth, at = 0, start
    while at < len(text) and (text[at] != "\n" or depth > 0 or text[start:at].rstrip().endswith(",")):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[start:at].strip()


def _extracted(one: dict[str, str], tables: list[CreatedTable], name: str) -> CreatedTable:
    place = f"{name}: {one['REPNAME']}"
    if lacking := [keyword for keyword in ("SCHEMA", "TABLE") if not one.get(keyword)]:
        raise ConfigError(f"{place} has no {lacking[0]}", "Give the extraction definition as it was registered")
    schema, table = name_of(one["SCHEMA"]), name_of(one["TABLE"])
    known = next((t for t in tables if (t.schema, t.name) in ((schema, table), ("", table))), None)
    of = {column.name: column for column in known.columns} if known else {}
    names = [name_of(word.strip()) for word in _list(one.get("SELECT", ""))]
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
    columns = [of.get(n) or Column(n, "", True) for n in names or of]
    columns = [column._replace(type=text) for column, text in zip(columns, types)] if types else columns
    key = known.key if known else []
    return CreatedTable(schema, table, columns, key if set(key) <= {column.name for column in columns} else [])


def _list(text: str) -> list[str]:
    """The members of a list, in parentheses or not; commas within inner ones separate none."""
    inner = text.strip().removeprefix("(").removesuffix(")") if text.strip().startswith("(") else text
    return [word for word in re.split(r",(?![^(]*\))", inner) if word.strip()]


def _typed(place: str, column: Column, options: Options) -> dict:
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
        "type": type_of(word, numbers, options),
        "nullable": column.is_nullable,
        "source_type": source_type if word == "INTERVAL" else text,
    }


def type_of(word: str, numbers: tuple[int, ...], options: CommonOptions) -> str:
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
