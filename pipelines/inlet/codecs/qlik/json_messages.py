"""Qlik Replicate and Talend Data Integration: JSON messages on Kafka and its relatives.

Unit        one message: the Kafka value
Yields      one change, one reject, or one control event: `metadata` (type MD, a table's structure), `tombstone`, and
            those of Qlik's control tables. A change whose header timestamp cannot be read brings a control event with
            it (`unreadable_timestamp`), and a truncate its `ddl`
Shapes      {"magic": "atMSG", "type": "DT", ..., "message": {data, beforeData, headers, schema?, table?}}, enveloped
            {data, beforeData, headers, schema?, table?}, bare
            custom (sections of other names, or flattened) and legacy ("op", "change_seq"): see shapes, which tells
            the shape of each message by itself. Messages without a value: see tombstones
Meaning     see members; full loads: full_load; column lists: metadata; topics attrep_*:
            control_messages; masks: masks; nulls of large objects: large_objects
Problems    docs/formats/qlik_known_problems.md
Two paths   `decode_message` reads any message exactly, in Python. `fast` (json_fast, json_walk: compiled, through
            Arrow) answers for messages that are in no doubt and leaves out every other one; where it answers, both say
            the same
Facts       [documented] Qlik, "Metadata and data messages", "The Replicate envelope", "Supported data types"; [sample
            seen] enveloped UPDATE and REFRESH, metadata, partial column capture: tests/cases/qlik_json
            ASSUMED: a message without magic whose top level has `headers` is the bare shape
Rejects     invalid_utf8, invalid_json, trailing_data, duplicate_member, wrong_magic, unsupported_message, and those of
            members, tombstones and control_tables
"""

import datetime
import json
from functools import partial
from typing import Any

from inlet import change, errors
from inlet.codecs.json_notes import Mark, json_notes
from inlet.codecs.notes import Annotated
from inlet.codecs.qlik import annotate as annotated
from inlet.codecs.qlik import (
    control_messages,
    full_load,
    json_fast,
    large_objects,
    load_time,
    masks,
    members,
    metadata,
    shapes,
    tombstones,
)
from inlet.codecs.qlik.form import Form, Notes
from inlet.codecs.qlik.members import Refused
from inlet.codecs.qlik.metadata import Listed
from inlet.codecs.results import Control, Decoded
from inlet.fields import json_exact
from inlet.fields.wrong import Wrong, quoted
from inlet.source import Source
from inlet.table import Table

UNREADABLE_TIMESTAMP = "unreadable_timestamp"  # the kind of a control event that a change brings with it
AVRO = (b"\0", b"atMSG")  # how Qlik's messages in Avro begin, and no JSON does
OPTIONS, FAST, LOADS = full_load.Options, json_fast, full_load
MAY_BRING = r"""contains(cast(value as string), '"MD"') or contains(cast(value as string), r'\u00')"""


def _parse(message: dict, source: Source) -> dict:
    if message["value"].startswith(AVRO):
        raise Wrong("invalid_json", 0, "one JSON object", "a message in Avro: codec qlik_avro reads it")
    found = json_exact.parse(message["value"], has_constants=True)
    return json_exact.parse(message["value"]) if found.get("type") == "MD" else found  # which is kept as JSON


def _offset(message: dict, source: Source, path: tuple) -> int:
    return json_exact.offset(message["value"], path)


def _metadata_text(message: dict, whole: dict) -> str:
    return json_exact.slice_(message["value"], ("message",))


def _ordinals(body: dict) -> None:
    """The order of members says nothing."""


def _listed(whole: dict, message: dict) -> Listed | None:
    return metadata.named(whole, message.get("lookups", {}))


def _notes(message: dict, mark: Mark) -> Notes:
    data = message["value"]
    found = json_notes(data, mark)
    fault = None
    if found.twice:
        at, name = found.twice[0]
        fault = "duplicate_member", f"{name} stands twice in its object, again at byte {at}"
    elif data.lstrip(b" \t\r\n")[:1] != b"{":
        fault = "invalid_json", "expected one JSON object"
    return Notes(found.notes, found.members, fault)


