"""The options of a source of GoldenGate's Avro messages."""

from typing import Literal

from pydantic import Field, field_validator

from inlet.codecs.goldengate.operations.options import OperationOptions

Part = Literal["table", "fingerprint", "payload"]


class Options(OperationOptions):
    """A source's `options`."""

    framing: Literal["bare", "confluent", "wrapped"] = Field(
        "bare",
        description="`bare`: nothing but the datum (Kafka handler); `confluent`: behind a byte 00 and a schema id of "
        "four bytes; `wrapped`: in the generic wrapper. Messages from `transport: avro` bring their schema, however "
        "this is set",
    )
    schema_of: Literal["table", "topic"] = Field(
        "table",
        description="what tells the schema of a bare datum: its own first field, which is the table's name, or the "
        "topic",
    )
    schemas: dict[str, list[str]] = Field(
        {},
        description="names of schemas under `lookups`, by table or topic: {GG.ORDERS: [orders_1, orders_2]}. A datum "
        "is read by the one that fits it to its last byte; a table that is not named here has its own name. A schema "
        "that changed needs a new name, for what was found under one stays",
    )
    wrapper: list[Part] = Field(
        ["table", "fingerprint", "payload"], description="the fields of the generic wrapper, in their order"
    )
    is_packed: bool = Field(
        False, description="whether bare data follow each other in one message (mode=tx of the Kafka handler)"
    )

    @field_validator("wrapper")
    @classmethod
    def _each_once(cls, parts: list[str]) -> list[str]:
        if sorted(parts) != ["fingerprint", "payload", "table"]:
            raise ValueError(f"expected table, fingerprint and payload, each once, found {', '.join(parts)}")
        return parts
