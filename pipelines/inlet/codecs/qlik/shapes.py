"""The shape of a JSON message: where its data, its row of before and its headers stand.

Enveloped   {"magic": "atMSG", "type": "DT", ..., "message": BODY} [sample seen]. The type is DT, data, or MD,
            metadata [documented: The Replicate envelope]; any other, as MT, is in no sample and is rejected
Bare        BODY alone [sample seen]
BODY        {data, beforeData, headers, schema?, table?}, each of the first three an object; or custom, where the user
            has named these sections [documented: Message Format]: `name/` is an object of that name; any other name
            begins the names of its members (`headers_operation`), and an empty one is no beginning. Sections may be of
            both kinds in one message. The options data_section, before_section and headers_section have Qlik's own
            words for them
Fit         where an option is not set: the headers are an object `headers`, or the members that begin as the only one
            does that ends with `operation` and holds a word for one; data and row of before are the objects of these
            names, or the beginnings with which all other members are names of the contract's columns, those of the key
            among them. That of the row of before begins with `before` (ASSUMED: Qlik's default name is beforeData).
            Where no reading fits, or two do, the message is rejected (unsupported_message), and names the options
Null        ASSUMED: an image in members of their own whose members are all null is no image, for a key is never null
Names       where an image is in members without a beginning, `schema` and `table` are columns if the contract has such
            ones; else they name the table
Legacy      version 5 and before [sample seen]: {task_name, schema, table, op, change_seq, stream_position, ts, data,
            bu_data}: op F, I, U or D; the images are arrays of objects with one member; values are text. The text NULL
            is SQL NULL in a column that is no text; of a text column option legacy_null decides. ASSUMED: a boolean is
            true, false, 1 or 0
Mixed       each message is taken for itself, so the messages of a topic may be of several shapes
"""

from collections.abc import Callable
from typing import NamedTuple

from inlet.codecs.qlik import members
from inlet.codecs.qlik.full_load import Options
from inlet.codecs.qlik.members import Refused
from inlet.fields.wrong import cut, quoted
from inlet.table import Table

MAGIC = "atMSG"
ENVELOPE = ("magic", "type", "headers", "messageSchemaId", "messageSchema", "message")
IMAGES = DATA, BEFORE = ("data", "beforeData")
NAMES = ("schema", "table")
BODY = (*IMAGES, "headers", *NAMES)
LOWER = {name.lower() for name in BODY}
OPERATION = "operation"
MOST_FITTING = 8  # beginnings of names that are tried: real messages have two
OPTIONS = "the options data_section, before_section and headers_section, as Qlik's message format names its sections"
LEGACY = {"operation": "op", "changeSequence": "change_seq", "timestamp": "ts", "streamPosition": "stream_position"}
LEGACY_IMAGES = {DATA: DATA, BEFORE: "bu_data"}
LEGACY_OPERATIONS = {"F": "REFRESH", "I": "INSERT", "U": "UPDATE", "D": "DELETE"}
LEGACY_TRUTH = {"true": True, "false": False, "1": True, "0": False}
NOT_TOLD = dict.fromkeys(  # of a change that no message of its own tells: columns of silver.changes
    (
        *("transaction_id", "transaction_event_counter", "transaction_last_event", "stream_position", "change_mask"),
        *("column_mask", "before", "after", "column_states", "load_id"),
    )
)


class Body(NamedTuple):
    """What a message holds, by the names that an enveloped one has: `members` of BODY; `path` of the object that has
    them; how the path of one of them is written in the message, from there; whether it is legacy.
    """

    members: dict
    path: tuple
    place: dict[str, Callable[[tuple], tuple]] = {}
    is_legacy: bool = False


def path_of(body: Body | None, path: tuple) -> tuple:
    """The place in the message of a path in the names of BODY."""
    own = path[len(body.path) :] if body and path[: len(body.path)] == body.path else ()
    found = body.place.get(own[0]) if body and own else None
    return (*body.path, *found(own[1:])) if body and found else path


def body_of(whole: dict, options: Options, contract_of: Callable[[dict], Table | None]) -> Body | None:
    """The body of a message; None of a metadata message. In: the contract of a body's schema and table, None of
    a control table. Raises: Refused.
    """
    given, path = whole, tuple[str, ...]()
    if "magic" in whole or isinstance(whole.get("message"), dict):
        members.check_names(whole, ENVELOPE, ())
        if whole.get("magic") != MAGIC:
            raise Refused("wrong_magic", ("magic",), MAGIC, whole.get("magic"))
        if not isinstance(whole.get("message"), dict) or whole.get("type") not in ("DT", "MD"):
            raise Refused("wrong_shape", ("type",), "type DT or MD and a message", whole.get("type"))
        if whole["type"] == "MD":
            return None
        given, path = whole["message"], ("message",)
    return _plain(given, path, options) or _legacy(given, path) or _custom(given, path, options, contract_of)


