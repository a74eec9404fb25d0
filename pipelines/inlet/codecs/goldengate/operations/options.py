"""What all message forms of GoldenGate leave to the configuration of Replicat, as options of a source."""

import zoneinfo
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Role = Literal[
    "table", "op_type", "op_ts", "current_ts", "pos", "primary_keys", "tokens", "before", "after", "xid", "seqno", "rba"
]
NAMES: dict[str, str] = {  # role -> what the formatters call the member; the others are there by metaColumnsTemplate
    "table": "table",
    "op_type": "op_type",
    "op_ts": "op_ts",
    "current_ts": "current_ts",
    "pos": "pos",
    "primary_keys": "primary_keys",
    "tokens": "tokens",
    "before": "before",
    "after": "after",
}
Meaning = Literal["INSERT", "UPDATE", "DELETE", "TRUNCATE", "UPSERT"]
OPERATIONS: dict[str, str] = {
    "I": "INSERT",
    "U": "UPDATE",
    "D": "DELETE",
    "T": "TRUNCATE",
    "INSERT": "INSERT",
    "UPDATE": "UPDATE",
    "DELETE": "DELETE",
    "UPSERT": "UPSERT",
}


class ImageOptions(BaseModel):
    """`options` of a source whose images of rows are read as those of messages are."""

    model_config = ConfigDict(extra="forbid")
    time_zone: str = Field(
        "UTC", description="IANA name of the zone of op_ts; UTC is what `goldengate.userexit.timestamp=utc` writes"
    )
    null_means: Literal["auto", "null", "missing"] = Field(
        "auto",
        description="a null in the after-image of an update: `null`, SQL NULL; `missing`, not supplied; `auto`, what "
        "the form says, and a reject where it says neither",
    )
    absent_means: Literal["missing", "null"] = Field(
        "missing",
        description="a column that an after-image lacks: `null` where omitNullValues (omitNullColumnValues) leaves "
        "out nulls and updates are whole (NOCOMPRESSUPDATES)",
    )

    @field_validator("time_zone")
    @classmethod
    def _zone(cls, name: str) -> str:
        try:
            zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"expected an IANA name such as Asia/Tokyo, found {name!r}") from None
        return name

    @cached_property
    def zone(self) -> zoneinfo.ZoneInfo:
        return zoneinfo.ZoneInfo(self.time_zone)


class OperationOptions(ImageOptions):
    """`options` of a source, whatever the form of its messages."""

    members: dict[Role, str] = Field(
        {},
        description="what the message calls its own members, where they have other names (metaColumnsTemplate, "
        "beforeObjectName, afterObjectName): table, op_type, op_ts, current_ts, pos, primary_keys, tokens, before, "
        "after; and those that it has by metaColumnsTemplate alone: xid, the transaction; seqno and rba, in place of "
        "pos",
    )
    header_members: list[str] = Field(
        [],
        description="further members that are the message's own (metaColumnsTemplate); in the row model, where any "
        "other member is a column, they have to be named",
    )
    operations: dict[str, Meaning] = Field(
        {},
        description="words of op_type and what each means, as `{Q: INSERT}` (insertOpKey, ...), beside I, U, D, T, "
        "INSERT, UPDATE, DELETE and UPSERT, or in their place",
    )
    transaction_token: str | None = Field(
        None,
        description="the token that has the transaction's id in every message, such as `6` or `TXID`; left out where "
        "only the first message of a transaction has it",
    )
    sequence_shift: int = Field(
        0, description="added to the trail's sequence number, where it is negative or has more than nine digits"
    )

    @cached_property
    def names(self) -> dict[str, str]:
        """Role -> name of the member that has it."""
        return NAMES | {str(role): name for role, name in self.members.items()}

    @cached_property
    def words(self) -> dict[str, str]:
        """op_type -> operation."""
        return OPERATIONS | {word: str(meaning) for word, meaning in self.operations.items()}
