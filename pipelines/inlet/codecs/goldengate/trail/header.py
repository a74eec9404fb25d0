"""The header of a GoldenGate record, field by field: the members of the column `header`, in this order.

A codec fills the members that its record has; one that is absent or null was not there. The first member is in the
header of every record, whether it was read from a trail or from logdump's text. Times are UTC.

[documented] a vendor's manual says so; [dump seen] public dumps show it; [impl] public code reads it so; [inferred] it
follows from these.
"""

from inlet.change import Column

HEADER = (
    Column("hdr_ind", "string", "Hdr-Ind: `E` in every record [documented]"),
    Column(
        "partition",
        "int",
        "Partition: on Windows and UNIX bits, 4 FieldComp layout, 8 table by its index, 64 unified record [inferred]; "
        "on NonStop, the partition of a bulk operation [documented]",
    ),
    Column("undo_flag", "int", "UndoFlag: 1 backs out an earlier operation, on NonStop alone [documented]"),
    Column("before_after", "string", "BeforeAfter: `B` or `A`, which image the record has [documented]"),
    Column("rec_length", "int", "RecLength: bytes of the column area; 0 where there is none [dump seen]"),
    Column("io_type", "int", "IOType: the operation's code, as 5 for an insert [dump seen]"),
    Column("io_type_name", "string", "logdump's name of the operation, as FieldComp; null for an unknown code"),
    Column("orig_node", "int", "OrigNode: NonStop's node [documented]; elsewhere 255 in changes [dump seen]"),
    Column(
        "io_time_at",
        "timestamp",
        "IO Time in UTC: of log-based captures the time of the commit; may lack zeros, orders nothing [dump seen]",
    ),
    Column(
        "audit_pos",
        "bigint",
        "AuditPos: place in the source's log. Oracle: byte offset; MySQL: number of the binlog; PostgreSQL: LSN [dump "
        "seen]. Not to be compared across sources",
    ),
    Column(
        "audit_rba",
        "bigint",
        "AuditRBA: which log. Oracle: sequence of the redo log; MySQL: offset in the binlog; PostgreSQL: 0 [dump seen]",
    ),
    Column("trans_ind", "int", "TransInd: 0 first, 1 middle, 2 last, 3 only one of its transaction [documented]"),
    Column(
        "format_type",
        "string",
        "FormatType: `R` from the log; `F` fetched from the database, maybe newer than the change [documented]",
    ),
    Column("syskey_len", "int", "SyskeyLen: bytes of the system key, 4 or 8 on NonStop, else 0 [documented]"),
    Column("incomplete", "int", "Incomplete: not used [impl]"),
    Column("continued", "string", "Continued: `Y` where the next record goes on with the data, else `N` [documented]"),
    Column("rec_count", "int", "RecCount: puts segments together [documented]; 1 where there is one [dump seen]"),
    Column("tdr_index", "int", "TDR index: the table's definition, where the header names no table [inferred]"),
    Column(
        "record_name",
        "string",
        "the trail's name of the table: that of the header, or of the definition which its index means [dump seen]",
    ),
    Column("info", "int", "info byte of the record's `G` token; what it means is not public [dump seen]"),
    Column(
        "csn", "string", "commit sequence number (LOGCSN), carried through the transaction; its form is the source's"
    ),
    Column("xid", "string", "transaction id (TRANID), carried through the transaction [dump seen]"),
    Column("row_id", "string", "ORAROWID: Oracle's rowid, 18 characters [dump seen]"),
    Column("thread", "string", "the redo thread that wrote the change, where the feed tells it"),
    Column("tokens", "variant", "every GGS token by its id, such as `L`; user tokens under `user`"),
)
