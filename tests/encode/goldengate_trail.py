"""Plain descriptions of changes -> the bytes of GoldenGate trail files: a second reading of the format, to test the
codec against. Written from the chapters of goldengate.md that are named; imports nothing of inlet.

    trail = Trail([table], byte_order="little", name_form="index")
    record = trail.insert("HR.EMP", {"ID": 1, "NAME": "a"}, trans_ind=ONLY, io_time=at, tokens=[("6", "10.2.2016")])
    trail.files        # [("ra000000000", bytes)]
    record.rba         # where its `G` is

Any field of the record header (`goldengate_tokens.HEADER`) may be given with a record, by its name.
What nobody has published is opaque here: bodies of metadata records, chunks of LOBs, user tokens.
"""

import datetime
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.encode import goldengate_columns as columns
from tests.encode.goldengate_columns import Table, filler, is_alike
from tests.encode.goldengate_tokens import (
    DDR,
    FIELD_COMP,
    FIRST,
    HEADER,
    LAST,
    MIDDLE,
    ONLY,
    TAIL_IS_INDEX,
    TDR,
    TDR_REFERENCE,
    UNIFIED,
    ddl_text,
    file_header,
    framed,
    ggs_payload,
    ggs_tokens,
    ghdr,
    token,
)

DELETE, INSERT, UPDATE, FIELD_COMP_UPDATE, TRUNCATE = 3, 5, 10, 15, 100  # IOType (3)
KEY_UPDATE, LARGE_OBJECT, UNIFIED_UPDATE, UNIFIED_KEY_UPDATE, UPSERT = 115, 116, 134, 135, 140
RESTART_ABEND, RESTART_OK, DDL, METADATA = 150, 151, 160, 170  # 150 and 151 are recalled, unverified (19)
LEN_DDR = 81  # as seen in S2
CREATED_AT = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
MACHINE = [("1", [("0", b"\0\5Linux"), ("1", b"\0\4host")]), ("4", [("0", bytes(4))])]  # groups to step over (5)


@dataclass(frozen=True)
class Record:
    """A record that was written, and what it says in plain values. `header` has every field of the GHDR."""

    seqno: int
    rba: int
    data: bytes
    header: dict[str, Any]
    order: str
    table: str | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    area: bytes = b""  # the D token
    tokens: tuple[tuple[str, bytes], ...] = ()
    user: bytes | None = None
    tdr_index: int | None = None
    definition: Table | None = None  # of a TDR

    @property
    def length(self) -> int:
        return len(self.data)


