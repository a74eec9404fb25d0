"""The text of acquisition definitions (取得定義) and distribution definitions (配付定義) of usage journals.

Acquisition   LOGFMT name                  or SIMPLEFMT name, of Symfoware, which is written the same way
                [ SYSITEM item {, item} | TABLE table ( column {, column} ) | DSI table name {, name} ] ...
                [ CHECKPOINT name {, name} ]
                [ COMMENT "text" ] ;
              table    schema.table (Oracle), database.schema.table (Symfoware). SIMPLEFMT: ALL for all its columns
              column   item : column type edit. SIMPLEFMT: [ item : ] column [ type ]; without a type, that of the
                       database. The one edit that is known is CONV=(SIZE(n)), of VARCHAR(MAX) and NVARCHAR(MAX)
              words    keywords in capitals; names in double quotes stand as they are, others are in capitals; -- begins
                       a comment, up to the end of its line
Distribution  [Queue], below it lines KEYWORD = value: Name, Logfmt, Compress, Pack, OutCode, and more. Sections and
              keywords in small letters or capitals; # begins a comment, a value that is left out says nothing
Facts         [documented] all of this: TRO manual, 12.5.4, 12.5.5, B.2.3, B.5.1, B.5.2, C.1
              ASSUMED: SQL Server's tables have two or three names, too
Not read      edits but CONV=(SIZE(n)), whose forms no public source shows; the update resource name of SQL Server
Source        docs/formats/linkexpress_journal.md
"""

import re
from typing import NamedTuple, NoReturn

from inlet.codecs.linkexpress.create_table import TOKEN, name_of
from inlet.errors import ConfigError

KEYWORDS = ("LOGFMT", "SIMPLEFMT", "SYSITEM", "TABLE", "DSI", "CHECKPOINT", "COMMENT", "ALL", "CONV")
CLAUSES = ("SYSITEM", "TABLE", "DSI", "CHECKPOINT", "COMMENT", ";")
SECTION = re.compile(r"\s*\[\s*(\w+)\s*\]\s*(?:#.*)?")
STATEMENT = re.compile(r"\s*(LOGFMT|SIMPLEFMT|CREATE)\b")
SETTING = re.compile(r"\s*(\w+)\s*=\s*([^#]*?)\s*(?:#.*)?")
REMEDY = "Give the definition as it was registered"


class Column(NamedTuple):
    """A column that is acquired."""

    name: str
    type: str  # "" where the database's is taken
    line: int


class Acquired(NamedTuple):
    """A table of an acquisition definition."""

    schema: str
    name: str
    columns: list[Column] | None  # None for all that it has
    line: int


class Acquisition(NamedTuple):
    """A LOGFMT or SIMPLEFMT. Lines are counted from 1; 0 for a clause that is not there."""

    file: str
    line: int
    name: str
    sysitems: list[tuple[str, int]]
    tables: list[Acquired]
    checkpoint_line: int


class Queue(NamedTuple):
    """A [Queue] section: its keywords in small letters -> value, line."""

    file: str
    line: int
    values: dict[str, tuple[str, int]]


class Word(NamedTuple):
    text: str
    line: int


def read(text: str, file: str) -> tuple[list[Acquisition], list[Queue]]:
    """The definitions in a file. Raises: ConfigError, which names line and remedy."""
    statements, queues, section = list[str](), list[Queue](), False
    for number, line in enumerate(text.splitlines(), 1):
        match = SECTION.fullmatch(line)
        section = bool(match) or section and not STATEMENT.match(line)
        if match:
            if match[1].casefold() != "queue":
                raise ConfigError(f"{file}, line {number}: expected [Queue], found [{match[1]}]", REMEDY)
            queues.append(Queue(file, number, {}))
        elif section:
            _setting(line, number, queues[-1])
        statements.append("" if section else line)
    reader = _Reader(_words("\n".join(statements)), file)
    found = []
    while reader.text:
        if reader.text == "CREATE":
            reader.skip_statement()
        else:
            found.append(reader.acquisition())
    return found, queues


def _setting(line: str, number: int, queue: Queue) -> None:
    if not line.strip() or line.lstrip().startswith("#"):
        return
    match = SETTING.fullmatch(line)
    if not match:
        raise ConfigError(f"{queue.file}, line {number}: expected KEYWORD = value, found {line.strip()}", REMEDY)
    keyword = match[1].casefold()
    if keyword in queue.values:
        raise ConfigError(f"{queue.file}, line {number}: {match[1]} stands in its section twice", REMEDY)
    if match[2]:
        queue.values[keyword] = match[2], number


def _words(text: str) -> list[Word]:
    found, line, at = [], 1, 0
    for match in TOKEN.finditer(text):
        line, at = line + text.count("\n", at, match.start()), match.start()
        if not match[0].startswith(("--", "/*")):
            found.append(Word(match[0], line))
    return found


