"""SQL for the times of versions: those in their places in the order, or those of the changes themselves where a
source's order tells no time (docs/adr/0014).

Such a source's change_seq is less, as text, than `change.FIRST_TIMED`. As of a time it has the changes before the first
one, in its order, that is later than the time: its changes' own times may fall.
"""

from inlet import change

UNTIMED = f"{{}} < '{change.FIRST_TIMED}'"  # SQL: a place tells no time


def time_of(seq: str) -> str:
    """SQL for the time in a change_seq (YYYYMMDDHHmmSShh, UTC); null where a source's digits are no calendar time.
    Spark cannot read a fraction without a point before it."""
    return f"try_to_timestamp(substr({seq}, 1, 14) || '.' || substr({seq}, 15, 2) || '+0000', 'yyyyMMddHHmmss.SSZ')"


def time(seq: str, of_change: str) -> str:
    """SQL for the time in a change_seq, or that of the change where the source's order tells none."""
    return f"if({UNTIMED.format(seq)}, {of_change}, {time_of(seq)})"


def is_untimed(name: str, point) -> bool:
    """Does the order of some source of a table tell no time?"""
    return any(point.points.get(source, "").startswith(change.NO_TIME) for source in point.table(name).through)


def closing_times(database: str, name: str, point, our) -> str:
    """SQL that brings the times of the changes that closed versions, where some source's order tells no time; else
    none."""
    if not is_untimed(name, point):
        return ""
    return (
        "\nleft join (select source as _closed_source, change_seq as _closed_seq, change_timestamp as _closed_at "
        f"from {database}.{name}__before_after where {UNTIMED.format('change_seq')})\n"
        f"on _closed_source = {our.source} and _closed_seq = {our.valid_to_seq}"
    )


def as_of_time(history: str, log: str, at: str, holds: str, our) -> str:
    """A query of the versions that held at a time. In: a history and its log; SQL for the time; SQL that says whether a
    version held at `{0}`; what our columns are called in the history.
    """
    seq = f"(date_format(to_utc_timestamp({at}, current_timezone()), 'yyyyMMddHHmmssSS') || '~')"
    from_seq, to_seq = our.valid_from_seq, our.valid_to_seq
    return (
        f"select h.* from {history} h\n"
        f"left join (select source as _later_source, min(change_seq) as _later_seq from {log} "
        f"where {UNTIMED.format('change_seq')} and change_timestamp > {at} group by source)\n"
        f"on _later_source = h.{our.source}\n"
        f"where if({UNTIMED.format(from_seq)}, coalesce({from_seq} < _later_seq, true) "
        f"and coalesce({to_seq} >= _later_seq, {to_seq} is null), {holds.format(seq)})"
    )
