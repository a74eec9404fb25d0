"""The header of a usage journal, field by field: the members of the column `header`, in this order.

A member that is absent was not there: its system item was not acquired or is not valid; journals of a stream have no
message. [documented] a manual says so; [inferred] it follows from the widths of a message's fields.
"""

from inlet.change import Column

HEADER = (
    Column("resource", "string", "TJNLRESOURCE: the table; of SQL Server its update resource name [documented]"),
    Column("storage", "string", "TJNLSTORAGE: Symfoware's DSI, a part of the table [documented]"),
    Column("dbkind", "int", "TJNLDBKIND: the database, 1 Symfoware, 9 Oracle, 10 SQL Server [documented]"),
    Column("sts", "int", "TJNLSTS: 1 first, 2 middle, 4 last, 5 only journal of its transaction [documented]"),
    Column(
        "acquiring_system",
        "int",
        "of its message: where it was acquired, 257 Solaris, 513 Windows, 769 Linux [documented]",
    ),
    Column(
        "packed_transactions",
        "int",
        "of its message: transactions in it; 0 where they are not packed, 1 where one goes over several messages, too "
        "[documented]",
    ),
    Column("journals", "int", "of its message: how many journals it has [documented]"),
    Column(
        "header_tail",
        "string",
        "of its message: the last 16 bytes of its header in hex: packing, code kind, tags, whose places are not public",
    ),
    Column("trnid", "string", "TJNLTRNID in hex, where the journal is in no transaction for it has no TJNLSTS"),
)
