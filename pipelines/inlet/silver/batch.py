"""One batch on its way through silver: its accounts, its writes, and the rule that a change is written once.

`(source, change_seq)` identifies a change. The same content again is a repeat and is counted; other content is a reject
of kind `conflicting_duplicate`, and the first stays. Looking for that costs a join, so it is done only where a batch's
range of change_seq meets one that the ledger has, or where the batch can hold a change twice in itself.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from inlet import change, lake
from inlet.config import Project
from inlet.errors import AccountingError
from inlet.lake import engine
from inlet.sql import literal, plain_among, plain_literal
from inlet.table import by_name, fingerprint
from inlet.unit import ORDER, PLACE, place_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAX_PRUNED = 20
MAX_COUNTED = 2_000_000  # changes whose places are counted without Spark, in 250 bytes each
IN_TRANSACTION = (  # SQL: what a change says of its transaction, in words
    "concat(coalesce(concat('transaction ', transaction_id), 'no transaction'), "
    "coalesce(concat(', event ', transaction_event_counter), ''), if(transaction_last_event, ', its last', ''))"
)


@dataclass
class Account:
    """What one source put into one batch, and what became of it. Counts of records, and bytes."""

    num_units: int = 0
    num_records: int = 0
    num_changes: int = 0
    num_repeats: int = 0
    num_control: int = 0
    num_rejected: int = 0
    bytes_landed: int = 0
    bytes_decoded: int = 0
    bytes_repeated: int = 0
    bytes_framing: int = 0
    bytes_rejected: int = 0
    num_waiting: int = 0
    num_settled: int = 0
    bytes_waiting: int = 0
    bytes_settled: int = 0
    first_change_seq: str | None = None
    last_change_seq: str | None = None
    tables: list[str] = field(default_factory=list)
    versions: set[tuple[str, int]] = field(default_factory=set)  # (SCHEMA.TABLE, version) of its changes
    repeats: Counter[str] = field(default_factory=Counter)  # file, or partition of a topic -> its repeats

    def note(self, row: dict) -> str:
        """Take in a table, and the range of its changes. In: source_schema, source_table, low, high. Out: its name."""
        table = f"{row['source_schema']}.{row['source_table']}"
        self.tables += [] if table in self.tables else [table]
        self.first_change_seq = min(row["low"], self.first_change_seq or row["low"])
        self.last_change_seq = max(row["high"], self.last_change_seq or row["high"])
        return table

    def count_repeats(self, changes: Iterable[dict]) -> None:
        """Count changes that silver has already. In: change rows with source, unit_id, unit_length."""
        for row in changes:
            self.num_repeats += 1
            self.bytes_repeated += row["unit_length"]
            self.repeats[place_of(row["source"], row["unit_id"])] += 1

    def balance(self, source: str, batch_id: int) -> None:
        """Raises: AccountingError when a record or a byte is unaccounted for."""
        records = self.num_changes + self.num_repeats + self.num_control + self.num_rejected + self.num_waiting
        size = self.bytes_decoded + self.bytes_repeated + self.bytes_framing + self.bytes_rejected + self.bytes_waiting
        if (records, size) != (self.num_records + self.num_settled, self.bytes_landed + self.bytes_settled):
            settled, waiting = (
                (f", {self.num_settled} settled" if self.num_settled else ""),
                (f" + {self.num_waiting} waiting" if self.num_waiting else ""),
            )
            raise AccountingError(
                f"batch {batch_id} of {source} does not add up: {self.num_records} records landed{settled}, "
                f"{self.num_changes} changes + {self.num_repeats} repeats + {self.num_control} control + "
                f"{self.num_rejected} rejected{waiting} = {records}; {self.bytes_landed + self.bytes_settled} bytes "
                f"landed, {size} accounted for",
                "Nothing of it is visible to gold. Please report it with the source's files: it is a fault of the "
                "codec",
            )


@dataclass
class Batch:
    """One batch on its way through silver."""

    spark: "SparkSession"
    project: Project
    batch_id: int
    sources: list[str]
    is_apart: bool = False  # a worker has died: every try to decode is a process of its own
    again: dict[tuple[str, str], dict] = field(default_factory=dict)  # files that it reads again: their rows
    accounts: dict[str, Account] = field(default_factory=dict)

    @property
    def rows(self) -> str:
        """SQL for what this batch wrote."""
        return f"batch_id = {self.batch_id} and {among(self.sources)}"

    @property
    def num_changes(self) -> int:
        return sum(account.num_changes for account in self.accounts.values())

    @property
    def stored(self) -> str:
        """The same for the engine that reads without Spark."""
        return self.stored_of(self.sources)

    def stored_of(self, sources: Iterable[str]) -> str:
        """The same of some of its sources."""
        return f"batch_id = {self.batch_id} and {plain_among('source', sources)}"

    @property
    def _contract(self) -> str:
        """SQL for the fingerprint of the contract of a reject's table; where it has none, of its source's names."""
        prints = ", ".join(
            f"{literal(name)}, {literal(fingerprint(t))}" for name, t in by_name(self.project.tables.values()).items()
        )
        contract = f"map({prints})[concat(source_schema, '.', source_table)]" if prints else "cast(null as string)"
        mappings = ", ".join(f"{literal(name)}, {literal(self.project.sources[name].mapping)}" for name in self.sources)
        return f"if(source_table is null, map({mappings})[source], {contract})"

    def account(self, source: str) -> Account:
        return self.accounts.setdefault(source, Account())

    def count_landed(self, units: list[dict]) -> None:
        """Count units that the batch has landed. In: their rows of bronze, without their bytes."""
        for unit in units:
            account = self.account(unit["source"])
            account.num_units += 1
            account.num_records += unit["num_records"]
            account.bytes_landed += unit["size_bytes"]

    def append(self, rows: "DataFrame", table: str) -> None:
        """Append rows of this batch. Adds batch_id and decoded_at; a column that the rows do not have is null. A
        header is left out where its source says so, whatever codec and path gave it."""
        given = dict.fromkeys(rows.columns)
        of_batch = {"batch_id": f"{self.batch_id}L", "decoded_at": "current_timestamp()"}
        if table == "silver.rejects":
            of_batch["contract"] = self._contract
        if table == "silver.changes" and (left_out := [s for s in self.sources if not self.project.sources[s].header]):
            of_batch["header"] = f"if({among(left_out)}, cast(null as variant), header)"
        columns = {
            c.name: of_batch.get(c.name) or (f"`{c.name}`" if c.name in given else f"cast(null as {c.type})")
            for c in change.TABLES[table]
        }
        lake.append(rows.selectExpr(*[f"{sql} as {name}" for name, sql in columns.items()]), table)

    def add(self, rows: list[dict], table: str) -> None:
        """The same of a few rows, without Spark."""
        of_batch = {"batch_id": self.batch_id, "decoded_at": datetime.now(UTC)}
        if table == "silver.rejects":
            contracts = {name: fingerprint(t) for name, t in by_name(self.project.tables.values()).items()}
            rows = [
                row
                | {
                    "contract": contracts.get(f"{row['source_schema']}.{row['source_table']}")
                    if row.get("source_table") is not None
                    else self.project.sources[row["source"]].mapping
                }
                for row in rows
            ]
        if table == "silver.changes":
            rows = [row if self.project.sources[row["source"]].header else row | {"header": None} for row in rows]
        lake.add_rows(self.project.lakehouse_path(), table, [row | of_batch for row in rows])


def table_now(project: Project) -> str:
    """SQL for the table of a row as SCHEMA.TABLE, by the name that it has now."""
    table = "concat(source_schema, '.', source_table)"
    former = ", ".join(
        f"{literal(name)}, {literal(t.table)}"
        for name, t in by_name(project.tables.values()).items()
        if name != t.table
    )
    return f"coalesce(map({former})[{table}], {table})" if former else table


def content(project: Project) -> str:
    """SQL for what a change says, its table by the name that it has now. An UPSERT says what an UPDATE does: silver may
    hold one as the UPDATE that it was read as before (docs/adr/0015).
    """
    return (
        f"sha2(to_json(struct({table_now(project)} as t, "
        "if(operation = 'UPSERT', 'UPDATE', operation) as operation, before, after)), 256)"
    )


def among(sources: list[str]) -> str:
    """SQL filter on source. Delta makes a chain of comparisons of an `in` list to prune files, and the JVM needs
    minutes to compile one of hundreds; a long list is therefore asked of an expression, which Delta does not prune by.
    """
    listed = ", ".join(map(literal, sources))
    return f"source in ({listed})" if len(sources) <= MAX_PRUNED else f"concat(source, '') in ({listed})"


class Judged(NamedTuple):
    """Changes with their verdict, as a persisted DataFrame."""

    rows: "DataFrame"
    has_conflicts: bool


def are_new(batch: Batch, may_repeat: bool, codec=None) -> bool:
    """True if no change can be a repeat or a conflict. In: as of `write_changes`."""
    return not (may_repeat or getattr(codec, "IDENTITY", None) or _blocks_again(batch))


def _blocks_again(batch: Batch) -> list[tuple[str, str]]:
    return [place for place in batch.again if not batch.project.sources[place[0]].brings_messages]


def write_changes(batch: Batch, changes: "DataFrame", may_repeat: bool, codec=None):
    """Append changes, one row per (source, change_seq). In: whether any of them can have come before, or twice; the
    codec, which may tell what else identifies a change (`IDENTITY`).

    Out: None, or all given changes with their `verdict`: new, repeat, conflict; persisted, to be unpersisted by the
    caller.
    """
    from pyspark.sql.functions import expr

    if are_new(batch, may_repeat, codec):
        batch.append(changes, "silver.changes")
        return None
    identity, blocks_again = getattr(codec, "IDENTITY", None), _blocks_again(batch)
    with_content = engine.kept(changes.selectExpr("*", f"{content(batch.project)} as content"))
    judged = _judge(batch, with_content)
    judged = _sent_elsewhere(batch, judged, identity) if identity else judged
    judged = engine.kept(_told_again(batch, judged, blocks_again) if blocks_again else judged)
    batch.append(judged.where("verdict = 'new'"), "silver.changes")
    repeats_of = expr(f"if(verdict = 'repeat', {PLACE}, null)").alias("place")
    found = judged.groupBy("source", "verdict", repeats_of).agg({"*": "count", "unit_length": "sum"}).collect()
    engine.release(with_content)
    for row in found:
        if row["verdict"] == "repeat":
            account = batch.account(row["source"])
            account.num_repeats += row["count(1)"]
            account.bytes_repeated += row["sum(unit_length)"]
            account.repeats[row["place"]] += row["count(1)"]
    return Judged(judged, any(row["verdict"] == "conflict" for row in found))


def reject_conflicts(batch: Batch, judged: Judged, raw: Callable) -> None:
    """Reject judged changes that come at a known place in the order with other content. In: raw, which adds the column
    `raw` to changes.
    """
    if judged.has_conflicts:
        batch.append(raw(_conflicts(judged.rows)), "silver.rejects")
    engine.release(judged.rows)


def raw_of_units(changes: "DataFrame", units):
    """Changes with the bytes of their records. In: unit_id and bytes of each unit."""
    return changes.join(units, "unit_id").selectExpr(
        "*", "substring(bytes, cast(unit_offset as int) + 1, cast(unit_length as int)) as raw"
    )


def _conflicts(judged):
    expected = "'the content that came first'"
    found = "concat(operation, ' ', coalesce(to_json(after), to_json(before), ''))"
    if "transaction_was" in judged.columns:
        expected = f"coalesce(concat('as it came first, ', transaction_was), {expected})"
        found = f"if(transaction_was is null, {found}, in_transaction)"
    return judged.where("verdict = 'conflict'").selectExpr(
        "source",
        "source_schema",
        "source_table",
        "cast(null as string) as column_name",
        "'conflicting_duplicate' as kind",
        "unit_offset as byte_offset",
        f"{expected} as expected",
        f"{found} as found",
        "change_seq",
        "unit_id",
        "unit_offset",
        "unit_length",
    )


def overlaps(batch: Batch, spans: dict[str, tuple[str, str]]) -> bool:
    """Can any of these changes be in silver already? In: least and greatest change_seq by source."""
    overlapping = [
        f"source = {plain_literal(source)} and first_change_seq > '' and first_change_seq <= {plain_literal(last)} "
        f"and last_change_seq >= {plain_literal(first)}"
        for source, (first, last) in spans.items()
    ]
    others = f"where batch_id <> {batch.batch_id} and ({' or '.join(overlapping)}) limit 1"
    return bool(spans) and bool(lake.peek(batch.project.lakehouse_path(), "silver.batches", ["batch_id"], others))


def has_repeats(batch: Batch, sources: list[str], num: int) -> bool:
    """True if a change that this batch has stored of these sources is at a place which another one has, of this batch
    or another. In: how many changes these are at most."""
    columns = ["source", "count(*) as n", "count(distinct change_seq) as num_places"]
    columns += ["min(change_seq) as low", "max(change_seq) as high"]
    if num <= MAX_COUNTED:
        own = f"where {batch.stored_of(sources)} group by source"
        rows = lake.peek(batch.project.lakehouse_path(), "silver.changes", columns, own)
    else:
        own = f"where batch_id = {batch.batch_id} and {among(sources)} group by source"
        asked = batch.spark.sql(f"select {', '.join(columns)} from silver.changes {own}")
        rows = [row.asDict() for row in asked.collect()]
    if any(row["num_places"] < row["n"] for row in rows):
        return True
    spans = {row["source"]: (row["low"], row["high"]) for row in rows}
    if not overlaps(batch, spans):
        return False
    low, high = min(low for low, _ in spans.values()), max(high for _, high in spans.values())
    own, known = (
        f"select source, change_seq from silver.changes where {among(sources)} and batch_id {is_own} {batch.batch_id}"
        for is_own in ("=", "<>")
    )
    between = f"change_seq between {literal(low)} and {literal(high)}"
    met = f"select 1 from ({own}) left semi join ({known} and {between}) using (source, change_seq) limit 1"
    return not batch.spark.sql(met).isEmpty()


def remove_changes(batch: Batch, sources: list[str]) -> None:
    """Remove what this batch has stored of the changes of these sources, which are to be written again. Until the
    ledger has the batch no one sees its changes."""
    batch.spark.sql(f"delete from silver.changes where batch_id = {batch.batch_id} and {among(sources)}")


def _sent_elsewhere(batch: Batch, judged, identity: str):
    """Judged changes, where a new one that says what another place of the feed has said lately is a repeat. In: SQL for
    what identifies a change.
    """
    least = " ".join(
        f"when {literal(name)} then {batch.batch_id - batch.project.sources[name].look_back_batches}"
        for name in batch.sources
    )
    known = batch.spark.sql(
        f"select source as of_source, {identity} as of_identity, {content(batch.project)} as of_content, change_seq "
        f"as of_seq from silver.changes where {among(batch.sources)} and batch_id < {batch.batch_id} and batch_id >= "
        f"case source {least} end and {identity} is not null"
    )
    own = judged.selectExpr("*", f"{identity} as identity")
    met = (
        (own.source == known.of_source)
        & (own.identity == known.of_identity)
        & (own.content == known.of_content)
        & (own.change_seq != known.of_seq)
    )
    found = own.join(known.dropDuplicates(["of_source", "of_identity", "of_content"]), met, "left")
    twice = (
        "identity is not null and row_number() over (partition by source, identity, content order by change_seq, "
        f"{ORDER}) > 1"
    )
    return found.selectExpr(
        *[name for name in judged.columns if name != "verdict"],
        f"case when verdict = 'new' and (of_seq is not null or {twice}) then 'repeat' else verdict end as verdict",
    )


def _told_again(batch: Batch, judged, files: list[tuple[str, str]]):
    """Judged changes, among them those of files that are read again: a repeat that is of another transaction than the
    change that came first, or has another place in it, is a conflict, which says so (`transaction_was`). In: (source,
    path) of the files.
    """
    of_files = " or ".join(
        f"source = {literal(source)} and startswith(unit_id, {literal(f'{source}/{path}@')})" for source, path in files
    )
    known = batch.spark.sql(
        f"select source, change_seq, {IN_TRANSACTION} as transaction_was from silver.changes "
        f"where batch_id < {batch.batch_id} and ({of_files})"
    )
    is_other = "verdict = 'repeat' and transaction_was <> in_transaction"
    return (
        judged.selectExpr("*", f"{IN_TRANSACTION} as in_transaction")
        .join(known, ["source", "change_seq"], "left")
        .selectExpr(
            *[name for name in judged.columns if name != "verdict"],
            f"if({is_other}, transaction_was, null) as transaction_was",
            "in_transaction",
            f"if({is_other}, 'conflict', verdict) as verdict",
        )
    )


def _judge(batch: Batch, changes: "DataFrame"):
    """The verdict on each change, in: with its content. A change does not meet itself, so the verdict stays while
    changes are written and Spark computes it again; the same record, written by an earlier batch, is a repeat.
    """
    [(low, high)] = changes.selectExpr("min(change_seq)", "max(change_seq)").collect()
    known = batch.spark.sql(
        "select source as known_source, change_seq as known_seq, unit_id as known_unit, unit_offset as known_offset, "
        f"batch_id as known_batch, {content(batch.project)} as known from silver.changes "
        f"where {among(batch.sources)} and change_seq between {literal(low or '')} and {literal(high or '')}"
    )
    met = (
        (changes.source == known.known_source)
        & (changes.change_seq == known.known_seq)
        & ~(
            (known.known_batch == batch.batch_id)
            & (changes.unit_id == known.known_unit)
            & (changes.unit_offset == known.known_offset)
        )
    )
    order = f"over (partition by source, change_seq order by {ORDER})"
    return (
        changes.join(known, met, "left")
        .selectExpr(
            "*", f"row_number() {order} as nth", f"coalesce(known, first_value(content) {order}) as first_content"
        )
        .selectExpr(
            "*",
            "case when known is null and nth = 1 then 'new' when content = first_content then 'repeat' else "
            "'conflict' end as verdict",
        )
    )
