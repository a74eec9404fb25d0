"""Definition files of usage journals, for `inlet import`: acquisition and distribution definitions.

Becomes   each TABLE of an acquisition definition a column list: its columns, by their names in the database, in order.
          What is of the source itself: SYSITEM option sysitems, CHECKPOINT has_checkpoint, Compress compressed, OutCode
          charset, the tables' names and their order `tables`; import prints what inlet.yml lacks of these, and refuses
          what contradicts it
Files     one acquisition definition, one [Queue], and CREATE TABLE of its tables: in one file or in several, but
          CREATE TABLE with the acquisition definition. It tells the key, what is never null, and the types that a
          SIMPLEFMT leaves out
Types     as in the column list of values.py, under their SQL names. NUMBER(p) is INTEGER, NUMBER(p,q) NUMERIC,
          VARCHAR2 and NVARCHAR2 are VARCHAR and NVARCHAR; FLOAT up to 23 is REAL, from 25 on DOUBLE; DATETIME,
          DATETIME2, SMALLDATETIME are TIMESTAMP, whose fractions of a second are not acquired
Facts     [documented] types; GS_KANA and GS_ASCII of OutCode; that RESOURCE holds a bare name . acquisition.py has the
          grammar
          ASSUMED: TJNLSYSALL gives the items in the order of their codes, TIME first; Compress is YES or NO; OutCode
          SJIS is cp932, EUC euc_jp. What other words mean, a note asks
          FLOAT(24) is REAL in SQL Server and DOUBLE in Symfoware: the definition has to say which
Source    docs/formats/linkexpress_journal.md
"""

import re

from inlet.codecs.linkexpress.create_table import CreatedTable, tables_in, text_of
from inlet.codecs.linkexpress.definition import type_of
from inlet.codecs.linkexpress.definition_options import of_charset
from inlet.codecs.linkexpress.journal import acquisition
from inlet.codecs.linkexpress.journal.acquisition import Acquired, Acquisition, Column, Queue
from inlet.codecs.linkexpress.journal.options import Options
from inlet.codecs.linkexpress.journal.values import CODES, INTERVAL, LEN_FIXED, _sizes_of
from inlet.codecs.results import Definition, Setting, Settings
from inlet.errors import ConfigError
from inlet.fields import sql_type
from inlet.source import Source

SYSITEMS = ("TIME", "TRNID", "STS", "DBKIND", "DBOP", "STORAGE", "RESOURCE")  # by their codes, 81 to 87
ALL_SYSITEMS = "TJNLSYSALL"
OTHER_NAMES = {"DATETIME": "TIMESTAMP", "SMALLDATETIME": "TIMESTAMP", "VARBINARY": "BINARY"}
SECOND = re.compile(r"(N?VARCHAR|DATETIME)2\b", re.IGNORECASE)  # VARCHAR2 and so on, which are as those without the 2
WORDS = {"YES": "yes", "NO": "no"}
READ = (
    "name",
    "logfmt",
    "compress",
    "pack",
    "outcode",
)  # keywords of a [Queue]; Pack needs no option, whatever its word
ONE = "Give the definitions of the source's own queue alone"


def definitions_of(data: bytes, name: str, source: Source) -> list[Definition]:
    """The column lists in a file; none in one of distribution definitions. Their change_seq is empty, for it tells no
    time. Raises: ConfigError.
    """
    options = source.options_as(Options).for_types()
    text = text_of(data, name, options.charset)
    found, queues = acquisition.read(text, name)
    if not found and queues:
        return []
    if not found:
        raise ConfigError(f"{name} holds neither LOGFMT, SIMPLEFMT nor [Queue]", "Give an acquisition definition")
    if found[1:]:
        raise ConfigError(f"{name}, line {found[1].line}: a second definition, {found[1].name}", ONE)
    created = {(table.schema, table.name): table for table in tables_in(text, name)}
    _check_names(found[0])
    return [_definition(found[0], table, _created(table, created), options) for table in found[0].tables]


def _created(table: Acquired, created: dict) -> CreatedTable | None:
    return created.get((table.schema, table.name)) or created.get(("", table.name))


