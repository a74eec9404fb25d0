"""A column of a contract as a row of integers: how its bytes are read, and what the contract makes of them. And what
may be wrong with a column, by the codes that compiled functions give back.
"""

from inlet.fields.compiled import interpreter

# a plan's row: that of the interpreter, and what the contract makes of the value
ENCODING, SOURCE_SCALE = interpreter.ENCODING, interpreter.UNIT
DIGITS, SCALE = interpreter.DIGITS, interpreter.SCALE  # of a decimal in the contract; DIGITS of an integer: its bytes
TARGET = interpreter.NUM_PLAN
PLACE = interpreter.NUM_PLAN + 1  # in a full image, behind the system key
NUM_PLAN = interpreter.NUM_PLAN + 2
VARTEXT, FIXTEXT, SIGNED, UNSIGNED, NUMBER, DATETIME, RAW = range(7)  # ENCODING
TO_TEXT, TO_BINARY, TO_INTEGER, TO_DECIMAL, TO_FLOAT, TO_DATE, TO_TIMESTAMP = range(7)  # TARGET

FAULTS = ("", "bad_length", "unknown_column", "column_twice", "bad_value_length", "bad_text", "value_does_not_fit",
          "bad_date", "missing_key", "null_not_allowed", "ambiguous_layout", "bad_null_indicator",
          "bad_length", "part_missing")  # fmt: skip
(OK, BAD_LENGTH, UNKNOWN_COLUMN, COLUMN_TWICE, BAD_VALUE_LENGTH, BAD_TEXT, VALUE_DOES_NOT_FIT, BAD_DATE, MISSING_KEY,
 NULL_NOT_ALLOWED, AMBIGUOUS, BAD_NULL_INDICATOR, BAD_IMAGE_LENGTH, PART_MISSING) = range(14)  # fmt: skip
MAX_DIGITS, MAX_SCALE = 38, 38
