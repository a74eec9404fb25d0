"""Oracle GoldenGate: XML messages (format=xml) of Big Data / Distributed Applications and Analytics (DAA).

Unit        one message; each element `operation` in it is a record. Several stand one behind the other, or within one
            element of any name; what lies between them is framing. What cannot be read as XML is one reject, up to the
            end of the message
Yields      for each element one change or one reject. A change may bring control events with it: operations/change
Shape       <operation table= type= ts= current_ts= pos= numCols=>
              <col name= index=> <before/> <after/> </col> ...
              <tokens> <token> <Name/> <Value/> </token> ... </tokens>
            Further attributes of `operation` are members of the message's own
Image       missing='true': not supplied [message seen]. isNull='true': SQL NULL [recalled spelling: the option
            null_attribute]. Else its text, in CDATA or escaped; none is empty text. An element that is not there was
            not supplied
Count       numCols is the number of elements col, where it is there
            ASSUMED: that
Controls    `tombstone`: a message that is null
Contracts   `inlet import` makes them of Defgen's files, too: defgen, on the page goldengate_trail
Meaning     operations/change, operations/images, position, operations/time
Safety      a document type is refused, so there are no entities but those of XML
Charset     UTF-8, or that of the XML declaration, strictly; a set that has ASCII
Facts       [message seen] the elements and attributes above, missing='true', CDATA, in a published message.
            [documented] Oracle, "Using the Pluggable Formatters". [recalled] isNull
Rejects     invalid_xml, bad_text, wrong_shape, bad_column_count, column_twice, and those of operations/change
"""

from collections.abc import Iterator
from contextlib import suppress

from inlet.codecs.goldengate.message_definitions import definitions_of  # noqa: F401  part of what a codec offers
from inlet.codecs.goldengate.operations import change as operation_change
from inlet.codecs.goldengate.operations.operation import Record, Refused
from inlet.codecs.goldengate.xml.operation import Shaped
from inlet.codecs.goldengate.xml.options import Options
from inlet.codecs.notes import Said
from inlet.codecs.results import Control, Decoded
from inlet.errors import Reject
from inlet.fields import xml_exact
from inlet.fields.xml_exact import Broken, Element
from inlet.source import Source

OPTIONS, FAST, LOADS = Options, None, None
TOMBSTONE = "tombstone"  # a control event
OPERATION = "operation"


def decode_message(message: dict, source: Source, tables: dict, loads: list[dict]) -> Decoded:
    """Read one message exactly. In: a bronze.messages row; contracts by SCHEMA.TABLE. There are no loads."""
    data, options = message["value"], source.options_as(Options)
    if data is None:
        return Decoded([], controls=[Control(TOMBSTONE, 0, 0)], num_control=1)
    found, changes, rejects = Decoded([], bytes_framing=len(data)), list[dict](), list[Reject]()
    controls: list[Control] = []
    for element in _records(data):
        raw = data[element.start : element.end]
        found.bytes_framing -= len(raw)
        if isinstance(element, Broken):
            wrong = element.wrong
            rejects.append(Reject(wrong.kind, element.start, len(raw), wrong.offset, wrong.expected, wrong.found, raw))
            continue
        shaped = Shaped(element, options)
        record = Record(message["unit_id"], message["topic"], element.start, raw, shaped.offset_of)
        try:
            if element.name != OPERATION:
                raise Refused("wrong_shape", "row", OPERATION, element.name)
            row, beside = operation_change.decode(shaped.operation(), record, source, tables, options)
        except Refused as no:
            row, beside = operation_change.rejected(no, record), []
        (rejects if isinstance(row, Reject) else changes).append(row)  # type: ignore[arg-type]
        controls += beside
    found.changes, found.rejects, found.controls = changes, rejects, controls
    found.num_control = int(not (changes or rejects))
    return found


def says(message: dict, source: Source, tables: dict) -> list[Said]:
    """What the operations of a message say of their places."""
    options, found = source.options_as(Options), list[Said]()
    for element in _records(message["value"]):
        if isinstance(element, Element) and element.name == OPERATION:
            at, length = element.start, element.end - element.start
            with suppress(Refused):
                operation = Shaped(element, options).operation()
                found.append(operation_change.said(operation, at, length, message["topic"], source, tables, options))
    return found


def _records(data: bytes) -> Iterator[Element | Broken]:
    """The operations of a message; any other element that stands where one should, or that holds none."""
    for root in xml_exact.documents(data):
        is_list = isinstance(root, Element) and root.name != OPERATION and root.all(OPERATION)
        yield from root.children if is_list else [root]