def _plain(given: dict, path: tuple, options: Options) -> Body | None:
    """The body as Qlik writes it unless told otherwise; None where it is none. Raises: Refused."""
    if not isinstance(given.get("headers"), dict):
        return None
    told = options.headers_section
    if isinstance(given.get(DATA), dict) and told is not None and told != "headers/" and _has_headers(given, told):
        raise _two(path, f"an object of headers, and {told}")
    if DATA not in given and {name.lower() for name in given} - LOWER:
        return None
    members.check_names(given, BODY if path else (*ENVELOPE, *BODY), path)
    return Body(given, path)


def _legacy(given: dict, path: tuple) -> Body | None:
    """The body of a message of version 5 and before; None where it is none. Raises: Refused."""
    has_arrays = any(isinstance(given.get(own), list) for own in LEGACY_IMAGES.values())
    if not {"op", "change_seq"} <= given.keys() or not has_arrays:
        return None
    op = given["op"]
    headers = {name: given.get(own) for name, own in LEGACY.items()}
    headers["operation"] = LEGACY_OPERATIONS.get(op.upper(), op) if isinstance(op, str) else op
    found = {"headers": headers} | {name: given.get(name) for name in NAMES}
    place = {"headers": _place_of_legacy(LEGACY, None, {})}
    for name, own in LEGACY_IMAGES.items():
        found[name], places = _listed(given.get(own), (*path, own))
        place[name] = _place_of_legacy({}, own, places)
    return Body(found, path, place, True)


def _listed(given, path: tuple) -> tuple[dict | None, dict[str, int]]:
    """An image that is an array of objects with one member, and the place of each member. Raises: Refused."""
    if given is None:
        return None, {}
    if not isinstance(given, list):
        raise Refused("wrong_shape", path, "an array of objects with one member, or null", given)
    image, places = dict[str, object](), dict[str, int]()
    for n, one in enumerate(given):
        if not isinstance(one, dict) or len(one) != 1:
            raise Refused("wrong_shape", (*path, n), "an object with one member", one)
        [(name, value)] = one.items()
        if name in image:
            raise Refused("column_twice", (*path, n, name), "each column once", quoted(name), name)
        image[name], places[name] = value, n
    return image or None, places


def _place_of_legacy(names: dict[str, str], section: str | None, places: dict[str, int]) -> Callable[[tuple], tuple]:
    """How the path of a member is written: by its own name; in an array after its place."""

    def place(rest: tuple) -> tuple:
        own = [names.get(name, name) for name in rest]
        return (*([section] if section else []), *([places[own[0]]] if own and own[0] in places else []), *own)

    return place


def typed(body: dict, contract: Table, option: str, path: tuple) -> dict:
    """A legacy body, its text as values of a contract's types. In: the option legacy_null. Raises: Refused."""
    types = {column.name: column.type for column in contract.columns}
    read: dict[str, dict | None] = {}
    for image in IMAGES:
        read[image] = None if body[image] is None else {}
        for name, value in (body[image] or {}).items():
            type_ = types.get(name, "")
            if value == "NULL" and type_ == "string" and option == "auto":
                expected = "the option legacy_null: null or text"
                raise Refused("unsupported_message", (*path, image, name), expected, "NULL", name)
            if value == "NULL" and (type_ != "string" or option == "null"):
                value = None
            is_truth = type_ == "boolean" and isinstance(value, str)
            read[image][name] = LEGACY_TRUTH.get(value, value) if is_truth else value
    return body | read


def _custom(given: dict, path: tuple, options: Options, contract_of: Callable[[dict], Table | None]) -> Body:
    """A body whose sections the user has named. Raises: Refused."""
    at: dict[str, str | None] = {"headers": _of_headers(given, path, options.headers_section)}
    for name, told in zip(IMAGES, (options.data_section, options.before_section)):
        at[name] = told if told is not None or not isinstance(given.get(name), dict) else f"{name}/"
    is_apart = all(at[name] is not None and f"{at[name]}".endswith("/") for name in IMAGES)
    contract = None if is_apart or not given.keys() - {*NAMES, "headers"} else contract_of(given)
    versions = contract.versions if contract else []
    columns = {name for version in versions for name in version.column_names}
    for name in IMAGES:
        if at[name] is None and given.get(name, "") is None and name not in columns:
            at[name] = f"{name}/"
    of_headers = _members_of(given, f"{at['headers']}", members.HEADERS)
    taken = {*of_headers, *(f"{at[name]}"[:-1] for name in IMAGES if (at[name] or "").endswith("/"))}
    rest = [name for name in given if name not in taken]
    images: dict[str, list[str]] = {name: [] for name in IMAGES}
    if {*rest} - {*NAMES}:
        at, images = _images(rest, at, columns, [version.key for version in versions], path)
    flat = [found for found in images.values() if found]
    named = {name: None if any(name in found for found in flat) else given.get(name) for name in NAMES}
    for name in (name for name in IMAGES if images[name] and not f"{at['headers']}".endswith("/")):
        if twice := next((member for member in of_headers if _column(member, at[name]) in columns), None):
            raise _two((*path, twice), f"{twice}, a header and a column")
    sections = {name: _values(given, at[name], of) for name, of in images.items()} | named
    sections["headers"] = _values(given, at["headers"], of_headers) or {}  # all of them null
    return Body(sections, path, {name: _place(at[name]) for name in at})


