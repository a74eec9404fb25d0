"""The contracts and the options of sources, as the compiled walk of the operation model knows them: integers, and names
as bytes.
"""

import numpy as np
import pyarrow as pa

from inlet import change
from inlet.codecs import json_columns
from inlet.codecs.goldengate.json import walk
from inlet.codecs.goldengate.json.options import Options
from inlet.codecs.goldengate.json.shapes import EVENTS
from inlet.codecs.json_batches import bytes_of, groups
from inlet.codecs.json_columns import joined, order_of
from inlet.fields import variant
from inlet.fields.compiled.json_values import PARTED_DATE, PARTED_TIMESTAMP, PARTED_TIMESTAMP_NTZ
from inlet.source import Source
from inlet.table import Table

ROLES = [
    "op_type",
    "op_ts",
    "current_ts",
    "pos",
    "primary_keys",
    "tokens",
    "table",
    "before",
    "after",
    "xid",
    "seqno",
    "rba",
]  # as the walk numbers them
IN_HEADER = ROLES[: walk.NUM_SLOTS]
OPERATIONS = ["INSERT", "UPDATE", "DELETE", "TRUNCATE", "UPSERT"]  # as the walk numbers them
TYPES = json_columns.TYPES | {"date": PARTED_DATE, "timestamp": PARTED_TIMESTAMP, "timestamp_ntz": PARTED_TIMESTAMP_NTZ}
NO_TIME = "0" * walk.LEN_NO_TIME
UTC = ("UTC", "Etc/UTC")
LEN_MOST_NAMES = 60_000  # of a header: two bytes tell a place among them and those of the tokens
MOST_SHIFT = 10**18


class Contracts:
    """Every (source, contract) that the walk reads, and what it knows them by. `feeds`: see walk.rows."""

    def __init__(self, sources: list[Source], tables: dict[str, Table]):
        self.sources = [source for source in sources if _is_walked(source.options_as(Options))]
        names = [source.name for source in self.sources]
        self.feed_of = {name: feed for feed, name in enumerate(names)}
        contracts = [(name, t) for name, t in json_columns.allowed(self.sources, tables) if _is_ordered(t)]
        self.contracts, self.places = [t for _, t in contracts], [(name, t.versions[-1]) for name, t in contracts]
        columns = json_columns.Columns([table for _, table in self.places], TYPES)
        self.plans, self.num_columns, self.metadata = columns.plans, columns.num_most, columns.metadata
        by_name = {(name, table.table): place for place, (name, table) in enumerate(self.places)}
        self.mapped = {
            (feed, name): by_name[source, table.table]
            for feed, source in enumerate(names)
            for name, table in tables.items()
            if (source, table.table) in by_name
        }
        members = {s.name: _members(s.options_as(Options)) for s in self.sources}
        self.doubles = np.array([bool({*t.column_names} & {*members[name]}) for name, t in self.places], np.bool_)
        self._plan_feeds([source.options_as(Options) for source in self.sources])

    def _plan_feeds(self, of_sources: list[Options]) -> None:
        members, words, slots, name_ends, feeds = [], [], [], [], []
        letters = bytearray()

        def put(data: bytes | None) -> tuple[int, int]:
            """Place and length of bytes among the letters; of none, a length that no name has."""
            letters.extend(data or b"")
            return len(letters) - len(data or b""), -1 if data is None else len(data)

        for options in of_sources:
            header = IN_HEADER + options.header_members
            in_order = variant.in_order(header)
            token = options.transaction_token
            spelt = [*(options.names.get(role) for role in ROLES), *options.header_members]
            read = _words(options)
            feeds.append(
                [
                    *(len(members), len(spelt), len(words), len(read), options.sequence_shift),
                    *(options.time_zone in UTC, *put(token.encode() if token else None), len(slots)),
                    *put("".join(in_order).encode()),
                    *put(variant.metadata(in_order)),
                    *(options.null_means == "missing", options.absent_means == "null"),
                ]
            )
            members += [put(name.encode() if name is not None else None) for name in spelt]
            words += [
                (*put(word.encode()), OPERATIONS.index(meaning), word == change.OPERATIONS[meaning])
                for word, meaning in read.items()
            ]
            slots += order_of(header)
            name_ends += list(joined(in_order)[1][1:])
        self.feeds = (
            np.array(feeds, np.int64).reshape(-1, walk.NUM_FEED),
            np.frombuffer(bytes(letters) or b"\0", np.uint8),
            np.array(members, np.int64).reshape(-1, 2),
            np.array(words, np.int64).reshape(-1, 4),
            np.array(slots, np.int64),
            np.array(name_ends, np.int64),
        )
        self.num_members = int(self.feeds[0][:, walk.NUM_MEMBERS].max(initial=0))  # of the feed that has most
        self.len_names = int(self.feeds[0][:, walk.LEN_NAMES].max(initial=0))

    def places_of(self, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each message its feed; the place of its contract, -1 for none, by the text that is probably its table; and
        where that text stands.
        """
        letters, ends = bytes_of(batch.column("value"))
        feed_of, places = np.full(len(batch), -1, np.int64), np.full(len(batch), -1, np.int64)
        for (source,), at in groups(batch, "source"):
            feed_of[at] = self.feed_of.get(source, -1)
        feed_of[~np.asarray(batch.column("value").is_valid())] = -1
        found = np.zeros((len(batch), 2), np.int64)
        walk.find_tables(letters, ends, feed_of, self.feeds, found)
        texts, stops = (
            np.empty(int(np.maximum(found[:, 1], 0).sum()) or 1, np.uint8),
            np.zeros(len(batch) + 1, np.int64),
        )
        walk.gather(letters, found, texts, stops)
        word = pa.Array.from_buffers(
            pa.binary(), len(batch), [None, pa.py_buffer(stops.astype(np.int32)), pa.py_buffer(texts)]
        )
        told = pa.RecordBatch.from_arrays([pa.array(feed_of), word], names=["feed", "word"])
        for (feed, text), at in groups(told, "feed", "word"):
            places[at] = self._place(feed, text) if feed >= 0 else -1
        return feed_of, places, found

    def _place(self, feed: int, word: bytes) -> int:
        try:
            name = word.decode()
        except UnicodeDecodeError:
            return -1
        return self.mapped.get((feed, self.sources[feed].table_of(name) or name), -1) if name else -1


def _members(options: Options) -> list[str]:
    return [*options.names.values(), *options.header_members]


def _words(options: Options) -> dict[str, str]:
    """Words of op_type that are operations, and what they mean."""
    return {word: meaning for word, meaning in options.words.items() if word not in EVENTS}


def _is_walked(options: Options) -> bool:
    """Does the walk know a source's options? Each member has one role."""
    names = _members(options)
    of_header = {*names, *IN_HEADER}
    return (
        len(names) == len(set(names))
        and not set(options.header_members) & set(IN_HEADER)
        and len(of_header) <= walk.MOST_NAMES
        and len("".join(of_header).encode()) <= LEN_MOST_NAMES
        and abs(options.sequence_shift) < MOST_SHIFT
    )


def _is_ordered(contract: Table) -> bool:
    """Do the versions of a contract end at places of a feed whose order tells no time?"""
    return all(earlier.until.startswith(NO_TIME) for earlier in contract.earlier)