class _Reader:
    """Reads words from first to last."""

    def __init__(self, words: list[Word], file: str):
        self.words, self.file, self.at = words, file, 0

    @property
    def text(self) -> str:
        """The next word; "" behind the last one."""
        return self.words[self.at].text if self.at < len(self.words) else ""

    @property
    def line(self) -> int:
        return self.words[min(self.at, len(self.words) - 1)].line

    def fail(self, expected: str, remedy: str = REMEDY) -> NoReturn:
        found = self.text or "the end of the file"
        raise ConfigError(f"{self.file}, line {self.line}: expected {expected}, found {found}", remedy)

    def take(self, *expected: str) -> str:
        """The next word, one of these. Raises: ConfigError."""
        if self.text not in expected:
            self.fail(" or ".join(expected))
        self.at += 1
        return self.words[self.at - 1].text

    def name(self, what: str) -> str:
        """The next word, a name. Raises: ConfigError."""
        if self.text in KEYWORDS or not re.fullmatch(r'\w[\w$@#]*|"[^"]+"', self.text):
            self.fail(what)
        self.at += 1
        return name_of(self.words[self.at - 1].text)

    def names(self, what: str, more: str = ",") -> list[str]:
        found = [self.name(what)]
        while self.text == more:
            self.at += 1
            found.append(self.name(what))
        return found

    def skip_statement(self) -> None:
        while self.text not in ("", ";", "LOGFMT", "SIMPLEFMT"):
            self.at += 1
        self.at += self.text == ";"

    def acquisition(self) -> Acquisition:
        line = self.line
        if self.text not in ("LOGFMT", "SIMPLEFMT"):
            self.fail("LOGFMT, SIMPLEFMT, CREATE TABLE or [Queue]", "Keywords are written in capitals")
        self.at += 1
        found = Acquisition(self.file, line, self.name("the definition's name"), [], [], 0)
        while (clause := self.take(*CLAUSES)) != ";":
            at = self.words[self.at - 1].line
            if clause == "SYSITEM":
                found.sysitems.extend((item, at) for item in self.names("a system item, such as TJNLTIME"))
            elif clause == "TABLE":
                found.tables.append(self.table(at))
            elif clause == "DSI":
                self.path()
                self.names("a DSI's name")
            elif clause == "CHECKPOINT":
                self.checkpoints()
                found = found._replace(checkpoint_line=at)
            elif not re.fullmatch(r'"[^"]*"', self.text):
                self.fail("a text in double quotes")
            else:
                self.at += 1
        return found

    def checkpoints(self) -> None:
        """Names of checkpoints, which may end in, or be, a wildcard."""
        while True:
            if self.text in ("*", "%"):
                self.at += 1
            else:
                self.name("a checkpoint's name")
                self.at += self.text in ("*", "%")
            if self.text != ",":
                return
            self.at += 1

    def path(self) -> list[str]:
        names = self.names("the name of a schema or table", ".")
        if len(names) not in (2, 3):
            self.at -= 1
            self.fail("SCHEMA.TABLE or DATABASE.SCHEMA.TABLE")
        return names[-2:]

    def table(self, line: int) -> Acquired:
        schema, name = self.path()
        if self.text == "ALL":
            self.at += 1
            return Acquired(schema, name, None, line)
        if self.text != "(":
            self.fail("( and the columns, or ALL", "What no public manual shows is not read: take it out of a copy")
        self.at += 1
        columns = [self.column()]
        while self.take(",", ")") == ",":
            columns.append(self.column())
        return Acquired(schema, name, columns, line)

    def column(self) -> Column:
        line, name = self.line, self.name("an item's or a column's name")
        if self.text == ":":
            self.at += 1
            name = self.name("a column's name")
        words, depth = list[str](), 0
        while self.text not in ("", ";", "CONV") and (depth or self.text not in (",", ")")):
            depth += {"(": 1, ")": -1}.get(self.text, 0)
            words.append(self.text)
            self.at += 1
        return Column(name, self.edited(" ".join(words)), line)

    def edited(self, type_: str) -> str:
        """The type that a column has by its edit. Raises: ConfigError."""
        compact = re.sub(r"\s*([(,])\s*", r"\1", type_).replace(" )", ")")
        is_max = compact.upper().endswith("(MAX)")
        if self.text != "CONV":
            if is_max:
                self.fail(f"CONV=(SIZE(n)) behind {compact}, the size that is acquired")
            return compact
        remedy = "Take the edit out of a copy, and give the type that the journals have"
        words = [word.text for word in self.words[self.at : self.at + 8]]
        if not is_max or words[1:5] != ["=", "(", "SIZE", "("] or words[6:] != [")", ")"] or not words[5].isdecimal():
            self.fail("no edit but CONV=(SIZE(n)), behind VARCHAR(MAX) or NVARCHAR(MAX)", remedy)
        self.at += 8
        return f"{compact[: -len('(MAX)')]}({words[5]})"
