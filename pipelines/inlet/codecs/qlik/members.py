"""What a Qlik message says, once its text or Avro is read: headers, table, order, masks, images. No JSON, no Spark.

Headers     "", null and missing are the same. Text but for transactionEventCounter (integer), transactionLastEvent
            (boolean). [documented] transactionEventCounter is at least 0 and fits a bigint
Time        header timestamp, UTC: YYYY-MM-DDTHH:mm:SS [documented], T or a blank, a second's fraction, maybe Z or an
            offset. Digits beyond the microsecond are cut (SQL Server sends seven). Or epoch milliseconds, 13 digits, as
            a number or as text [both seen in captured messages]. Anything else keeps the row and leaves
            change_timestamp null: order never needs it. The control event `unreadable_timestamp` tells what was there
Order       changeSequence, 35 digits. REFRESH has none: start of its load (see full_load), then 4 digits of the topic,
            5 of the partition, 10 of the offset, so that no two rows of loads share a place
Table       schema and table of the message, else the topic by the source's `tables`, else that of the metadata message
            that it names (see metadata); two answers are one too many
Masks       see masks. change_mask and column_mask have the contract's places. Ordinals are those of the metadata
            message that the message names (see metadata), else the places of the contract. Columns outside columnMask
            are sent as null and mean "not supplied"; a value there contradicts the mask, and is rejected
Operations  REFRESH (also READ [one public reader takes it so]), INSERT, UPDATE, DELETE. A TRUNCATE has no message
            [documented]: Qlik tells it in the control topic attrep_ddl_history (control_tables); a message that says
            TRUNCATE is rejected
Images      REFRESH, INSERT: data. UPDATE: data, beforeData. DELETE: data, or beforeData where data is null. A column
            that is not nullable is never null in an after-image; in a before-image a source sends null for what it did
            not log
Values      by the type in the contract, exactly (fields/fit.py): integers as digits, decimals as any number (1e1 too)
            that needs no rounding, both as a number or as text; boolean: true or false; date: YYYY-MM-DD alone;
            timestamp: a day, T or a blank, a time with at most 6 digits of a second's fraction and further zeros (type
            string keeps more digits), maybe Z or an offset (none is UTC); timestamp_ntz: the same without Z or offset;
            binary: hex digits, with `encoding: hex` in the contract; string: any text, and a number as it is written.
            Operations are read in any case

Rejects     wrong_shape, unknown_operation, unknown_table, ambiguous_table, missing_change_seq, mask_too_long,
            outside_mask, unknown_column, value_does_not_fit, missing_key, null_not_allowed, definition_missing,
            definition_differs
"""

import datetime
import re

from inlet import change
from inlet.codecs.qlik.full_load import topic_number
from inlet.fields.fit import LEN_INTEGER, fit
from inlet.fields.json_exact import Number
from inlet.fields.wrong import Wrong, quoted
from inlet.source import Source
from inlet.table import Table

