"""What brings the units of a source: `transport` of its `from:`. Codecs do not know; each that reads messages reads them from every transport here.

A module of MESSAGES offers `plan_file` (one row of bronze.files, or None: wait) and `batches_of` (a planned file's messages, as KEPT).
"""

from inlet.bronze import message_parquet, message_text

MESSAGES = {"parquet": message_parquet, "lines": message_text, "json": message_text, "whole_file": message_text}
