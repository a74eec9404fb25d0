"""Views that show the members of a vendor's header as columns: `silver.<vendor>_headers`, over `silver.changes`.

A view has the changes of sources that the ledger knows with a codec of the vendor, and whose header has any of its
members; where a vendor's feeds of other forms have headers of their own, the one that theirs do not have. It is made by
the first batch of such a source.
"""

import zlib
from typing import TYPE_CHECKING

from inlet import change
from inlet.change import Column
from inlet.codecs.goldengate.trail.header import HEADER
from inlet.codecs.linkexpress.journal.header import HEADER as OF_JOURNALS
from inlet.lake import engine
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {"goldengate": HEADER, "linkexpress": OF_JOURNALS}  # vendor -> members; its codecs are <vendor>_<artifact>
WITHOUT = {"linkexpress_group", "linkexpress_table"}  # codecs of these whose records have no header
OWN = {"goldengate": "hdr_ind"}  # the member that headers of the vendor's other forms do not have
PLACE = ("source", "source_schema", "source_table", "change_seq", "transaction_id")
# No row lacks its change_seq: the choice keeps Spark 4.1 from casting members while it reads, before it filters
# (spark.sql.variant.pushVariantIntoScan): also those of other codecs, which may have another type
OF_FILTERED_ROWS = "if(change_seq is null, parse_json(change_seq), header)"
COMMENT = (
    "A view: the header of each {vendor} change, its members as columns. Null where a header lacks the member, "
    "and where a text is not UTF-8 (`header` has its bytes). A source with `header: false` has no rows."
)


def columns(vendor: str) -> list[Column]:
    """The columns of a vendor's view."""
    return [*(c for c in change.CHANGES if c.name in PLACE), *VIEWS[vendor]]


def write(spark: "SparkSession", codecs: set[str]) -> None:
    """Write the views of the vendors of these codecs, where they are not there or not as declared."""
    for vendor in VIEWS.keys() & {vendor_of(name) for name in codecs - WITHOUT}:
        put(spark, f"silver.{vendor}_headers", columns(vendor), COMMENT.format(vendor=vendor), query(vendor))


def put(spark: "SparkSession", view: str, columns: list[Column], comment: str, text: str) -> None:
    """Write a view, where it is not there or not as declared. In: its SQL."""
    title = ", ".join(f"{c.name} comment {literal(c.doc)}" for c in columns)
    shape = str(zlib.crc32(f"{title}{text}".encode()))
    if engine.has_table(spark, view) and shape in str(
        spark.sql(f"show tblproperties {view} ('inlet.shape')").collect()
    ):
        return
    spark.sql(
        f"create or replace view {view} (\n  {title})\ncomment {literal(comment)}\n"
        f"tblproperties ('inlet.shape' = '{shape}')\nas\n{text}"
    )


def vendor_of(name: str) -> str:
    """The vendor of a codec, by the name of the codec.

    >>> vendor_of("goldengate_trail")
    'goldengate'
    """
    return name.split("_")[0]


def query(vendor: str) -> str:
    """The SQL of a vendor's view."""
    members = VIEWS[vendor]
    own = [OWN[vendor]] if vendor in OWN else [member.name for member in members]
    is_there = " or ".join(f"variant_get(header, '$.{name}', 'variant') is not null" for name in own)
    is_of_view = f"({is_there})" if own[1:] else is_there
    named = ",\n  ".join([*PLACE, *(f"{_member(c)} as {c.name}" for c in members)])
    return (
        f"select {named}\nfrom silver.changes\n"
        f"where {is_of_view}\n"
        f"  and source in (select source from silver.batches where substring_index(codec, '_', 1) = {literal(vendor)})"
    )


def _member(column: Column) -> str:
    """SQL for a member of the header; null where it is absent or null. A text may have come as bytes; some that are not
    UTF-8 would break whoever reads the answer.
    """
    value = f"variant_get({OF_FILTERED_ROWS}, '$.{column.name}', '{column.type}')"
    if column.type == "string":
        return f"try_validate_utf8({value})"
    return f"if(is_variant_null({value}), null, {value})" if column.type == "variant" else value
