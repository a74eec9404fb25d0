"""Times of messages that no broker gave one, where the source's codec has full loads: those of its option `load_time`.

All messages of a file have its time, and after that as many microseconds as their ordinals: so times of one file tell
its order, as a broker's do. A file that lands in several batches keeps the time that it had in the first one.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from inlet.bronze.files import utc
from inlet.bronze.history import History
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.config import Project
from inlet.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNTIMED = ("avro", "lines", "json", "whole_file")  # transports whose messages have no broker's time


def notice(source: Source) -> str | None:
    """What a source's full loads lack, before any is there."""
    codec = CODECS[source.codec]
    if not offers(codec, "LOADS") or source.transport not in UNTIMED or source.options_as(codec.OPTIONS).load_time:
        return None
    return (
        f"rows of full loads are rejected (missing_change_seq), for messages of transport {source.transport} have no "
        "broker's time; option load_time says where the time of a load comes from"
    )


def of_file(source: Source, path: str, modified_at: datetime | None) -> datetime | None:
    """The time of messages of a file that have none; None where they stay without."""
    codec = CODECS[source.codec]
    return codec.LOADS.file_time(source, path, modified_at) if offers(codec, "LOADS") else None


def timed(message: dict, at: datetime | None) -> dict:
    """A message with a time. In: that of its file. A tombstone's place is the broker's time, and no other."""
    if at is None or message["timestamp"] is not None or message["value"] is None:
        return message
    return message | {"timestamp": at + timedelta(microseconds=message["offset"])}


def of_files(project: Project, sources: list[Source]) -> dict[tuple[str, str], datetime]:
    """The times of messages by source and path, where they have one of their own file."""
    timing = {
        s.name: s
        for s in sources
        if offers(CODECS[s.codec], "LOADS") and s.options_as(CODECS[s.codec].OPTIONS).load_time
    }
    first: dict[tuple[str, str], datetime | None] = {}
    for row in (row for source in timing for row in History(project).of_source(source)):
        if row["num_units"]:
            first.setdefault((row["source"], row["path"]), row["modified_at"] and utc(row["modified_at"]))
    times = {place: of_file(timing[place[0]], place[1], modified) for place, modified in first.items()}
    return {place: at for place, at in times.items() if at}


def with_times(project: Project, messages: "DataFrame", sources: list[Source]) -> "DataFrame":
    """The same of rows of bronze.messages."""
    rows = [(*place, at) for place, at in of_files(project, sources).items()]
    if not rows:
        return messages
    times = messages.sparkSession.createDataFrame(rows, "source string, path string, load_at timestamp")
    found = messages.join(times.hint("broadcast"), ["source", "path"], "left")
    given = "if(value is null, null, timestampadd(microsecond, `offset`, load_at))"
    return found.selectExpr(
        *(
            f"coalesce(timestamp, {given}) as timestamp" if name == "timestamp" else f"`{name}`"
            for name in messages.columns
        )
    )
