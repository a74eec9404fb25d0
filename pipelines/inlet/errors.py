"""What can go wrong, and how it is said: kind, place, expected, found, what to do next.

Two families. An `InletError` stops a command (wrong config, missing Java, a failed check) and carries the exit code a
scheduler sees. A `Reject` stops nothing: it is a *row*, the record that could not be decoded, with its bytes.

Exit codes: 0 done, 1 internal error, 2 wrong usage or configuration, 3 a check of severity `error` failed, 4 the
accounting of a batch does not add up, 5 the environment lacks something (Java, disk, a port), 6 something that may
pass by itself (another run holds the lakehouse, a broker or a store does not answer): try again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple


class InletError(Exception):
    """An error a person can act on. In: what is wrong, and the remedy in one sentence."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = ""):
        super().__init__(message)
        self.message, self.remedy = message, remedy

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}" if self.remedy else self.message


class ConfigError(InletError):
    """inlet.yml, a table contract, a suite or a command line says something that cannot be meant."""

    exit_code = 2


class CheckFailed(InletError):
    """An expectation of severity `error` does not hold: the next step must not run."""

    exit_code = 3


class AccountingError(InletError):
    """Bytes or records went in that neither came out nor were rejected."""

    exit_code = 4


class EnvironmentLacks(InletError):
    """Something outside the project is missing, and a person has to see to it: Java, disk, a port, a right."""

    exit_code = 5


class TryAgain(InletError):
    """Something is in use or does not answer now: the lakehouse, its catalog, a broker, a store. It may pass by itself:
    a scheduler tries again.
    """

    exit_code = 6


def together(errors: Iterable[InletError]) -> InletError | None:
    """One error that says what several say. It is of the gravest kind, that of the lowest exit code: what a person has
    to see to comes before what may pass by itself. Out: None for none."""
    if not (several := list(errors)):
        return None
    gravest = min(several, key=lambda error: error.exit_code)
    return type(gravest)("; ".join(error.message for error in several), gravest.remedy)


def in_words(problems: Sequence[Mapping], names, of_columns=()) -> str:
    """What pydantic found wrong. In: its errors(), the fields that the outermost level knows, and those of a column."""
    texts = []
    for problem in problems:
        place = ".".join(WRITTEN.get(part, str(part)) for part in problem["loc"] if part != "[key]")
        message = WANTED.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
        if problem["type"] in WANTED and problem["type"] != "missing":
            message += f", found {as_found(problem['input'])}"
            if problem["type"] == "string_type" and isinstance(problem["input"], (int, float, type(None))):
                message += " (write it in quotes)"
        if problem["type"] == "literal_error" and problem["input"] is None:
            message += ", found nothing (write null in quotes)"
        if problem["type"] == "extra_forbidden":
            near = get_close_matches(place.rsplit(".", 1)[-1], of_columns if "." in place else names, 1)
            message = f"is not known; did you mean {near[0]}?" if near else "is not known"
        texts.append(f"{place}: {message}" if place else message)
    return "; ".join(texts)


WRITTEN = {"broker": "from"}  # where a field stands in YAML that a model keeps under another name
WANTED = {  # by pydantic's word for what is wrong
    "missing": "is missing",
    "string_type": "expected text",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "list_type": "expected a list",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "dict_type": "expected fields",
    "model_type": "expected fields",
    "model_attributes_type": "expected fields",
}


def as_found(value) -> str:
    """A value of a YAML file, as its author knows it."""
    if isinstance(value, (dict, list, bool, type(None))):
        return {dict: "fields", list: "a list", bool: str(value).lower()}.get(type(value), "nothing")
    return str(value)[:40]


class Event(NamedTuple):
    """Where a record stands in its transaction."""

    transaction_id: str
    counter: int | None  # from 1; None where its transaction began in another file or message
    is_last: bool


@dataclass(frozen=True)
class Reject:
    """One record (or unit) that could not be decoded. Offsets are bytes from the start of the unit."""

    kind: str  # a member of REJECT_KINDS
    unit_offset: int  # first byte of the rejected record
    unit_length: int  # its length in bytes
    byte_offset: int  # the byte at which reading failed
    expected: str
    found: str
    raw: bytes  # the record's bytes, untouched
    source_schema: str | None = None
    source_table: str | None = None
    column_name: str | None = None
    change_seq: str | None = None
    event: Event | None = None  # where it is known: a record of a table that is not wanted is missed by nobody

    def __str__(self) -> str:
        where = ".".join(filter(None, (self.source_schema, self.source_table, self.column_name)))
        place = f"{self.kind} at byte {self.byte_offset}" + (f" ({where})" if where else "")
        return f"{place}: expected {self.expected}, found {self.found}"


