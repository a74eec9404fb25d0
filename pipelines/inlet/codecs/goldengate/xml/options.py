"""The options of a source of GoldenGate's XML messages."""

from functools import cached_property

from pydantic import Field

from inlet.codecs.goldengate.operations.options import NAMES, OperationOptions


class Options(OperationOptions):
    """A source's `options`."""

    null_attribute: str = Field("isNull", description="the attribute of an image that is `true` where it is SQL NULL")
    missing_attribute: str = Field(
        "missing", description="the attribute of an image that is `true` where the column was not supplied"
    )

    @cached_property
    def names(self) -> dict[str, str]:
        """Role -> name of the attribute, or of the element, that has it."""
        return NAMES | {"op_type": "type", "op_ts": "ts"} | {str(role): name for role, name in self.members.items()}
