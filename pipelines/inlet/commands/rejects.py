"""`inlet rejects`: what could not be decoded, read and closed without Spark."""

from collections import Counter
from typing import NamedTuple

from inlet import change, lake, storage
from inlet.bronze import purged
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.config import Project, known
from inlet.silver import closed_rejects
from inlet.source import ROW_TRANSPORTS
from inlet.sql import plain_among, plain_literal
from inlet.unit import order, place_in_file

COLUMNS = [c.name for c in change.REJECTS]
CONFLICT = "conflicting_duplicate"
LEN_RAW = 512  # bytes of a record that are shown


class Selection(NamedTuple):
    """Which rejects: those for which all that is given holds."""

    source: str | None = None
    kind: str | None = None
    batch: int | None = None
    unit: str | None = None
    at: int | None = None  # a byte of the record, as `in_file` counts it, else in its unit

    def has(self, project: Project, row: dict) -> bool:
        """Is a row of silver.rejects one of them?"""
        names = ("source", self.source), ("kind", self.kind), ("batch_id", self.batch), ("unit_id", self.unit)
        if any(value is not None and row[name] != value for name, value in names):
            return False
        if self.at is None:
            return True
        place = in_file(project, row)
        start = place[1] if place else row["unit_offset"] or 0
        return start <= self.at < start + max(row["unit_length"] or 0, 1)

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self._asdict().items() if value is not None)


def rejects(
    project: Project, source: str | None = None, kind: str | None = None, *others, is_closed: bool = False
) -> list[dict]:
    """Rows of silver.rejects that are open, newest batch first; or those that are closed, with why, by whom and when.
    In: as Selection."""
    selection = Selection(source, kind, *others)
    if is_closed:
        rows = lake.peek(project.lakehouse_path(), "silver.rejects", COLUMNS, "where resolved_by is null")
        closed = closed_rejects.closings(project)
        words = {place: {name: row[name] for name in closed_rejects.WORDS} for place, row in closed.items()}
        rows = [row | words[place] for row in rows if (place := closed_rejects.key(row)) in words]
    else:
        rows = closed_rejects.open_rows(project, COLUMNS)
    rows = [row for row in rows if selection.has(project, row)]
    return sorted(rows, key=lambda r: (-r["batch_id"], order(r["unit_id"]), r["unit_offset"] or 0))


def close(project: Project, rows: list[dict], reason: str) -> None:
    """Close rejects that no one can decode. In: rows of silver.rejects; why, in words."""
    closed_rejects.write(project, rows, True, reason)


def reopen(project: Project, rows: list[dict], reason: str) -> None:
    """Make closed rejects open again. In: rows of silver.rejects; why, in words."""
    closed_rejects.write(project, rows, False, reason)


def of_table(project: Project, rows: list[dict], table: str) -> tuple[list[dict], int]:
    """Those of a table, then those of its sources that name no table, and may be of it; and how many these are. In: the
    name of a contract, or a SCHEMA.TABLE that a reject names. Raises: ConfigError where there is no such table."""
    contracts = {name: t for t in project.tables.values() for name in (t.name, *t.names)}
    contract = contracts.get(table)
    named = {f"{row['source_schema']}.{row['source_table']}" for row in rows if row["source_table"]}
    known(contracts | dict.fromkeys(named), table, "table")
    names = contract.names if contract else [table]
    sources = [s.name for s in project.sources.values() if not contract or project.may_carry(s, contract)]
    own = [row for row in rows if f"{row['source_schema']}.{row['source_table']}" in names]
    unnamed = [row for row in rows if row["source_table"] is None and row["source"] in sources]
    return own + unnamed, len(unnamed)


def counts(rows: list[dict]) -> list[dict]:
    """How many there are of each source and kind, the most first."""
    num = Counter((row["source"], row["kind"]) for row in rows)
    places = sorted(num, key=lambda place: (-num[place], place))
    return [{"source": source, "kind": kind, "rejects": num[source, kind]} for source, kind in places]


def first_alike(rows: list[dict]) -> list[dict]:
    """The first reject of each source, kind and column of which the same was expected, with how many there are."""
    alike = Counter(_alike(row) for row in rows)
    firsts = {_alike(row): row for row in reversed(rows)}
    return [row | {"alike": alike[_alike(row)]} for row in rows if firsts[_alike(row)] is row]


def _alike(row: dict) -> tuple:
    return tuple(row[name] for name in ("source", "kind", "source_schema", "source_table", "column_name", "expected"))


def open_rejects(project: Project) -> Counter[tuple[str, str]]:
    """(source, kind) -> how many rejects are open: what `rejects` lists, counted."""
    return closed_rejects.count_open(project)


def of_batches(project: Project, batches: list[int]) -> Counter[str]:
    """Kind -> how many records were rejected in batches, but for those that another one of them has decoded again."""
    among = ", ".join(map(str, batches))
    rows = lake.peek(
        project.lakehouse_path(),
        "silver.rejects",
        ["kind", "count(*) as num"],
        f"where batch_id in ({among}) and (resolved_by is null or resolved_by not in ({among})) group by kind",
    )
    return Counter({row["kind"]: row["num"] for row in rows})


