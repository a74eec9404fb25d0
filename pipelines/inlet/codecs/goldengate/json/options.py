"""The options of a source of GoldenGate's JSON messages."""

from pydantic import Field

from inlet.codecs.goldengate.operations.options import OperationOptions


class Options(OperationOptions):
    """A source's `options`."""

    flatten_delimiter: str | None = Field(
        None,
        min_length=1,
        description="what stands in flattened messages between before or after and the column: `.` in `after.STATUS`",
    )
