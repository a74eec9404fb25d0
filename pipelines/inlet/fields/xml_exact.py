r"""XML 1.0 documents in one text, one behind the other, each element with the bytes that it takes.

Read by expat. A document type, and with it every entity that XML itself does not define, is refused: nothing outside
the text is opened, nothing grows. Comments and processing instructions are left out.

Rejects: invalid_xml, bad_text.
>>> [first, second] = documents(b"<a x='1'>t<b/></a>\n<a/>")
>>> (first.start, first.end), first.attributes, first.text, first.children[0].name, (second.start, second.end)
((0, 18), {'x': '1'}, 't', 'b', (19, 23))
>>> str(list(documents(b"<a/><a>"))[-1].wrong)
'invalid_xml at byte 7: expected XML, found no element found'
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from xml.parsers import expat

from inlet.fields import charset
from inlet.fields.wrong import Wrong

UTF_8 = "UTF-8"
DECLARATION = re.compile(rb"<\?xml(?:\s[^>]*?)?\sencoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
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


def documents(data: bytes) -> Iterator[Element | Broken]:
    """The root elements of a text; where it cannot be read to its end, one more piece is what is left. A document is in
    UTF-8, or in the encoding that its declaration says.
    """
    at, texts = _skip(data, 0), dict[str, _Text]()
    while at < len(data):
        declared = DECLARATION.match(data, at)
        name = declared[1].decode() if declared else UTF_8
        if name not in texts:
            try:
                texts[name] = _Text(data, at, name)
            except ValueError as error:
                found = Wrong(
                    "invalid_xml", declared.start(1), f"{error}".removeprefix("expected ").partition(", found")[0], name
                )
                yield Broken(at, len(data), found)
                return
        text = texts[name]
        reader = _Reader(memoryview(text.data)[text.place(at) :])
        wrong = reader.read()
        if reader.root is None or not reader.root.end:
            assert wrong is not None, "expat ends without an error where the root element has ended"
            offset = text.origin(text.place(at) + wrong.offset)
            left = Wrong(wrong.kind, offset, wrong.expected, wrong.found)
            yield Broken(at, len(data), text.fault if text.fault and text.fault.offset <= offset else left)
            return
        yield _moved(reader.root, text, text.place(at))
        at = _skip(data, reader.root.end)


class _Text:
    """Bytes from a place on, in UTF-8, up to the first that are no character (`fault`). Raises: ValueError for the name
    of no set that has ASCII."""

    def __init__(self, data: bytes, start: int, name: str):
        set_ = charset.with_ascii(name)
        self.data, self.fault, self.origins, self.places = data, None, list[int](), dict[int, int]()
        if set_.mode == charset.UTF8:  # expat checks it
            return
        found = charset.characters(data[start:], set_)
        num = len(found.text)
        if found.faults:
            first = found.faults[0]
            self.fault = Wrong(first.kind, start + first.offset, first.expected, first.found)
            num = found.starts.index(first.offset)
        self.data = found.text[:num].encode()
        places = accumulate((len(char.encode()) for char in found.text[:num]), initial=0)
        for place, origin in zip(places, found.starts):
            self.places[start + origin] = place
            self.origins += [start + origin] * (place + 1 - len(self.origins))

    fault: Wrong | None

    def place(self, at: int) -> int:
        """The byte in UTF-8 of a byte that begins a character, or of the fault."""
        return self.places.get(at, len(self.data)) if self.places else at

    def origin(self, place: int) -> int:
        """The byte of a byte in UTF-8."""
        return self.origins[place] if self.origins else place


def _skip(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in BLANKS:
        at += 1
    return at


def _moved(root: Element, text: _Text, by: int) -> Element:
    """The element and all in it, counted from the start of what is read."""
    left = [root]
    while (by or text.origins) and left:
        element = left.pop()
        element.start, element.end = text.origin(element.start + by), text.origin(element.end + by)
        left += element.children
    return root


class _Reader:
    """Reads one document; `root` is its element as far as it was read."""

    def __init__(self, data: memoryview):
        self.data, self.root, self.open = data, None, list[Element]()
        self.parser = expat.ParserCreate(UTF_8)
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