JSON = Form(
    full_load.Options, _parse, _offset, _metadata_text, _ordinals, _listed, metadata.lists, _notes, is_text=True
)


def decode_message(message: dict, source: Source, tables: dict, loads: list[dict]) -> Decoded:
    """Read one message exactly. In: a bronze.messages row; contracts by SCHEMA.TABLE; loads of `assign_loads`."""
    return decoded(JSON, message, source, tables, loads)


def annotate(data: bytes, context: dict, source: Source, tables: dict) -> list[Annotated]:
    """One record: the message. In: its value; the message, as bronze keeps it."""
    return annotated.annotate(JSON, context, source, tables)


def decoded(form: Form, message: dict, source: Source, tables: dict, loads: list[dict]) -> Decoded:
    """Read one message of a form exactly."""
    read, size = read_message(message, source, tables, loads, form), len(message["value"] or b"")
    definitions = [read.pop("definition")] if "definition" in read else []
    if read["result"] == "reject":
        return Decoded([], [read["reject"]], definitions=definitions)
    event = (
        [
            Control(
                read["kind"],
                0,
                size,
                read["source_schema"],
                read["source_table"],
                read["change_seq"],
                detail=read["detail"],
            )
        ]
        if "kind" in read
        else []
    )
    if read["result"] == "control":
        return Decoded([], controls=event, num_control=1, bytes_framing=size, definitions=definitions)
    return Decoded(
        [{name: value for name, value in read.items() if name not in ("result", "kind", "detail")}], controls=event
    )


def brought(message: dict) -> dict[str, bytes]:
    """The column list of a metadata message, for the messages that name it; nothing of any other, or of one that is
    rejected."""
    try:
        whole = json_exact.parse(message["value"] or b"")
        if whole.get("type") != "MD" or "message" not in whole:
            return {}
        return metadata.brought(whole, _metadata_text(message, whole))
    except (Wrong, Refused, RecursionError):
        return {}


def read_message(message: dict, source: Source, tables: dict, loads: list[dict], form: Form = JSON) -> dict:
    """The same as one dict with `result` change (columns of silver.changes; `kind` and `detail` of a control event that
    comes with it), reject (`reject`: errors.Reject) or control; with `definition`, a column list that it brings."""
    known = {
        "source": source.name,
        "unit_id": message["unit_id"],
        "unit_offset": 0,
        "unit_length": len(message["value"] or b""),
    }
    try:
        found = _read(message, source, tables, loads, known, form)
        return {name: value for name, value in found.items() if name not in ("body", "listed", "contract", "load_at")}
    except Wrong as wrong:
        place = _place_before(message["value"], wrong) if form.is_text and "change_seq" not in known else {}
        return _reject(message, known | place, wrong.kind, wrong.offset, wrong.expected, wrong.found)
    except Refused as no:
        path = shapes.path_of(known.pop("body", None), no.path)
        offset = form.offset(message, source, path) if path and message["value"] else 0
        known |= dict(zip(("source_schema", "source_table"), no.named))
        place = _definition_at(known, source, tables, form)
        return _reject(message, known, no.kind, offset, no.expected, no.found, no.column) | place
    except RecursionError:
        return _reject(
            message, known, "invalid_json", 0, "JSON nested as deep as images are", "arrays or objects nested too deep"
        )


def refresh_row(message: dict, source: Source, tables: dict) -> tuple[str, datetime.datetime] | None:
    """SCHEMA.TABLE and time of a full-load row that has a time, even of one that is rejected for its values."""
    return loaded_row(JSON, message, source, tables)