def _check_names(definition: Acquisition) -> None:
    """Raises: ConfigError where a journal would not tell its table."""
    seen: dict[str, Acquired] = {}
    for table in definition.tables:
        if table.name in seen:
            other = seen[table.name]
            raise ConfigError(
                f"{definition.file}, line {table.line}: {table.schema}.{table.name} and, in line {other.line}, "
                f"{other.schema}.{other.name}: a journal names its table by {table.name} alone",
                "Acquire them by two definitions, as two sources",
            )
        seen[table.name] = table
    if not definition.tables:
        raise ConfigError(f"{definition.file}, line {definition.line}: {definition.name} has no TABLE", ONE)


def _definition(of: Acquisition, table: Acquired, created: CreatedTable | None, options: Options) -> Definition:
    known = {column.name: column for column in created.columns} if created else {}
    if table.columns is None and not known:
        raise ConfigError(
            f"{of.file}, line {table.line}: ALL columns, and no CREATE TABLE {table.schema}.{table.name}",
            "Put that statement into the file, too",
        )
    columns = table.columns or [Column(name, "", table.line) for name in known]
    names = [column.name for column in columns]
    found = []
    for n, column in enumerate(columns):
        place = f"{of.file}, line {column.line}: {table.schema}.{table.name}.{column.name}"
        if column.name in names[:n]:
            raise ConfigError(f"{place} stands there twice", "Acquire a column once, or write its contract by hand")
        if known and column.name not in known:
            raise ConfigError(f"{place} is no column of its CREATE TABLE", "Give those of one time")
        if not column.type and not known:
            raise ConfigError(f"{place} has no type, and there is no CREATE TABLE", "Put that statement into the file")
        type_, source_type = _types(place, column.type or known[column.name].type, options)
        is_nullable = column.name not in known or known[column.name].is_nullable
        found.append({"name": column.name, "type": type_, "nullable": is_nullable, "source_type": source_type})
    key = created.key if created and set(created.key) <= set(names) else []
    return Definition(table.schema, table.name, found, key, "", 0)


def _types(place: str, text: str, options: Options) -> tuple[str, str]:
    """The contract's type and the source_type that hold a type of a definition. Raises: ConfigError."""
    remedy = f"Supported: {', '.join((*CODES, *OTHER_NAMES))}, NUMBER, with their lengths"
    if text.upper().startswith("INTERVAL"):
        source_type = text.upper()
        if not INTERVAL.fullmatch(source_type):
            raise ConfigError(f"{place}: type {text!r} is not supported", "Write it as INTERVAL DAY(3) TO SECOND")
        _sizes_of(place, source_type, "string", options.charset, True)
        return "string", source_type
    try:
        kind, numbers = sql_type.parse(SECOND.sub(r"\1", text))
        kind, numbers = _named(OTHER_NAMES.get(kind, kind), numbers)
        if kind not in CODES:
            raise ValueError("it is none of the types there are")
        if kind in ("VARCHAR", "NVARCHAR", "NUMERIC", "DECIMAL", "BINARY") and not numbers:
            raise ValueError("it needs its length")
    except ValueError as error:
        raise ConfigError(f"{place}: type {text!r} is not supported: {error}", remedy) from error
    source_type = f"{kind}({','.join(map(str, numbers))})" if numbers else kind
    type_ = type_of(kind, numbers, options)
    _sizes_of(place, source_type, type_, options.charset, bool(options.nchar_set("big")))
    return type_, source_type


