"""Qlik JSON in the JVM: one regular expression per message says that it is plain (qlik_grammar), then `from_json` with VARIANT
members reads it. One scan, one parse, no column that needs a second look. SQL text only; what is not plain is left out.

The contract of a message is a number, `p`: the place of (source, table) in `_places`.
"""

import datetime

import pyarrow as pa

from inlet import change
from inlet.codecs import qlik_grammar

LIKELY_REFRESH = r"(upper(cast(value as string)) rlike r'REFRESH|\"READ\"|\\U00[4-7]')"        # a superset, on raw bytes
MEMBERS = ("data VARIANT, beforeData VARIANT, headers STRUCT<operation STRING, changeSequence STRING, `timestamp` STRING, "
           "streamPosition STRING, transactionId STRING, changeMask STRING, columnMask STRING, "
           "transactionEventCounter BIGINT, transactionLastEvent BOOLEAN>")
PARSE = f"from_json(text, 'message STRUCT<{MEMBERS}>, {MEMBERS}', map('allowNonNumericNumbers', 'false', 'allowSingleQuotes', 'false'))"
NAME = r"""regexp_extract(text, r'"schema"[ \t\r\n]*:[ \t\r\n]*"([^"\\]*"[ \t\r\n]*,[ \t\r\n]*"table"[ \t\r\n]*:[ \t\r\n]*"[^"\\]*)"[ \t\r\n}]*\z', 1)"""
SEQ = (r"""nullif(regexp_extract(cast(value as string), r'"headers"\s*:\s*\{\s*"operation"\s*:\s*"[A-Za-z]+"\s*,\s*"""
       r""""changeSequence"\s*:\s*"([0-9]{35})"', 1), '')""")
REFRESH_HEAD = r"""r'"headers"\s*:\s*\{\s*"operation"\s*:\s*"REFRESH"'"""
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
PLACE = f"""coalesce({SEQ}, if(cast(value as string) rlike {REFRESH_HEAD}, concat_ws('/', topic, partition, `offset`), null))"""


def survey_sql() -> dict[str, str]:
    """Aggregates over raw messages that tell whether a change can be there twice: it cannot if every message has a sequence
    (a full-load row: its place in its topic) and all are distinct. No parse; a message of another shape counts as without."""
    return {"num_records": "count(*)", "num_seq": f"count({PLACE})", "num_distinct_seq": f"count(distinct {PLACE})",
            "min_seq": f"min({SEQ})", "max_seq": f"max({SEQ})"}


def fast(messages, sources: list, tables: dict, loads: list[dict]):
    """Changes of the plain messages. In: DataFrame of bronze.messages. Out: columns of CHANGES without batch_id, decoded_at."""
    places = _places(sources, tables)
    placed = _placed(messages, places, sources).selectExpr("*", f"{_load(loads, places, sources)} as l")
    plain = placed.where(f"{_grammars(places)} and (l is not null or not contains(text, '\"REFRESH\"')) and partition < 100000")
    read = plain.selectExpr("*", f"{PARSE} as j").selectExpr("*", *(f"{_image(name)} as {name}_read" for name in ("data", "beforeData")),
                                                                  "coalesce(j.message.headers, j.headers) as headers_read")
    columns = _columns(places, loads, max((len(table.columns) for _, table in places), default=1))
    return read.selectExpr(*(f"{columns[c.name]} as {c.name}" for c in change.CHANGES if c.name in columns))