class Trail:
    """Trail files that are being written.

    In: `byte_order` of records, big or little; `header_order` of the `F` record, which in little-endian trails nobody
    has seen (19); `name_form`: record headers hold the table's name, or the index of its TDR; `layout` of images,
    compressed or full (4.4); `definitions` are written before the first use of a table in a file, or all at its start
    (6).
    """

    def __init__(
        self,
        tables: Iterable[Table] = (),
        byte_order: str = "big",
        name_form: str = "name",
        compatibility: int | None = None,
        header_order: str = "big",
        layout: str = "compressed",
        definitions: str = "first use",
        prefix: str = "./dirdat/ra",
        seqno: int = 0,
        has_header: bool = True,  # trails from before release 10 have none
    ):
        self.tables = {table.name: table for table in tables}
        self.byte_order, self.header_order = byte_order, header_order
        self.name_form, self.layout, self.definitions = name_form, layout, definitions
        self.compatibility = compatibility or (7 if name_form == "index" else 4)
        self.prefix, self.digits = prefix, 6 if self.compatibility <= 4 else 9  # of a file's name (5)
        self.has_header, self.seqno = has_header, seqno - 1
        self.records: list[Record] = []
        self._files: list[tuple[str, bytearray]] = []
        self.roll()

    @property
    def order(self) -> str:
        return _mark(self.byte_order)

    @property
    def rba(self) -> int:
        """Where the next record will be."""
        return len(self._files[-1][1])

    @property
    def files(self) -> list[tuple[str, bytes]]:
        """Name and bytes of each file."""
        return [(name, bytes(data)) for name, data in self._files]

    def roll(self, byte_order: str | None = None) -> None:
        """Go on in the next file, which has a header and definitions of its own; maybe in another byte order (17)."""
        self.byte_order, self.seqno = byte_order or self.byte_order, self.seqno + 1
        self.num_ddrs, self.num_tdrs = 0, 0
        self.defined: dict[str, tuple[int, Table]] = {}  # table -> its index and definition in this file
        path = f"{self.prefix}{self.seqno:0{self.digits}d}"
        facts = {
            "compatibility": self.compatibility,
            "created_at": CREATED_AT,
            "uri": "uri:host::ggs:EXT1",
            "file_name": path,
            "seqno": self.seqno,
        }
        data = file_header(facts, _mark(self.header_order), MACHINE) if self.has_header else b""
        self._files.append((path.rpartition("/")[2], bytearray(data)))
        if self.name_form == "index" and self.definitions == "start":
            for table in self.tables:
                self._index_of(table, {})

    def write(
        self,
        io_type: int,
        tail: bytes = b"\0",
        area: bytes = b"",
        *,
        tokens: Iterable[tuple] = (),
        user: bytes | None = None,
        facts: dict[str, Any] | None = None,
        **header,
    ) -> Record:
        """Any record: G, H, D, U, T, Z (1.2). A record without data has no D."""
        fields = HEADER | {"io_type": io_type, "rec_length": len(area)} | header
        said = [(token_id, ggs_payload(token_id, value)) for token_id, value in tokens]
        payload = token("H", ghdr(fields, tail, self.order), self.order)
        payload += token("D", area, self.order) if area else b""
        payload += token("U", user, self.order) if user is not None else b""
        payload += token("T", ggs_tokens(said, self.order), self.order) if said else b""
        data = framed("G", payload, self.order, (1, 1))
        record = Record(
            self.seqno, self.rba, data, fields, self.order, area=area, tokens=tuple(said), user=user, **facts or {}
        )
        self._files[-1][1].extend(data)
        self.records.append(record)
        return record

    def row(
        self, io_type: int, table: str, area: bytes = b"", before=None, after=None, bits: int = 0, **said
    ) -> Record:
        """A record of a table, whose name or index is the tail of its header (2.1)."""
        index = self._index_of(table, said) if self.name_form == "index" else None
        tail = table.encode("utf-8") + b"\0" if index is None else struct.pack(self.order + "H", index)
        bits |= (FIELD_COMP if self.layout == "compressed" else 0) | (TAIL_IS_INDEX if index is not None else 0)
        facts = {"table": table, "before": before, "after": after, "tdr_index": index}
        return self.write(io_type, tail, area, facts=facts, **{"partition": bits, **said})

    def image(self, table: str, image: dict[str, Any], syskey: bytes = b"") -> bytes:
        """The D area of one image, behind the system key of NonStop (2.4)."""
        encode = columns.compressed if self.layout == "compressed" else columns.full
        return syskey + encode(self.tables[table], image, self.order)

    def insert(self, table: str, after: dict, syskey: bytes = b"", **said) -> Record:
        area = self.image(table, after, syskey)
        return self.row(INSERT, table, area, after=after, **{"syskey_len": len(syskey), **said})

    def delete(self, table: str, before: dict, syskey: bytes = b"", **said) -> Record:
        area = self.image(table, before, syskey)
        said = {"syskey_len": len(syskey), "before_after": "B", **said}
        return self.row(DELETE, table, area, before=before, **said)

    def update(self, table: str, after: dict, syskey: bytes = b"", **said) -> Record:
        """The key and what has changed (15); in the full layout all columns (10)."""
        io_type = FIELD_COMP_UPDATE if self.layout == "compressed" else UPDATE
        area = self.image(table, after, syskey)
        return self.row(io_type, table, area, after=after, **{"syskey_len": len(syskey), **said})

    def update_in_two(
        self, table: str, before: dict, after: dict, syskey: bytes = b"", trans_ind: int = ONLY, **said
    ) -> list[Record]:
        """GETUPDATEBEFORES: a record marked B, right behind it one marked A (10)."""
        first, second = spread(trans_ind, 2)
        io_type = FIELD_COMP_UPDATE if self.layout == "compressed" else UPDATE
        area = self.image(table, before, syskey)
        said = {"syskey_len": len(syskey), **said}
        head = self.row(io_type, table, area, before=before, trans_ind=first, before_after="B", **said)
        return [head, self.update(table, after, syskey, trans_ind=second, **said)]

    def key_update(self, table: str, before: dict, after: dict, **said) -> Record:
        """115: the key columns of before, the columns of after (4.5). A list in any layout: full images are those
        of 3, 5 and 10 (4.4).
        """
        area = columns.key_update(self.tables[table], before, after, self.order)
        return self.row(KEY_UPDATE, table, area, before, after, FIELD_COMP, **said)

    def unified_update(self, table: str, before: dict, after: dict, len_prefix: int, **said) -> Record:
        """134, or 135 where a key differs. The prefix has 2 or 4 bytes; which one is not known (4.6, 19)."""
        definition = self.tables[table]
        is_moved = any(n in before and n in after and before[n] != after[n] for n in definition.key)
        area = columns.key_update(definition, before, after, self.order, len_prefix)
        io_type = UNIFIED_KEY_UPDATE if is_moved else UNIFIED_UPDATE
        return self.row(io_type, table, area, before, after, UNIFIED | FIELD_COMP, **said)

    def upsert(self, table: str, after: dict, **said) -> Record:
        area = columns.compressed(self.tables[table], after, self.order)
        return self.row(UPSERT, table, area, after=after, bits=FIELD_COMP, **said)

    def truncate(self, table: str, **said) -> Record:
        return self.row(TRUNCATE, table, **said)

    def segments(
        self, table: str, io_type: int, pieces: Iterable[bytes], trans_ind: int = ONLY, **said
    ) -> list[Record]:
        """A D area in pieces: Continued is Y on all but the last, RecCount counts them (2.4).

        ASSUMED: each piece has the IOType, the indicator and the RecLength of a record of its own.
        """
        pieces = list(pieces)
        return [
            self.row(io_type, table, piece, rec_count=n, continued=int(n < len(pieces)), trans_ind=indicator, **said)
            for n, (piece, indicator) in enumerate(zip(pieces, spread(trans_ind, len(pieces))), 1)
        ]

    def lob_chunk(self, table: str, chunk: bytes, **said) -> Record:
        """116, behind its base record; what a chunk holds is not public (4.7)."""
        return self.row(LARGE_OBJECT, table, chunk, **said)

    def ddl(self, items: Iterable[tuple[str, str]], statement: str | None = None, **said) -> Record:
        """160: a text; no name (8)."""
        return self.write(DDL, area=ddl_text(items, statement), **{"partition": 0, "orig_node": 0, **said})

    def restart(self, is_clean: bool, **said) -> Record:
        """RestartOK, or RestartAbend where an open transaction was given up (10). ASSUMED: all but the IOType is as of
        DDL.
        """
        return self.write(RESTART_OK if is_clean else RESTART_ABEND, **{"partition": 0, "orig_node": 0, **said})

    def define(self, table: Table, **said) -> Record:
        """The columns of a table from here on in this file; where another one has the same, a reference to it (6).
        Behind DDL this is the second TDR of its table. Lengths of bodies are those of S2 and S4.
        """
        self.tables[table.name] = table
        if not self.num_ddrs:
            self.define_database(**said)
        self.num_tdrs += 1
        same = [index for name, (index, other) in self.defined.items() if is_alike(other, table) and name != table.name]
        kind, body, index = (
            (TDR_REFERENCE, b"", same[0]) if same else (TDR, filler(repr(table), 24 + 57 * len(table.columns)), None)
        )
        pair = (self.num_ddrs, index or self.num_tdrs)
        tail = table.name.encode("utf-8") + b"\0"
        self.defined[table.name] = self.num_tdrs, table
        facts = {"table": table.name, "tdr_index": pair[1], "definition": table}
        return self._metadata(kind, tail, body, facts, pair, said)

    def define_database(self, **said) -> Record:
        """A DDR (6)."""
        self.num_ddrs += 1
        body = filler(f"{self.prefix} {self.num_ddrs}", LEN_DDR)
        return self._metadata(DDR, b"\0", body, {}, (self.num_ddrs, 0), said)

    def _metadata(self, kind: int, tail: bytes, body: bytes, facts: dict, indexes: tuple[int, int], said) -> Record:
        times = {name: said[name] for name in ("io_time", "audit_pos") if name in said}
        fields = {"partition": 0, "orig_node": kind, "audit_rba": indexes, **times}
        return self.write(METADATA, tail, body, facts=facts, **fields)

    def _index_of(self, table: str, said: dict) -> int:
        if self.defined.get(table, (0, None))[1] != self.tables[table]:
            self.define(self.tables[table], **said)
        return self.defined[table][0]


def spread(trans_ind: int, num_records: int) -> list[int]:
    """The indicators of several records that together are first, last, both or neither in their transaction (2.4)."""
    if num_records == 1:
        return [trans_ind]
    first = FIRST if trans_ind in (FIRST, ONLY) else MIDDLE
    last = LAST if trans_ind in (LAST, ONLY) else MIDDLE
    return [first, *[MIDDLE] * (num_records - 2), last]


def _mark(byte_order: str) -> str:
    return {"big": ">", "little": "<"}[byte_order]