def _named(kind: str, numbers: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """A type under the name that source_type has for it. Raises: ValueError."""
    if kind == "NUMBER":
        if not numbers:
            raise ValueError("it needs its digits")
        return ("NUMERIC", numbers) if numbers[1:] else ("INTEGER", ())
    if kind == "FLOAT":
        if numbers[:1] == (24,):
            raise ValueError("24 is short in SQL Server, long in Symfoware; write REAL or DOUBLE PRECISION")
        return ("REAL" if numbers and numbers[0] < 24 else "DOUBLE"), ()
    return kind, () if kind in LEN_FIXED else numbers


def settings_of(files: list[tuple[str, bytes]], source: Source) -> Settings:
    """What the files say of the source itself. In: their names and bytes. Raises: ConfigError where they contradict
    each other, or themselves.
    """
    options = source.options_as(Options)
    found, queues = list[Acquisition](), list[Queue]()
    for name, data in files:
        acquisitions, sections = acquisition.read(text_of(data, name, options.charset), name)
        found, queues = found + acquisitions, queues + sections
    for twice in (found[1:], queues[1:]):
        if twice:
            raise ConfigError(f"{twice[0].file}, line {twice[0].line}: a second definition", ONE)
    settings = Settings({}, {}, "", [])
    if queues:
        _of_queue(queues[0], found, options, settings)
    if found:
        settings = _of_acquisition(found[0], options, source, settings)
    return settings


def _of_acquisition(definition: Acquisition, options: Options, source: Source, settings: Settings) -> Settings:
    place = f"{definition.file}, line"
    names, line = _sysitems(definition, len(definition.tables) > 1)
    if not (definition.sysitems[0][0] == ALL_SYSITEMS and sorted(options.sysitems) == sorted(names)):
        settings.options["sysitems"] = Setting(names, f"{place} {line}: SYSITEM")
    if definition.sysitems[0][0] == ALL_SYSITEMS:
        settings.notes.append(
            f"{ALL_SYSITEMS} gives no order: sysitems is that of the codes. Where untagged journals do not fit it, "
            "try RESOURCE, STORAGE, TIME, TRNID, STS, DBKIND, DBOP"
        )
    if not (line := definition.checkpoint_line):
        settings.options["has_checkpoint"] = Setting("no", f"{place} {definition.line}: no CHECKPOINT")
    elif options.framing in ("mq_message", "message_body"):
        settings.options["has_checkpoint"] = Setting("yes", f"{place} {line}: CHECKPOINT")
    elif options.framing == "auto" and options.has_checkpoint == "auto":
        settings.options["has_checkpoint"] = Setting("yes", f"{place} {line}: CHECKPOINT")
        settings.notes.append("has_checkpoint is no for files that the message-extraction command wrote")
    charset = settings.options["charset"].value if "charset" in settings.options else options.charset
    is_of_host = options.byte_order == "big" or str(charset).startswith(("ebcdic_", "gs_"))  # which is big-endian
    if options.tagged != "yes" and options.validity_order == "auto" and not is_of_host:
        settings.notes.append(
            "no definition tells the byte order of validities: journals of Windows or Linux that are not tagged may "
            "need validity_order (native or bytes), which tells null from missing"
        )
    tables = {table.name: f"{table.schema}.{table.name}" for table in definition.tables}
    return settings._replace(tables=tables, tables_said=f"{place} {definition.line}: {definition.name}")


def _sysitems(definition: Acquisition, has_several: bool) -> tuple[list[str], int]:
    """The system items, and the line that names them. Raises: ConfigError where a journal could not be read."""
    line = definition.sysitems[0][1] if definition.sysitems else definition.line
    place = f"{definition.file}, line"
    if [word for word, _ in definition.sysitems] == [ALL_SYSITEMS]:
        return list(SYSITEMS), line
    names = []
    for word, at in definition.sysitems:
        name = word.removeprefix("TJNL")
        if name == word or name not in SYSITEMS or name in names:
            raise ConfigError(
                f"{place} {at}: expected a system item that is not there yet, found {word}",
                f"There are {', '.join(f'TJNL{one}' for one in SYSITEMS)}; or {ALL_SYSITEMS} alone",
            )
        names.append(name)
    needed = ("RESOURCE", "DBOP") if has_several else ("DBOP",)
    if lacking := [name for name in needed if name not in names]:
        raise ConfigError(
            f"{place} {line}: SYSITEM of {definition.name} lacks TJNL{' and TJNL'.join(lacking)}",
            "Without it a journal does not tell what it is; acquire it",
        )
    return names, line


def _of_queue(queue: Queue, found: list[Acquisition], options: Options, settings: Settings) -> None:
    def said(keyword: str, as_written: str) -> tuple[str, str]:
        value, line = queue.values.get(keyword, ("", 0))
        return value, f"{queue.file}, line {line}: {as_written}"

    logfmt, place = said("logfmt", "Logfmt")
    if logfmt and found and logfmt.casefold() != found[0].name.casefold():
        raise ConfigError(f"{place} is {logfmt}, {found[0].file} has {found[0].name}", ONE)
    value, place = said("compress", "Compress")
    if value and value.upper() not in WORDS:
        raise ConfigError(f"{place}: expected YES or NO, found {value}", "Give the definition as it was registered")
    if value:
        settings.options["compressed"] = Setting(WORDS[value.upper()], place)
    value, place = said("outcode", "OutCode")
    of_charset(value, place, options, settings)
    if unread := [keyword for keyword in queue.values if keyword not in READ]:
        settings.notes.append(f"{queue.file}, line {queue.line}: {', '.join(unread)} of [Queue] says nothing here")