def find_loads(messages, sources: list, tables: dict) -> dict:
    """Times of full-load messages, as `assign_loads` wants them: {(source, table): [(first, last), ...]}. Runs one or two small
    jobs; within a span no two messages are further apart than the source's gap. What is not plain is read exactly."""
    places = _places(sources, tables)
    if not places:
        return {}
    likely = _placed(messages.where(LIKELY_REFRESH), places, sources)
    name = _pick([table.table for _, table in places], "p")
    likely = likely.selectExpr("*", f"if({_grammars(places, 'REFRESH')}, {name}, null) as t")
    seen, others = _spans(likely, sources)
    if others:
        columns = "unit_id", "source", "topic", "partition", "`offset`", "timestamp", "value"
        exact = likely.where("t is null").selectExpr(*columns).mapInArrow(
            _refreshes({source.name: source for source in sources}, tables), "source string, t string, timestamp timestamp")
        for key, spans in _spans(exact, sources)[0].items():
            seen.setdefault(key, []).extend(spans)
    return seen


def _spans(messages, sources: list) -> tuple[dict, int]:
    """Spans by (source, table), and the number of messages without table."""
    from inlet.codecs import qlik_json

    gaps = " ".join(f"when {_text(s.name)} then {int(qlik_json.options(s).load_gap_minutes * 60e6)}" for s in sources)
    at = "unix_micros(timestamp)"
    rows = (messages.selectExpr("source", "t", f"{at} div (case source {gaps} end) as bucket", f"{at} as first", f"{at} as last", "1 as n")
            .groupBy("source", "t", "bucket").agg({"first": "min", "last": "max", "n": "sum"}).collect())
    seen = {}
    for row in rows:
        if row["t"] is not None:
            span = tuple(EPOCH + datetime.timedelta(microseconds=row[name]) for name in ("min(first)", "max(last)"))
            seen.setdefault((row["source"], row["t"]), []).append(span)
    return seen, sum(row["sum(n)"] for row in rows if row["t"] is None)


