r"""XML 1.0 documents in one text, one behind the other, each element with the bytes that it takes.

Read by expat. A document type, and with it every entity that XML itself does not define, is refused: nothing outside
the text is opened, nothing grows. Comments and processing instructions are left out.

Rejects: invalid_xml.
>>> [first, second] = documents(b"<a x='1'>t<b/></a>\n<a/>")
>>> (first.start, first.end), first.attributes, first.text, first.children[0].name, (second.start, second.end)
((0, 18), {'x': '1'}, 't', 'b', (19, 23))
>>> str(list(documents(b"<a/><a>"))[-1].wrong)
'invalid_xml at byte 7: expected XML, found no element found'
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from inlet.fields.wrong import Wrong

BLANKS = b" \t\r\n"
LEN_READ = 1 << 12  # at first
TAG = re.compile(rb"<[^>\"']*+(?:\"[^\"]*+\"[^>\"']*+|'[^']*+'[^>\"']*+)*+>")


@dataclass
class Element:
    """An element: its bytes, from the start of the text; `text` is the character data between its children."""

    name: str
    attributes: dict[str, str]
    start: int
    end: int = 0
    texts: list[str] = field(default_factory=list)
    children: list["Element"] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def all(self, name: str) -> list["Element"]:
        """Its children of a name."""
        return [child for child in self.children if child.name == name]


@dataclass
class Broken:
    """What is left of a text that cannot be read on. `wrong.offset` is a byte of the text."""

    start: int
    end: int
    wrong: Wrong


def documents(data: bytes, encoding: str = "UTF-8") -> Iterator[Element | Broken]:
    """The root elements of a text; where it cannot be read to its end, one more piece is what is left. In: one of the
    encodings that expat knows and in which `<`, `>` and quotes are the bytes that they are in ASCII.
    """
    at = _skip(data, 0)
    while at < len(data):
        reader = _Reader(memoryview(data)[at:], encoding)
        wrong = reader.read()
        if reader.root is None or not reader.root.end:
            assert wrong is not None, "expat ends without an error where the root element has ended"
            yield Broken(at, len(data), Wrong(wrong.kind, at + wrong.offset, wrong.expected, wrong.found))
            return
        yield _moved(reader.root, at)
        at = _skip(data, reader.root.end)


def _skip(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in BLANKS:
        at += 1
    return at


def _moved(root: Element, by: int) -> Element:
    """The element and all in it, counted from the start of the text."""
    left = [root]
    while by and left:
        element = left.pop()
        element.start, element.end = element.start + by, element.end + by
        left += element.children
    return root


class _Reader:
    """Reads one document; `root` is its element as far as it was read."""

    def __init__(self, data: memoryview, encoding: str):
        self.data, self.root, self.open = data, None, list[Element]()
        self.parser = expat.ParserCreate(encoding)
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._doctype

    root: Element | None

    def read(self) -> Wrong | None:
        """What is wrong, maybe behind the document."""
        at, num_bytes = 0, LEN_READ
        try:
            while not (self.root and self.root.end):
                self.parser.Parse(self.data[at : at + num_bytes], at + num_bytes >= len(self.data))
                at, num_bytes = at + num_bytes, 2 * num_bytes  # so that many short documents cost no more than one
        except expat.ExpatError as error:
            why = expat.errors.messages[error.code]
            return Wrong("invalid_xml", self.parser.ErrorByteIndex, "XML", why)
        except Wrong as wrong:
            return wrong
        return None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        element = Element(name, attributes, self.parser.CurrentByteIndex)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def _end(self, name: str) -> None:
        element = self.open.pop()
        tag = TAG.match(self.data, element.start)
        if tag and self.data[tag.end() - 2 : tag.end()] != b"/>":  # of `<a/>` expat says where it ends
            tag = TAG.match(self.data, self.parser.CurrentByteIndex)
        assert tag, "expat has read the tags of the element"
        element.end = tag.end()

    def _text(self, text: str) -> None:
        self.open[-1].texts.append(text)

    def _doctype(self, *told) -> None:
        raise Wrong("invalid_xml", self.parser.CurrentByteIndex, "no document type", "<!DOCTYPE")
