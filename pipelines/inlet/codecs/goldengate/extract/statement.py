"""Statements of FORMATSQL: no SQL but what Extract writes, INSERT, UPDATE and DELETE of one row with literals. See
extract/files.
"""

import re
from collections.abc import Callable

from inlet.codecs.goldengate.extract.options import Options
from inlet.codecs.goldengate.operations.operation import Operation, Refused
from inlet.fields.wrong import cut
from inlet.table import Table

TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*+')|(?P<quoted>\"(?:[^\"]|\"\")+\")|(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)"
    r"(?:[eE][+-]?\d+)?(?![\w.]))|(?P<word>[^\W\d][\w$#]*)|(?P<mark>[(),=.;]))"
)
TIMES = {  # formats of TO_DATE and TO_TIMESTAMP whose texts are ISO's, or nearly
    "YYYY-MM-DD",
    "YYYY-MM-DD HH24:MI:SS",
    "YYYY-MM-DD HH24:MI:SS.FF",
    "YYYY-MM-DD HH24:MI:SSXFF",
    "YYYY-MM-DD:HH24:MI:SS",
    "YYYY-MM-DD:HH24:MI:SS.FF",
}
LETTERS = {"INSERT": "I", "UPDATE": "U", "DELETE": "D"}


class Shaped:
    """A record's text, and where its parts stand in it. `contract_of` gives the contract in force of a table."""

    def __init__(self, text: str, options: Options, contract_of: Callable[[str | None], Table]):
        self.text, self.contract_of, self.at = text, contract_of, 0
        self.places: dict[tuple[str, str | None], int] = {}

    def operation(self) -> Operation:
        """What the statement says. Raises: Refused."""
        verb = self._word(*LETTERS)
        images = {"INSERT": self._insert, "UPDATE": self._update, "DELETE": self._delete}[verb]()
        self._mark(";")
        if rest := self.text[self.at :].strip():
            raise self._wrong("the end of the statement", rest)
        return Operation(self.table, LETTERS[verb], None, before=images.get("before"), after=images.get("after"))

    table: str

    def _table(self) -> Table:
        """The contract of the table that is named next."""
        self.table = self._name(3)
        return self.contract_of(self.table)

    def _insert(self) -> dict[str, dict]:
        self._word("INTO")
        contract = self._table()
        names = self._list("after", self._column) if self._is_next("(") else contract.column_names
        self._word("VALUES")
        values = self._list("after", self._value)
        if len(names) != len(values):
            raise Refused("bad_column_count", "after", f"{len(names)} values", f"{len(values)}")
        self._refuse_twice("after", names)
        return {"after": dict(zip(names, values))}

    def _update(self) -> dict[str, dict]:
        self._table()
        self._word("SET")
        after = self._pairs("after", ",")
        return {"after": after, "before": self._where()}

    def _delete(self) -> dict[str, dict]:
        self._word("FROM")
        self._table()
        return {"before": self._where()}

    def _where(self) -> dict:
        self._word("WHERE")
        return self._pairs("before", "AND")

    def _pairs(self, role: str, between: str) -> dict:
        pairs: list[tuple[str, str | None]] = []
        while True:
            name, start = self._column(role), self.at
            if role == "before" and self._take()[1].upper() == "IS":
                self._word("NULL")
                pairs.append((name, None))
            else:
                self.at = start
                self._mark("=")
                pairs.append((name, self._value(role)))
            start = self.at
            if self._take()[1].upper() != between:
                self.at = start
                self._refuse_twice(role, [name for name, _ in pairs])
                return dict(pairs)

    def _refuse_twice(self, role: str, names: list[str]) -> None:
        for name in names:
            if names.count(name) > 1:
                raise Refused("column_twice", role, "each column once", name, name)

    def _list(self, role: str, read: Callable[[str], str | None]) -> list:
        self._mark("(")
        found = [read(role)]
        while self._is_next(","):
            self._mark(",")
            found.append(read(role))
        self._mark(")")
        return found

    def _column(self, role: str) -> str:
        start = self._start()
        name = self._name(1)
        self.places[role, name] = start
        return name

    def _value(self, role: str) -> str | None:
        """A literal: text in quotes, a number, NULL, or a text in TO_DATE or TO_TIMESTAMP."""
        start = self.at
        kind, token = self._take()
        if kind == "text":
            return token[1:-1].replace("''", "'")
        if kind == "number" or token.upper() == "NULL":
            return None if kind == "word" else token
        if kind == "word" and token.upper() in ("TO_DATE", "TO_TIMESTAMP"):
            texts = self._list(role, self._text)
            if len(texts) == 2 and texts[1].upper() in TIMES:
                return texts[0]
            raise self._wrong("a text and a format that is known, such as YYYY-MM-DD HH24:MI:SS", ", ".join(texts))
        self.at = start
        raise self._wrong("a text in quotes, a number, NULL, TO_DATE or TO_TIMESTAMP", token)

    def _text(self, role: str) -> str:
        kind, token = self._take()
        if kind != "text":
            raise self._wrong("a text in quotes", token)
        return token[1:-1].replace("''", "'")

    def _name(self, num_parts: int) -> str:
        parts = [self._part()]
        while len(parts) < num_parts and self._is_next("."):
            self._mark(".")
            parts.append(self._part())
        return ".".join(parts)

    def _part(self) -> str:
        kind, token = self._take()
        if kind not in ("word", "quoted"):
            raise self._wrong("a name", token)
        return token[1:-1].replace('""', '"') if kind == "quoted" else token

    def _word(self, *words: str) -> str:
        kind, token = self._take()
        if kind != "word" or token.upper() not in words:
            raise self._wrong(" or ".join(words), token)
        return token.upper()

    def _mark(self, mark: str) -> None:
        kind, token = self._take()
        if kind != "mark" or token != mark:
            raise self._wrong(mark, token)

    def _is_next(self, mark: str) -> bool:
        found = TOKEN.match(self.text, self.at)
        return bool(found and found["mark"] == mark)

    def _start(self) -> int:
        return len(self.text) - len(self.text[self.at :].lstrip())

    def _take(self) -> tuple[str, str]:
        """The next token, and its kind."""
        found = TOKEN.match(self.text, self.at)
        self.places["row", None] = self._start()
        if found is None:
            raise self._wrong("a statement as Extract writes it", self.text[self.at :].strip() or "the end")
        self.at = found.end()
        kind = str(found.lastgroup)
        return kind, found[kind]

    def _wrong(self, expected: str, found: str) -> Refused:
        return Refused("wrong_shape", "row", expected, cut(found, 40))
