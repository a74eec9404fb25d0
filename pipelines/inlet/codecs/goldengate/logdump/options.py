"""The options of a source of logdump's text."""

from datetime import timedelta
from typing import Literal

from pydantic import ConfigDict, Field

from inlet.codecs.goldengate.options import TextOptions


class Options(TextOptions):
    """`options` of a source of logdump's text."""

    model_config = ConfigDict(extra="forbid")
    seqno: int | None = Field(
        None, ge=0, lt=10**9, description="number of the trail file, where no line `Current LogTrail is ...` tells it"
    )
    zone: str = Field(
        "UTC",
        pattern=r"^(UTC|[+-]\d\d:[0-5]\d)$",
        description="zone of the machine that printed the text, as +09:00; not used where HEADERTOKEN DETAIL was on",
    )
    byte_order: Literal["auto", "big", "little"] = Field(
        "auto", description="byte order of the trail; `auto`: as it fits"
    )
    is_complete: bool = Field(
        False,
        description="does the last record end with the text, even where its lines do not show that nothing follows",
    )

    @property
    def zone_offset(self) -> timedelta:
        if self.zone == "UTC":
            return timedelta()
        hours, minutes = map(int, self.zone[1:].split(":"))
        return timedelta(hours=hours, minutes=minutes) * (-1 if self.zone[0] == "-" else 1)
