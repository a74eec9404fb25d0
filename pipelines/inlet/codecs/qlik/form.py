"""What a Qlik message is written in, JSON or Avro: its text or bytes as an object of the same members. What the members
mean is the same for both.
"""

from collections.abc import Callable
from typing import NamedTuple

from inlet.codecs.json_notes import Mark, Member
from inlet.codecs.notes import Note
from inlet.codecs.qlik.full_load import Options
from inlet.codecs.qlik.metadata import Listed
from inlet.source import Source


class Notes(NamedTuple):
    """The notes of all bytes of a message; the values among them; what no leaf tells of why it cannot be read."""

    notes: list[Note]
    members: list[Member]
    fault: tuple[str, str] | None = None


class Form(NamedTuple):
    """How a message becomes an object: dict, str, Number, bool, None; of Avro bytes, too."""

    options: type[Options]
    parse: Callable[[dict, Source], dict]  # In: the message, as bronze has it. Raises: Wrong, Refused
    offset: Callable[[dict, Source, tuple], int]  # the byte at which the member of a path begins; 0 for none
    metadata_text: Callable[[dict, dict], str]  # JSON of a metadata message's `message`. In: message, object
    ordinals: Callable[[dict], dict[int, str] | None]  # ordinal -> column of a body; None where its order says nothing
    listed: Callable[[dict, dict], Listed | None]  # the column list of a data message. In: object, message
    lists: Callable[[dict[str, bytes]], dict[str, Listed]]  # those of what was looked up or brought, by id
    notes: Callable[[dict, Mark], Notes]  # of a message that has a value
    is_text: bool  # bytes come as hex digits
