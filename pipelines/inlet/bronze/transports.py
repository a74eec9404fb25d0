"""What brings the units of a source: `transport` of its `from:`. Codecs do not know; each reads from every transport
that brings what it reads.

A module here offers `plan_file`, a row of bronze.files for what of a file can land now (a text: what it waits for;
None: it is not whole yet, or grew while it was read), and `units_of`, the units of a planned file: rows of
bronze.blocks, or Arrow batches of messages as KEPT. A broker has no files: kafka.py plans all of a source at once.
"""

from inlet.bronze import blocks, kafka, message_avro, message_parquet, message_text, parquet_rows

TRANSPORTS = {
    "records": blocks,
    "rows": parquet_rows,
    "parquet": message_parquet,
    "avro": message_avro,
    "lines": message_text,
    "json": message_text,
    "whole_file": message_text,
    "kafka": kafka,
}
