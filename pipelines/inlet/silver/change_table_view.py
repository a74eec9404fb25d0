"""`silver.changes_ct`, a view over `silver.changes`: the changes of Qlik's sources as its change tables show them.

An update with a before-image is two rows, U and B. Rows of full loads are in no change table, so they are left out.
"""

from typing import TYPE_CHECKING

from inlet import change
from inlet.change import Column
from inlet.silver import header_views
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEW, VENDOR = "silver.changes_ct", "qlik"
NUM_HEADERS = 7  # header columns that Qlik has unless told otherwise, and partition_name where it is
SOURCE = ("source", "source_schema", "source_table")
COMMENT = (
    "A view: the changes of Qlik's sources as its change tables show them. A before-image is a row of its own; rows of "
    "full loads are left out. A column is `data:NAME::type`."
)
COLUMNS = (
    *(c for c in change.CHANGES if c.name in SOURCE),
    Column("header__change_seq", "string", "place in the order"),
    Column("header__change_oper", "string", "I, U, D, B (before-image) or T (truncate)"),
    Column(
        "header__change_mask",
        "string",
        "columns changed, as hex text of one big-endian number: bit 7 is the first column, bit 8 where there is a "
        "partition name, for Qlik counts its seven or eight header columns. Null for a before-image",
    ),
    Column("header__stream_position", "string", "the source's own position text"),
    Column("header__operation", "string", "INSERT, UPDATE, DELETE, BEFOREIMAGE or TRUNCATE"),
    Column("header__transaction_id", "string", "the source's transaction"),
    Column("header__timestamp", "timestamp", "UTC time of the change"),
    Column("header__partition_name", "string", "the change-data partition, where the feed names one"),
    Column("data", "variant", "the row: of D and B the row of before, of T null. An absent member was not supplied"),
)
PARTITION = "variant_get(header, '$.partition_name', 'string')"


def write(spark: "SparkSession", codecs: set[str]) -> None:
    """Write the view where one of these codecs is Qlik's, and it is not there or not as declared."""
    if VENDOR in {header_views.vendor_of(name) for name in codecs}:
        header_views.put(spark, VIEW, list(COLUMNS), COMMENT, query())


def query() -> str:
    """The SQL of the view."""
    place = ", ".join(SOURCE)
    header = "change_seq, {oper}, {mask}, stream_position, {word}, transaction_id, change_timestamp, partition_name"
    own = header.format(oper="change_oper", mask="mask", word="operation")
    of_before = header.format(oper="'B'", mask="cast(null as string)", word="'BEFOREIMAGE'")
    return (
        f"with own as (\n  select {place}, change_seq, change_oper, stream_position, operation, transaction_id,\n"
        f"    change_timestamp, before, after, {PARTITION} as partition_name,\n"
        f"    {mask_text()} as mask\n"
        "  from silver.changes where operation <> 'REFRESH'\n"
        "    and source in (select source from silver.batches where substring_index(codec, '_', 1) = "
        f"{literal(VENDOR)})\n)\n"
        f"select {place}, {own}, if(operation = 'DELETE', before, after) as data from own\nunion all\n"
        f"select {place}, {of_before}, before from own where operation = 'UPDATE' and before is not null"
    )


def mask_text() -> str:
    """SQL for a mask as hex text, moved up by the header columns: by 8 bits where there is a partition name, else by 7,
    so each byte has the lowest bit of its own and the others of the one below.
    """
    own = "cast(conv(substr(hex(change_mask), 2 * j + 1, 2), 16, 10) as int)"
    below = "cast(conv(substr(hex(change_mask), 2 * j - 1, 2), 16, 10) as int)"
    last = "octet_length(change_mask)"
    above = f"if(j = {last}, 0, {own})"
    lower = f"if(j = 0, 0, {below})"
    moved = f"if({PARTITION} is null, (({above} * 128) & 255) | shiftright({lower}, {8 - NUM_HEADERS}), {lower})"
    text = f"array_join(transform(reverse(sequence(0, {last})), j -> lpad(hex({moved}), 2, '0')), '')"
    return f"coalesce(nullif(regexp_replace({text}, '^(00)+', ''), ''), if(change_mask is null, null, '00'))"
