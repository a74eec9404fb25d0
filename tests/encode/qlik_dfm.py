"""Write the sidecar (.dfm) of a file of Qlik's. Knows nothing of inlet."""

import json
from collections.abc import Sequence
from typing import Any

from tests.encode.qlik_change_table import CHANGES, DEFAULTS, Layout, Options, Table


def dfm(
    table: Table,
    num_records: int | None,
    layout: Layout = CHANGES,
    options: Options | None = DEFAULTS,
    *,
    file: str = "20260102-030405678.csv",
    extension: str | None = None,
    format_: str = "delimited",
    content: str = "changes",
    location: str | None = None,
    key_member: str = "primaryKeyPos",
    hex_delimiters: bool = False,
    task: str = "",
    times: Sequence[str | None] = ("", "", None, None),
    operation: str = "dataProduced",
) -> bytes:
    """The sidecar of a file. In: how many rows it has; its name on disk (its last extension stands apart, unless told);
    the four times of its writing and of its transactions.
    """
    name, dot, last = file.rpartition(".")
    if extension is not None:
        name, last = file, extension
    folder = f"{table.schema}.{table.name}{layout.suffix if layout.headers else ''}"
    written = None
    if format_ == "delimited" and options:
        shown = _hex if hex_delimiters else str
        written = {
            "fieldDelimiter": shown(options.field_delimiter),
            "recordDelimiter": shown(options.record_delimiter),
            "nullValue": options.null,
            "quoteChar": options.quote,
            "escapeChar": options.escape,
        }
    says: dict[str, Any] = {
        "dfmVersion": "1.1",
        "taskInfo": {
            "name": task,
            "sourceEndpoint": "",
            "sourceEndpointType": "",
            "sourceEndpointUser": "",
            "replicationServer": "",
            "operation": operation,
        },
        "fileInfo": {
            "name": name if dot or extension is not None else last,
            "extension": last if dot or extension is not None else "",
            "location": folder if location is None else location,
            "startWriteTimestamp": times[0],
            "endWriteTimestamp": times[1],
            "firstTransactionTimestamp": times[2],
            "lastTransactionTimestamp": times[3],
            "content": content,
            "recordCount": num_records,
            "errorCount": 0,
        },
        "formatInfo": {"format": format_} | ({"options": written} if written else {}),
        "dataInfo": {
            "sourceSchema": table.schema,
            "sourceTable": table.name,
            "targetSchema": table.schema,
            "targetTable": table.name + (layout.suffix if layout.headers else ""),
            "tableVersion": table.version,
            "columns": [
                {
                    "ordinal": ordinal,
                    "name": column.name,
                    "type": column.type,
                    "length": column.length,
                    "precision": column.precision,
                    "scale": column.scale,
                    key_member: column.key,
                }
                for ordinal, column in enumerate(layout.columns(table), 1)
            ],
        },
    }
    return json.dumps(says, ensure_ascii=False, indent=1).encode()


def _hex(text: str) -> str:
    return "0x" + text.encode("ascii").hex().upper()