FILE_KINDS = (
    "unreadable_file",
    "file_rewritten",
    "link_outside",
    "offsets_missing",
    "file_before_missing",
    "file_purged",
    "files_may_be_missing",
)  # of what is not landed at all, so no record of it is there to count
REJECT_KINDS = {  # every kind there is; docs/rejects.md is made from this and a test keeps it whole
    # any format
    "unknown_table": "the record names a table that has no contract in pipelines/tables/",
    "unknown_operation": "the operation is none of those that the format defines",
    "ambiguous_table": "two rules name different tables for one record",
    "ambiguous_layout": "two readings of the bytes both fit to the last byte, so neither is taken",
    "conflicting_duplicate": "the same source and change_seq came before with other content, or, in a file that is "
    "delivered anew, in another transaction; the first stays",
    "missing_key": "a key column is null or was not supplied",
    "null_not_allowed": "a column that the contract declares `nullable: false` is null in an after-image",
    "definition_missing": "the record belongs to a table whose column list the feed has not given yet",
    "part_missing": "a record of a change of several has waited for the others longer than `part_wait_minutes`; when "
    "they come, the same run decodes it again",
    "definition_differs": "the column list that the feed gives is none of those in the contract: `inlet import` "
    "shows what to change",
    "unknown_column": "the record holds a column that the contract does not declare",
    "value_does_not_fit": "the value does not fit the column's type, or VARIANT cannot hold it exactly",
    "missing_change_seq": "a change has no usable sequence, so its place in the order is unknown",
    "decoder_failed": "the decoder failed on the unit instead of reading or rejecting it: a fault of Inlet or a lack "
    "of memory; please report it with its bytes",
    "link_outside": "the file is a link to one outside the folder that its source reads",
    # message formats
    "invalid_utf8": "the bytes are not UTF-8",
    "invalid_json": "the text is not one JSON object",
    "invalid_xml": "the text is no well-formed XML, or has a document type",
    "trailing_data": "bytes follow the end of the JSON object",
    "duplicate_member": "a JSON object holds one member name twice",
    "wrong_shape": "the JSON is well formed but is not a message of this format",
    "wrong_magic": "the envelope does not begin with the format's magic",
    "mask_too_long": "a column mask sets a bit beyond the table's last column",
    "offsets_missing": "messages of a broker that were not landed and that nobody can read any more: expired, deleted, "
    "or lost with a topic that was made anew; the source goes on behind them as `missing_offsets: accept` says",
    "outside_mask": "the record holds a value of a column that its own mask says was not supplied",
    "unsupported_message": "a legal message whose meaning cannot be applied without guessing",
    "unreadable_file": "the file cannot be opened as what its source declares",
    # binary formats
    "bad_length": "a record length that no record can have: zero, negative, too short, too long",
    "truncated": "the file ends inside a record; when more of it comes, the same run decodes it again",
    "file_before_missing": "the file goes on where another one ends that is not there, or not read yet; once it is, "
    "the next run reads both",
    "file_purged": "a file of changes was listed and is gone before it was landed whole: the feed's retention removed "
    "it. Its changes are lost until the table is loaded again",
    "files_may_be_missing": "new files of a table came, and none of its landed ones is there any more: files between "
    "them may have come and gone. Loading the table again makes sure",
    "bad_column_count": "the record's number of columns is not that of the table",
    "unknown_extraction_id": "the record carries an extraction id that inlet.yml does not map to a table",
    "bad_null_indicator": "a null indicator, or a validity of an item, that the format does not define",
    "bad_digit": "a digit of a packed or zoned number is not 0-9",
    "bad_sign": "a sign that the encoding does not define",
    "bad_text": "bytes that the character set does not define",
    "bad_date": "a date or time that no calendar has",
    "bad_value_length": "a variable item claims more bytes or characters than its column can hold",
    "trailing_bytes": "bytes of the record are left over after its last item",
    "bad_frame": "bytes that are no record of the format, where one has to begin",
    "unknown_token": "a part of the record that the format does not define, or one that is there twice",
    "bad_header": "a field of the record's header holds what the format does not define",
    "unsupported_record": "a record of the format whose contents cannot be read without guessing",
    "bad_segment": "a piece of a record without the pieces before or behind it",
    "column_twice": "the record holds a column twice",
    "cut_by_reclen": "logdump printed only the beginning of the record; print it again with a longer RECLEN",
    "contradiction": "two places of a record say different things of it",
    "out_of_sequence": "the record cannot stand where it does in its transaction: one is missing before it, or it came "
    "twice",
    "encrypted_data": "the data of the file's records is encrypted, or nothing that the format defines",
    "file_rewritten": "bytes of a file that were landed before have changed since: the file was damaged "
    "then, or is damaged now, or is another one under an old name, as of a rotated log",
}