def _place_before(value: bytes, wrong: Wrong) -> dict:
    """The place in the order of a message that is no JSON, where its headers have it before the fault: the message may
    arrive again, good, and resolve the reject. None where another text follows, or another message after one that was
    cut, which would not be resolved by that.
    """
    place = b"changeSequence"
    is_followed = value.count(place) > 1 or value.rfind(b"atMSG") > value.find(place)  # by changes, or by metadata
    if wrong.kind != "invalid_json" or is_followed:
        return {}
    for path in (("message", "headers"), ("headers",)):
        oper, seq = (
            json_exact.text_before(value, wrong.offset, (*path, name)) for name in ("operation", "changeSequence")
        )
        if oper in change.OPERATIONS and oper != "REFRESH" and members.CHANGE_SEQ.fullmatch(seq or ""):
            return {"change_seq": seq}
    return {}


def loaded_row(form: Form, message: dict, source: Source, tables: dict) -> tuple[str, datetime.datetime] | None:
    """As `refresh_row`, of a message of a form."""
    known: dict[str, Any] = {"source": source.name, "unit_id": "", "unit_offset": 0, "unit_length": 0}
    try:
        _read(message, source, tables, [], known, form)
    except (Wrong, Refused, RecursionError):
        pass
    return (f"{known['source_schema']}.{known['source_table']}", known["load_at"]) if known.get("load_at") else None


def _read(message: dict, source: Source, tables: dict, loads: list[dict], known: dict, form: Form) -> dict:
    if message["value"] is None:
        return tombstones.read(message, source, tables, known, form.is_text)
    whole, options, lookups = form.parse(message, source), source.options_as(form.options), message.get("lookups", {})
    contract_of = partial(control_messages.contract_of, message["topic"], source, tables)
    shaped = known["body"] = shapes.body_of(whole, options, contract_of)
    if shaped is None:
        return _metadata(whole, message, known, source, form)
    body, path = shaped.members, shaped.path
    header = members.headers(body["headers"], (*path, "headers"))
    oper = members.operation(header, (*path, "headers"))
    if control := control_messages.of_message(body, message["topic"], source, tables):
        return known | control_messages.read(control, body, path, oper == "DELETE", message, source, tables)
    if oper != "REFRESH" and members.CHANGE_SEQ.fullmatch(header["changeSequence"] or ""):
        known |= {"change_seq": header["changeSequence"], "event": _event(header)}
    listed = known["listed"] = form.listed(whole, message)
    names = body.get("schema"), body.get("table")
    if not any((*names, listed)) and not source.table_of(message["topic"]):
        metadata.check_come(whole, lookups, options.needs_metadata)  # which would tell it
    contract = members.table(*names, message["topic"], tables, source, path, listed.name if listed else None)
    known |= {"source_schema": contract.schema_name, "source_table": contract.table_name, "operation": oper}
    load = None
    if oper == "REFRESH":
        at = known["load_at"] = message["timestamp"] or load_time.of_member(options.load_time, body, members.utc_time)
        load = full_load.load_of(loads, source.name, contract.table, at, options.load_gap_minutes) if at else None
        if load is None:
            raise _unplaced(at, options.load_time, (*path, "headers"))
        known["change_seq"] = members.refresh_seq(load, message)
    else:
        known["change_seq"] = _change_seq(header["changeSequence"], (*path, "headers"))
    known.pop("event", None)
    if listed is None and any(header[name] is not None for name in members.MASKS):
        metadata.check_come(whole, lookups, options.needs_metadata)
    contract = known["contract"] = contract.at(known["change_seq"])
    if listed:
        metadata.check_known(listed, contract, partial(form.lists, lookups))
    if shaped.is_legacy:
        body = shapes.typed(body, contract, options.legacy_null, path)
    ordinals = listed.ordinals if listed else form.ordinals(body)
    for name in ("data", "beforeData"):  # before the masks, whose bits count the columns
        if isinstance(body.get(name), dict):
            members.check_columns(body[name], contract, (*path, name))
    read = masks.read(header, body, oper, contract, ordinals, options.mask_order, (*path, "headers"))
    try:
        found = _change(body, header, oper, contract, load, path, read)
    except Refused as no:
        metadata.check_fits(no, listed, contract)
        raise
    return known | {"result": "change"} | large_objects.settled(found, contract, options.large_null, path)


