"""What a codec's answer has to hold of its unit: every record and byte is accounted for, once and by its own bytes;
rejects are of kinds that there are; definitions are whole. A codec that loses a record is stopped here.
"""

from typing import Any

from inlet.codecs.results import Decoded
from inlet.errors import REJECT_KINDS, AccountingError


def check(decoded: Decoded, codec: str, unit_id: str, data: bytes, num_records: int | None, is_row: bool) -> int:
    """Hold what a unit was decoded to against the unit. In: its bytes; the records that were framed, None for a
    message, which may pack several; whether its records are rows, whose bytes stand nowhere in the unit. Out: records
    that a message has beside its first. Raises: AccountingError.
    """
    place = f"codec {codec}, unit {unit_id}"
    if unknown := {reject.kind for reject in decoded.rejects} - REJECT_KINDS.keys():
        raise AccountingError(
            f"{place}: a reject is of the unknown kind {', '.join(sorted(unknown))}",
            "The kinds are those of errors.REJECT_KINDS. It is a fault of the codec",
        )
    extents = _extents(decoded)
    found = len(extents) + decoded.num_control
    if found != num_records if num_records is not None else found < 1:
        raise AccountingError(
            f"{place}: {num_records or 1} records were framed, {found} are changes, rejects, parts or control records",
            "Each record is exactly one of these. It is a fault of the codec: report it with the unit's bytes",
        )
    accounted = int(extents[:, 1].sum()) + decoded.bytes_framing
    if accounted != len(data):
        raise AccountingError(
            f"{place}: it has {len(data)} bytes, {accounted} are those of changes, rejects, parts or framing",
            "Each byte is in exactly one of these. It is a fault of the codec: report it with the unit's bytes",
        )
    ends = extents[:, 0] + extents[:, 1]
    if len(extents) and (extents.min() < 0 or ends.max() > len(data) or (extents[1:, 0] < ends[:-1]).any()):
        nth = next(
            n
            for n, (at, size) in enumerate(extents)
            if min(at, size) < 0 or n and at < ends[n - 1] or ends[n] > len(data)
        )
        raise AccountingError(
            f"{place}: a record of {extents[nth, 1]} bytes at {extents[nth, 0]} lies outside the unit or in another",
            "Each record has its own bytes. It is a fault of the codec: report it with the unit's bytes",
        )
    for reject in decoded.rejects:
        end = reject.unit_offset + reject.unit_length
        if not is_row and reject.raw != data[reject.unit_offset : end]:
            raise AccountingError(
                f"{place}: the bytes of the reject at {reject.unit_offset} are not those of its record",
                "`raw` is the record, untouched. It is a fault of the codec",
            )
    for d in decoded.definitions:
        names = [column.get("name") for column in d.columns]
        if not (d.source_schema and d.source_table and names) or not set(d.key) <= set(names):
            raise AccountingError(
                f"{place}: a definition of {d.source_schema}.{d.source_table} has columns {names} and key {d.key}",
                "A definition names its table, its columns, and of these the key. It is a fault of the codec",
            )
    return found - 1 if num_records is None else 0


def _extents(decoded: Decoded):
    """Where the records of a unit lie: an array of (offset, length), in their order."""
    import numpy as np

    changes: Any
    if isinstance(decoded.changes, list):
        changes = [(row.get("unit_offset") or 0, row.get("unit_length") or 0) for row in decoded.changes]
    else:
        columns = [decoded.changes.column(name) for name in ("unit_offset", "unit_length")]
        changes = np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
    others = [(r.unit_offset, r.unit_length) for r in decoded.rejects]
    others += [(p.unit_offset, p.unit_length) for p in decoded.parts if p.unit_length]
    found = np.concatenate([np.asarray(rows, dtype=np.int64).reshape(-1, 2) for rows in (changes, others)])
    return found[np.lexsort((found[:, 1], found[:, 0]))]
