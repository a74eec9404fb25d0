"""Elements dbupdate of FORMATXML; see extract/files."""

from collections.abc import Callable

from inlet.codecs.goldengate.extract.options import Options
from inlet.codecs.goldengate.operations.operation import Operation, Refused
from inlet.fields import xml_exact
from inlet.fields.xml_exact import Element
from inlet.table import Table

LETTERS = {"insert": "I", "update": "U", "delete": "D"}


class Shaped:
    """A record's text, and where its parts stand in it."""

    def __init__(self, text: str, options: Options, contract_of: Callable[[str | None], Table]):
        self.text, self.options, self.contract_of = text, options, contract_of
        self.places: dict[tuple[str, str | None], int] = {}

    def operation(self) -> Operation:
        """What the element says. Raises: Refused."""
        element = self._element()
        self._check(element, "dbupdate", {"table", "type"}, {"table", "type"})
        self.contract_of(element.attributes["table"])  # names the table of what is rejected from here on
        word = element.attributes["type"]
        if word not in LETTERS:
            raise Refused("unknown_operation", "op_type", "insert, update or delete", word)
        role = "before" if word == "delete" else "after"
        image: dict[str, str | None] = {}
        tokens: dict[str, str] = {}
        for columns in element.children:
            if columns.name == "tokens":
                self._read_tokens(columns, tokens)
                continue
            self._check(columns, "columns", set(), set())
            for column in columns.children:
                self._check(column, "column", {"name"}, {"name", "key", "status"})
                name = column.attributes["name"]
                if name in image:
                    raise Refused("column_twice", role, "each column once", name, name)
                self.places[role, name] = self._place(column)
                image[name] = self._value(column, role)
        before, after = (image, None) if role == "before" else (None, image)
        return Operation(element.attributes["table"], LETTERS[word], None, before=before, after=after, tokens=tokens)

    def _read_tokens(self, element: Element, tokens: dict[str, str]) -> None:
        self._check(element, "tokens", set(), set())
        for token in element.children:
            self._check(token, "token", {"name"}, {"name"})
            name = token.attributes["name"]
            if name in tokens:
                raise Refused("wrong_shape", "row", "each token once", name)
            tokens[name] = token.text

    def _element(self) -> Element:
        found = next(iter(xml_exact.documents(self.text.encode())))
        if isinstance(found, Element):
            return found
        self.places["row", None] = len(self.text.encode()[: found.wrong.offset].decode("utf-8", "ignore"))
        raise Refused(found.wrong.kind, "row", found.wrong.expected, found.wrong.found)

    def _place(self, element: Element) -> int:
        return len(self.text.encode()[: element.start].decode())

    def _check(self, element: Element, name: str, needed: set[str], known: set[str]) -> None:
        """Raises: Refused, for an element with another name, or with other attributes."""
        self.places["row", None] = self._place(element)
        if element.name != name or not needed <= element.attributes.keys() <= known:
            found = f"{element.name} with {', '.join(element.attributes) or 'none'}"
            raise Refused("wrong_shape", "row", f"{name} with {', '.join(sorted(known)) or 'no attribute'}", found)

    def _value(self, column: Element, role: str) -> str | None:
        name = column.attributes["name"]
        if column.children:
            raise Refused("wrong_shape", role, "text", column.children[0].name, name)
        status, means = column.attributes.get("status"), self.options.empty_element
        if status not in (None, "null") or status and column.text:
            raise Refused("wrong_shape", role, "status null without text, or no status", f"status {status}", name)
        if status or not column.text and means == "null":
            return None
        if not column.text and means == "auto":
            expected = 'text, or status="null"; say by the option empty_element what an element without both is'
            raise Refused("ambiguous_layout", role, expected, "none", name)
        return column.text
