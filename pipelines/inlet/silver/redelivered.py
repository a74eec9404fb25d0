"""A batch that reads a file again: what was rejected of the file as it was before is told by its new bytes.

Its records are decoded as those of any batch. What came before is a repeat; what was rejected and reads now stands at
its place in the order; what still fails is a reject of this batch.
"""

import json
import re

from inlet import lake
from inlet.silver.batch import Batch
from inlet.sql import literal, plain_literal
from inlet.unit import OFFSET


def resolve(batch: Batch) -> None:
    """Rejects of the files that this batch reads again say so, but those of messages that still stand in their file.
    Doing it twice changes nothing.
    """
    for (source, path), row in batch.again.items():
        earlier = [
            reject["unit_id"]
            for reject in lake.peek(
                batch.project.lakehouse_path(),
                "silver.rejects",
                ["unit_id"],
                f"where source = {plain_literal(source)} and resolved_by is null and batch_id < {batch.batch_id}",
            )
        ]
        if batch.project.sources[source].brings_messages:
            units = _replaced(batch, source, path, json.loads(row["context"])["offsets"], set(earlier))
        else:
            units = {unit for unit in earlier if re.sub(OFFSET, "", unit) == f"{source}/{path}@"}
        if units:
            batch.spark.sql(f"""
                update silver.rejects set resolved_by = {batch.batch_id}
                where source = {literal(source)} and resolved_by is null and batch_id < {batch.batch_id}
                  and unit_id in ({", ".join(map(literal, sorted(units)))})""")


def _replaced(batch: Batch, source: str, path: str, offsets: dict[str, list], units: set[str]) -> set[str]:
    """The messages among some units that a file does not hold any more: another one stands in their place, or their
    place is not in it. In: the places that it has, by topic and partition.
    """
    if not units:
        return set()
    rows = batch.spark.sql(f"""
        select unit_id, concat(topic, '/', partition) as place, `offset`, batch_id from bronze.messages
        where source = {literal(source)} and path = {literal(path)}
          and (batch_id = {batch.batch_id} or unit_id in ({", ".join(map(literal, sorted(units)))}))""").collect()
    new = {(row.place, row.offset) for row in rows if row.batch_id == batch.batch_id}

    def is_there(row) -> bool:
        first, last, _ = offsets.get(row.place, (0, -1, False))
        return first <= row.offset <= last and (row.place, row.offset) not in new

    return {row.unit_id for row in rows if row.batch_id < batch.batch_id and not is_there(row)}