def _definition_at(known: dict, source: Source, tables: dict, form: Form) -> dict:
    """The list that a rejected message names, from its place on, where the contract does not have it."""
    listed: Listed | None = known.pop("listed", None)
    contract, seq = known.pop("contract", None), known.get("change_seq")
    if listed is None or not listed.columns or not seq:
        return {}
    if known.get("operation") == "REFRESH":  # all of a load is of one list
        seq = seq[: change.LEN_TIME].ljust(change.LEN_SEQ, "0")
    return {} if metadata.is_of(listed, contract) else {"definition": listed.definition(seq, form.is_text, source)}


def _change(
    body: dict, header: dict, oper: str, contract: Table, load: dict | None, path: tuple, read: masks.Masks
) -> dict:
    supplied = read.names(read.supplied, contract)
    before, after = members.images(body, oper, supplied, contract, path)
    changed = read.names(read.changed, contract)
    differs = masks.differing(before, after, changed, contract) if before and after and changed is not None else []
    counter, at = header["transactionEventCounter"], members.utc_time(header["timestamp"])
    event = (
        {}
        if at or header["timestamp"] is None
        else {
            "kind": UNREADABLE_TIMESTAMP,
            "detail": json.dumps({"timestamp": header["timestamp"]}, ensure_ascii=False),
        }
    )
    return event | {
        "table_version": contract.version,
        "change_oper": change.OPERATIONS[oper],
        "transaction_id": header["transactionId"],
        "transaction_event_counter": None if counter is None else int(counter),
        "transaction_last_event": header["transactionLastEvent"],
        "change_timestamp": at,
        "stream_position": header["streamPosition"],
        "change_mask": read.changed,
        "column_mask": read.supplied,
        "before": before,
        "after": after,
        "column_states": None,
        "header": {"mask_differs": differs} if differs else None,
        "load_id": load and load["load_id"],
    }


def _event(header: dict) -> errors.Event | None:
    """Where a message stands in its transaction, if it says so."""
    id_, counter = header["transactionId"], header["transactionEventCounter"]
    if id_ is None or counter is None:
        return None
    return errors.Event(id_, int(counter), header["transactionLastEvent"] is True)


def _unplaced(at: datetime.datetime | None, option: str | None, path: tuple) -> Refused:
    """Why a row of a full load has no place."""
    if at:
        return Refused("missing_change_seq", path, "a full load of its table at its time", str(at))
    if option:
        return Refused("missing_change_seq", path, f"a time by option load_time ({option})", "none")
    expected = f"option load_time, which says when the full load began: {load_time.FORMS}"
    return Refused("missing_change_seq", path, expected, "a message without a broker's time")


def _change_seq(text: str | None, path: tuple) -> str:
    if text is None or not members.CHANGE_SEQ.fullmatch(text):
        raise Refused(
            "missing_change_seq", (*path, "changeSequence"), "35 digits", "none" if text is None else quoted(text)
        )
    return text


def _metadata(whole: dict, message: dict, known: dict, source: Source, form: Form) -> dict:
    listed = metadata.read(whole)  # or refuses it
    definition = {"definition": listed.definition("", form.is_text, source)} if listed.columns else {}
    return (
        known
        | definition
        | {
            "result": "control",
            "kind": "metadata",
            "source_schema": listed.schema,
            "source_table": listed.table,
            "change_seq": None,
            "load_id": None,
            "detail": form.metadata_text(message, whole),
        }
    )


def _reject(
    message: dict, known: dict, kind: str, offset: int, expected: str, found: str, column: str | None = None
) -> dict:
    reject = errors.Reject(
        kind,
        0,
        known["unit_length"],
        offset,
        expected,
        found,
        message["value"] or b"",
        known.get("source_schema"),
        known.get("source_table"),
        column,
        known.get("change_seq"),
        known.get("event"),
    )
    return {"result": "reject", "source": known["source"], "unit_id": known["unit_id"], "reject": reject}