def first_of(project: Project, rejects: list[dict]) -> dict[tuple[str, str], str]:
    """(source, change_seq) -> where the change lies that stays, for rejects that came to its place with other content.
    Files of silver.changes that cannot hold them are not read: their statistics tell."""
    seqs: dict[str, set[str]] = {}
    for row in rejects:
        if row["kind"] == CONFLICT and row["change_seq"]:
            seqs.setdefault(row["source"], set()).add(row["change_seq"])
    return {
        (source, row["change_seq"]): f"{row['unit_id']} at {row['unit_offset']}"
        for source, asked in seqs.items()
        for row in lake.peek(
            project.lakehouse_path(),
            "silver.changes",
            ["change_seq", "unit_id", "unit_offset"],
            f"where source = {plain_literal(source)} and {plain_among('change_seq', asked)}",
        )
    }


def in_file(project: Project, row: dict) -> tuple[str, int] | None:
    """(path, first byte in it) of a rejected record, where its unit is a piece of a file: what `inlet inspect --at`
    begins with. Of a compressed file it is the byte in what that unpacks to.
    """
    place, source = place_in_file(row["source"], row["unit_id"]), project.sources.get(row["source"])
    if place is None or source is not None and source.transport in ROW_TRANSPORTS or row["unit_offset"] is None:
        return None
    return place[0], place[1] + row["unit_offset"]


def to_inspect(project: Project, rows: list[dict]) -> tuple[str, int] | None:
    """As `in_file`, of the first row whose file is still there and whose codec says what its bytes are."""
    for row in rows:
        source, place = project.sources.get(row["source"]), in_file(project, row)
        is_there = place and storage.is_local(place[0]) and (project.root / place[0]).is_file()
        if source and place and is_there and offers(CODECS[source.codec], "annotate"):
            return place
    return None


def reject_line(
    row: dict,
    with_raw: bool,
    stays: dict[tuple[str, str], str] | None = None,
    start: int | None = None,
    is_verbose: bool = False,
) -> dict:
    """A reject as a person wants to see it. In: what `first_of` found; where in its file the record begins, so that
    its bytes are those of the file; whether all readings are shown that were tried."""
    shift = 0 if start is None else start - row["unit_offset"]
    place = ".".join(filter(None, (row["source_table"], row["column_name"])))
    first = (stays or {}).get((row["source"], row["change_seq"])) if row["kind"] == CONFLICT else None
    line = {
        **({"alike": row["alike"]} if "alike" in row else {}),
        "batch": row["batch_id"],
        "kind": row["kind"],
        "where": place,
        "change_seq": row["change_seq"],
        "unit": row["unit_id"],
        "record at": row["unit_offset"] + shift if shift else row["unit_offset"],
        "byte": row["byte_offset"] + shift if shift else row["byte_offset"],
        "expected": row["expected"] + (f", of {first}, which stays" if first else ""),
        "found": row["found"] if is_verbose else first_fact(row["kind"], row["found"]),
    }
    if "reason" in row:
        line |= {"reason": row["reason"], "closed by": row["person"], "closed at": row["written_at"]}
    if with_raw:
        line["raw"] = around_fault(row, LEN_RAW, "--json has all", shift)
    return line


def first_fact(kind: str, found: str) -> str:
    """What was found, without the readings that were tried but the first one: --verbose shows those."""
    fact, tried, _ = found.partition("; tried ")
    if not tried and kind.startswith("ambiguous_"):
        fact, tried, _ = found.partition("; ")
    return f"{fact} (--verbose: all readings)" if tried else fact


def around_fault(row: dict, most: int, where_all: str = "", shift: int = 0) -> str:
    """The bytes of a record, as hex and as text; of a long one those around the fault. In: how many at most; where all
    of them are; what its offsets lack to count in the file."""
    raw = row["raw"] or b""
    at = max((row["byte_offset"] or 0) - (row["unit_offset"] or 0), 0)
    begin = max(min(at - most // 4, len(raw) - most), 0)
    shown = raw[begin : begin + most]
    text = shown.hex(" ") + "\n" + "".join(chr(b) if 32 <= b < 127 else "." for b in shown)
    if len(raw) <= most:
        return text
    first = (row["unit_offset"] or 0) + shift + begin
    words = filter(None, (f"from byte {first:,}", f"{most:,} of {len(raw):,} bytes", where_all))
    return f"{text}\n({'; '.join(words)})"


def gaps(project: Project) -> list[dict]:
    """Files of changes that were removed before they were landed, or may have been, that no full load of their table
    made up for, and that no person has closed.
    """
    kinds = ", ".join(f"'{kind}'" for kind in purged.GAPS)
    rows = closed_rejects.open_rows(project, ["source_schema", "source_table", "found"], f"kind in ({kinds})")
    return [
        {
            "source": row["source"],
            "table": f"{row['source_schema']}.{row['source_table']}" if row["source_table"] else None,
            "gap": "certain" if row["kind"] == purged.PURGED else "possible",
            "what": row["found"],
            "since batch": row["batch_id"],
            "remedy": purged.REMEDY,
        }
        for row in rows
    ]