def _refreshes(sources: dict, tables: dict):
    from inlet.codecs import qlik_json

    def batches(messages):
        for batch in messages:
            found = [{"source": m["source"], "t": qlik_json.refresh_table(m, sources[m["source"]], tables), "timestamp": m["timestamp"]}
                     for m in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist([row for row in found if row["t"]], schema=pa.schema(
                [("source", pa.string()), ("t", pa.string()), ("timestamp", pa.timestamp("us", tz="UTC"))]))

    return batches


def _places(sources: list, tables: dict) -> list[tuple]:
    """Every (source name, contract) that can occur."""
    return [(s.name, t) for s in sources for t in tables.values() if not t.sources or s.name in t.sources]


def _placed(messages, places: list, sources: list):
    """With `text`, and `p`: the place of the contract, by topic, else by the names that end the text; -1 for none."""
    cases = []
    for source in sources:
        own = {table.table: i for i, (name, table) in enumerate(places) if name == source.name}
        topics = "".join(f" when {_text(topic)} then {own.get(table, -1)}" for topic, table in source.tables.items())
        names = "".join(" when " + _text('","table":"'.join(table.split("."))) + f" then {i}" for table, i in own.items())
        named = f"case translate({NAME}, ' \t\r\n', '') {names} end" if names else "null"
        cases.append(f"when {_text(source.name)} then " + (f"case topic {topics} else {named} end" if topics else named))
    return messages.selectExpr("*", "cast(value as string) as text").selectExpr(
        "*", f"cast({'case source ' + ' '.join(cases) + ' end' if cases else 'null'} as int) as p")


def _grammars(places: list, operations: str = "INSERT|UPDATE|DELETE|REFRESH") -> str:
    """Is the text plain for the contract of its place? Without blanks first, as Qlik writes."""
    cases = []
    for i, (_, table) in enumerate(places):
        either = " or ".join(f"text rlike r'{qlik_grammar.message(table, blank, operations)}'" for blank in ("", qlik_grammar.BLANK))
        cases.append(f"when {i} then ({either})")
    return f"(case p {' '.join(cases)} else false end and is_valid_utf8(value))" if cases else "false"


def _load(loads: list[dict], places: list, sources: list) -> str:
    """The place in `loads` of the load that a message would belong to; the latest that fits."""
    from inlet.codecs import qlik_json

    gaps = {source.name: qlik_json.options(source).load_gap_minutes for source in sources}
    cases = []
    for k, load in sorted(enumerate(loads), key=lambda one: one[1]["first_at"], reverse=True):
        fitting = [i for i, (name, table) in enumerate(places) if (name, table.table) == (load["source"], load["table"])]
        if fitting:
            last = load["last_at"] + datetime.timedelta(minutes=gaps[load["source"]])
            cases.append(f"when p = {fitting[0]} and timestamp between {_time(load['first_at'])} and {_time(last)} then {k}")
    return f"case {' '.join(cases)} end" if cases else "cast(null as int)"


def _columns(places: list, loads: list[dict], num_columns: int) -> dict[str, str]:
    """SQL of each output column."""
    header, tables = "headers_read.", [table for _, table in places]
    t = "p"
    topic_place = "lpad(1 + crc32(cast(topic as binary)) % 9999, 4, '0'), lpad(partition, 5, '0'), lpad(`offset`, 10, '0')"
    is_load, is_delete = f"{header}operation = 'REFRESH'", f"{header}operation = 'DELETE'"
    oper = " ".join(f"when '{word}' then '{letter}'" for word, letter in change.OPERATIONS.items())
    whole = [change.mask(range(1, len(table.columns) + 1)).hex() for table in tables]
    return {
        "source": "source", "source_schema": _pick([x.schema_name for x in tables], t), "source_table": _pick([x.table_name for x in tables], t),
        "table_version": f"cast({_pick([x.version for x in tables], t)} as int)",
        "change_seq": f"if({is_load}, concat({_pick([x['started_at16'] for x in loads], 'l')}, {topic_place}), {header}changeSequence)",
        "operation": f"{header}operation", "change_oper": f"case {header}operation {oper} end",
        "transaction_id": f"nullif({header}transactionId, '')", "transaction_event_counter": f"{header}transactionEventCounter",
        "transaction_last_event": f"{header}transactionLastEvent",
        "change_timestamp": f"cast(concat(nullif({header}`timestamp`, ''), 'Z') as timestamp)",
        "stream_position": f"nullif({header}streamPosition, '')", "change_mask": _mask(f"{header}changeMask", num_columns),
        "column_mask": f"if(nullif({header}columnMask, '') is null, null, unhex({_pick(whole, t)}))",
        "before": f"if({is_delete}, coalesce(data_read, beforeData_read), beforeData_read)",
        "after": f"if({is_delete}, null, data_read)", "column_states": "cast(null as map<string,string>)",
        "load_id": f"if({is_load}, {_pick([x['load_id'] for x in loads], 'l')}, null)",
        "unit_id": "unit_id", "unit_offset": "0L", "unit_length": "cast(octet_length(value) as bigint)",
    }


def _image(name: str) -> str:
    """An image of either shape; JSON's null is no image."""
    either = f"coalesce(j.message.{name}, j.{name})"
    return f"if(is_variant_null({either}), null, {either})"


def _mask(text: str, num_columns: int) -> str:
    """Big-endian hex text as bytes, least significant first, without trailing zeros."""
    num_bytes = (num_columns + 7) // 8
    padded = f"right(concat('{'00' * num_bytes}', {text}), {2 * num_bytes})"
    pairs = ", ".join(f"substr({padded}, {2 * i + 1}, 2)" for i in reversed(range(num_bytes)))
    return f"if(nullif({text}, '') is null, null, unhex(regexp_replace(concat({pairs}), '(00)+$', '')))"


def _pick(values: list, place: str) -> str:
    """The value at a place, out of constants."""
    shown = ", ".join(_text(value) if isinstance(value, str) else str(value) for value in values)
    return f"array({shown})[{place}]" if values else "cast(null as string)"


def _time(at: datetime.datetime) -> str:
    return f"timestamp_micros({(at - EPOCH) // datetime.timedelta(microseconds=1)})"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