OPERATIONS = {"REFRESH": "REFRESH", "READ": "REFRESH", "INSERT": "INSERT", "UPDATE": "UPDATE", "DELETE": "DELETE"}
TEXT_HEADERS = (
    "operation",
    "changeSequence",
    "streamPosition",
    "transactionId",
    "changeMask",
    "columnMask",
    "externalSchemaId",
)
MASKS = "changeMask", "columnMask"
HEADERS = TEXT_HEADERS + ("timestamp", "transactionEventCounter", "transactionLastEvent")
CHANGE_SEQ = re.compile(r"[0-9]{35}")
HEX = re.compile(r"(?:0[xX])?((?:[0-9A-Fa-f]{2})+)")  # of a mask
HEADER_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2})(?:(\.[0-9]{1,6})[0-9]*)?(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
EPOCH_MILLIS = re.compile(r"[1-9][0-9]{12}")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
COUNTER_MAX = (1 << 8 * LEN_INTEGER["bigint"] - 1) - 1


class Refused(Exception):
    """One thing wrong with a message: the kind, the member it is about, what was expected and found; the column; the
    (schema, table) that the message names where no contract tells it.
    """

    def __init__(
        self, kind: str, path: tuple, expected: str, found, column: str | None = None, named: tuple[str, ...] = ()
    ):
        super().__init__(kind, path, expected, found)
        self.kind, self.path, self.expected, self.column, self.named = kind, path, expected, column, named
        self.found = found if isinstance(found, str) and not isinstance(found, Number) else shown(found)


def shown(value) -> str:
    """A value for `found`."""
    return {dict: "an object", list: "an array", type(None): "null"}.get(type(value)) or quoted(value)


def check_names(given: dict, known: tuple[str, ...], path: tuple) -> None:
    """Refuse a known member in other case: it would be read as missing. Members nobody knows are let be."""
    for name in given:
        for right in known if name not in known else ():
            if name.lower() == right.lower():
                raise Refused("wrong_shape", (*path, name), f"member {right}", f"{name!r}")


def headers(given: dict, path: tuple) -> dict:
    """Every header by name; "" and missing are None. Raises: Refused."""
    check_names(given, HEADERS, path)
    header = {name: None if given.get(name) in ("", b"") else given.get(name) for name in HEADERS}
    for name in TEXT_HEADERS:
        if isinstance(header[name], bytes) and name in MASKS:  # of Avro
            continue
        if header[name] is not None and (not isinstance(header[name], str) or isinstance(header[name], Number)):
            raise Refused("wrong_shape", (*path, name), "text or null", header[name])
    counter, last = header["transactionEventCounter"], header["transactionLastEvent"]
    if counter is not None and not (
        isinstance(counter, (Number, int))
        and re.fullmatch(r"[0-9]{1,19}", str(counter))
        and int(counter) <= COUNTER_MAX
    ):
        raise Refused(
            "wrong_shape",
            (*path, "transactionEventCounter"),
            f"a whole number from 0 to {COUNTER_MAX}, or null",
            counter,
        )
    if last is not None and not isinstance(last, bool):
        raise Refused("wrong_shape", (*path, "transactionLastEvent"), "true, false or null", last)
    return header


def operation(header: dict, path: tuple) -> str:
    """REFRESH, INSERT, UPDATE or DELETE. Raises: Refused."""
    word = header["operation"]
    if word is None:
        raise Refused("wrong_shape", path, "header operation", "none")
    if word.upper() not in OPERATIONS:
        raise Refused("unknown_operation", (*path, "operation"), " ".join(OPERATIONS), quoted(word))
    return OPERATIONS[word.upper()]


def table(
    schema: str | None,
    name: str | None,
    topic: str,
    tables: dict,
    source: Source,
    path: tuple = (),
    listed: str | None = None,
) -> Table:
    """The contract of the table that a message is about. In: SCHEMA.TABLE of the column list that it names. Raises:
    Refused."""
    for member, value in (("schema", schema), ("table", name)):
        if value is not None and not isinstance(value, str) or isinstance(value, Number):
            raise Refused("wrong_shape", (*path, member), "text or null", value)
    parts, mapped = [schema or None, name or None], source.table_of(topic)
    if mapped:
        names = tables[mapped].names if mapped in tables else [mapped]
        if not any(all(part in (None, right) for part, right in zip(parts, name.split("."))) for name in names):
            raise Refused(
                "ambiguous_table",
                (*path, "table" if parts[1] else "schema"),
                f"{mapped}, as the topic says",
                f"{parts[0] or ''}.{parts[1] or ''}",
            )
        parts = [*mapped.split(".")]
    by_list = listed and (source.table_of(listed) or listed)
    if by_list and not any(parts):
        parts = [*by_list.split(".")]
    full = ".".join(filter(None, parts))
    contract = tables.get(full) if all(parts) else None
    if contract and by_list and tables.get(by_list, contract).name != contract.name:
        expected = f"{by_list}, as the metadata message says (`tables` of the source maps it)"
        raise Refused("ambiguous_table", ("messageSchemaId",), expected, full)
    if contract is None or contract.sources and source.name not in contract.sources:
        raise Refused(
            "unknown_table",
            path if not any(parts) else (*path, "table"),
            "a table with a contract in pipelines/tables/, by topic (`tables` maps it) or by schema and table",
            full or f"neither in topic {topic}",
            named=tuple(full.split(".")) if all(parts) and full.count(".") == 1 else (),
        )
    return contract


def refresh_seq(load: dict, message: dict) -> str:
    """change_seq of a full-load row. Raises: Refused."""
    if not (0 <= message["partition"] < 10**5 and 0 <= message["offset"] < 10**10):
        raise Refused(
            "missing_change_seq",
            (),
            "partition of 5 digits and offset of 10",
            f"{message['partition']}, {message['offset']}",
        )
    topic = topic_number(message["topic"], load)
    return change.change_seq(load["started_at16"], topic * 10**5 + message["partition"], message["offset"])


def utc_time(value) -> datetime.datetime | None:
    """The header timestamp in UTC; None where it is in none of the forms that are read.

    >>> utc_time("2026-01-02T03:04:05.678Z") == utc_time("2026-01-02 12:04:05.678+09:00") == utc_time("1767323045678")
    True
    """
    if not isinstance(value, str):
        return None
    if EPOCH_MILLIS.fullmatch(value):
        return EPOCH + datetime.timedelta(milliseconds=int(value))
    match = HEADER_TIME.fullmatch(value)
    try:
        return match and datetime.datetime.fromisoformat(match[1] + (match[2] or "") + (match[3] or "Z")).astimezone(
            datetime.UTC
        )
    except (ValueError, OverflowError):  # no such day, or none in UTC
        return None


def image(given, supplied: set | None, contract, path: tuple, is_after: bool = False) -> dict | None:
    """An image as VARIANT shall hold it: supplied columns only, each fit for its type, the key among them. Raises:
    Refused.
    """
    if given is None:
        return None
    if not isinstance(given, dict):
        raise Refused("wrong_shape", path, "an object or null", given)
    check_columns(given, contract, path)
    columns = {column.name: column for column in contract.columns}
    read = {}
    for name, value in given.items():
        if supplied is not None and name not in supplied:
            if value is not None:
                raise Refused("outside_mask", (*path, name), "null outside columnMask", shown(value), name)
            continue
        try:
            read[name] = fit(value, columns[name].type, columns[name].encoding)
        except Wrong as wrong:
            raise Refused(wrong.kind, (*path, name), wrong.expected, wrong.found, name) from None
    for name in contract.key:
        if read.get(name) is None:
            found = "null" if name in read else "no such member" if name not in given else "none"
            raise Refused("missing_key", (*path, name), f"a value of {name}, of the key", found, name)
    for name, value in read.items():
        if value is None and is_after and not columns[name].nullable:
            raise Refused("null_not_allowed", (*path, name), f"a value, for {name} is not nullable", "null", name)
    return read


def check_columns(given: dict, contract: Table, path: tuple) -> None:
    """Raises: Refused where an image has columns that the contract does not have at its place."""
    if new := contract.new_columns(given):
        found = contract.lacks(new, "the message")
        raise Refused("unknown_column", (*path, new[0]), f"columns of {contract.table}", found, new[0])


def images(body: dict, oper: str, supplied: set | None, contract, path: tuple) -> tuple[dict | None, dict | None]:
    """before and after. Raises: Refused."""
    data = image(body.get("data"), supplied, contract, (*path, "data"), is_after=oper != "DELETE")
    old = image(body.get("beforeData"), supplied, contract, (*path, "beforeData"))
    if oper == "DELETE":
        before, after = old if data is None else data, None
    else:
        before, after = old, data
    if oper != "UPDATE" and data is not None and old is not None:
        raise Refused("wrong_shape", (*path, "beforeData"), f"one image in a message of {oper}", "two")
    if (before if oper == "DELETE" else after) is None:
        raise Refused("wrong_shape", (*path, "data"), f"the row of a message of {oper}", "null")
    return before, after