def _of_headers(given: dict, path: tuple, told: str | None) -> str:
    """Where the headers are, in Qlik's words for it. Raises: Refused."""
    if told is not None:
        if _has_headers(given, told):
            return told
        raise Refused("wrong_shape", path, f"headers in {told or 'members without a beginning'}, by its option", "none")
    if isinstance(given.get("headers"), dict):
        return "headers/"
    found = [name for name, value in given.items() if name.endswith(OPERATION) and _is_operation(value)]
    if len(found) > 1:
        raise _two((*path, found[1]), " and ".join(found[:2]))
    if not found:
        at = (*path, "headers") if "headers" in given else path
        raise Refused("wrong_shape", at, "an object of headers, or the option headers_section", given.get("headers"))
    return found[0].removesuffix(OPERATION)


def _has_headers(given: dict, told: str) -> bool:
    if told.endswith("/"):
        return isinstance(given.get(told[:-1]), dict)
    return f"{told}{OPERATION}" in given


def _is_operation(value) -> bool:
    return isinstance(value, str) and value.upper() in members.OPERATIONS


def _members_of(given: dict, at: str, known: tuple[str, ...]) -> list[str]:
    """The members of a section: of one without a beginning those that are known."""
    if at.endswith("/"):
        return [at[:-1]]
    return [name for name in given if name.startswith(at) and (at or name in known)]


def _images(
    names: list[str], at: dict, columns: set[str], keys: list[list[str]], path: tuple
) -> tuple[dict, dict[str, list[str]]]:
    """Where the images are, and the members of each. In: names of members that are of them, or of the table; where they
    are as far as that is known. Raises: Refused.
    """
    own = [name for name in names if name not in NAMES]
    open_ = [name for name in IMAGES if at[name] is None]
    if open_:
        maybe = _beginnings(own, columns, keys, path)
        of_data, of_before = (
            [at[name]]
            if at[name] is not None
            else [None, *(b for b in maybe if b.lower().startswith("before") == is_old)]
            for name, is_old in zip(IMAGES, (False, True))
        )
        fitting = [
            (data, before)
            for data in of_data
            for before in of_before
            if data != before and all(_column(n, data) in columns or _column(n, before) in columns for n in own)
        ]
        if len(fitting) != 1:
            found = "; ".join(f"data {data!r}, before {before!r}" for data, before in fitting)
            expected = f"members that are columns of the table after one beginning, or {OPTIONS}"
            raise Refused("unsupported_message", path, expected, found or cut(", ".join(own), 80))
        at = at | dict(zip(IMAGES, fitting[0]))
    flat = {name: at[name] for name in IMAGES if at[name] is not None and not at[name].endswith("/")}
    images: dict[str, list[str]] = {name: [] for name in IMAGES}
    for member in names:
        of = [name for name, beginning in flat.items() if _column(member, beginning) in columns]
        if len(of) > 1:
            raise _two((*path, member), f"{member}, in both images")
        if not of and member not in NAMES:  # a column that the contract lacks: of the longest beginning
            of = sorted((n for n in flat if member.startswith(flat[n])), key=lambda n: len(flat[n]))[-1:]
        for name in of:
            images[name].append(member)
    return at, images


def _beginnings(names: list[str], columns: set[str], keys: list[list[str]], path: tuple) -> list[str]:
    """What names begin with whose end is a column, such that the columns of a key are among them. Raises: Refused."""
    lengths, all_ = sorted({len(column) for column in columns}), {*names}
    found = {n[: len(n) - size] for n in names for size in lengths if size <= len(n) and n[len(n) - size :] in columns}
    found = {one for one in found if any(all(f"{one}{column}" in all_ for column in key) for key in keys)}
    if len(found) > MOST_FITTING:
        raise _two(path, f"{len(found)} beginnings of names")
    return sorted(found)


def _column(member: str, beginning: str | None) -> str | None:
    """The column that a member of an image is."""
    is_of = beginning is not None and not beginning.endswith("/") and member.startswith(beginning)
    return member[len(beginning) :] if is_of else None  # type: ignore[arg-type]


def _values(given: dict, at: str | None, of: list[str]) -> dict | None:
    """The values of a section; None for an image that is not there."""
    if at is not None and at.endswith("/"):
        return given.get(at[:-1])
    values = {name[len(at or "") :]: given[name] for name in of}
    return values if any(value is not None for value in values.values()) else None


def _place(at: str | None) -> Callable[[tuple], tuple]:
    if at is not None and at.endswith("/"):
        return lambda rest: (at[:-1], *rest)
    return lambda rest: (f"{at or ''}{rest[0]}", *rest[1:]) if rest else ()


def _two(path: tuple, found: str) -> Refused:
    return Refused("unsupported_message", path, f"a message that one reading fits, or {OPTIONS}", cut(found, 80))
