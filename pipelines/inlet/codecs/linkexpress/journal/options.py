"""The options of a source of usage journals: what no manual says, and what a site chose when it acquired them."""

from typing import Literal

from pydantic import ConfigDict, Field, field_validator

from inlet.codecs.linkexpress.options import CommonOptions
from inlet.codecs.linkexpress.settled import Settled, contradicted, option_values
from inlet.source import Source, required

SystemItem = Literal["TIME", "TRNID", "STS", "DBKIND", "DBOP", "STORAGE", "RESOURCE"]


class Options(CommonOptions):
    """`options` of a source. What is `auto` is settled by exact fit over the first journals of each file."""

    model_config = ConfigDict(extra="forbid")
    framing: Literal["auto", "mq_message", "message_body", "journal_stream"] = Field(
        "auto", description="messages with 780 bytes of control data, messages without, or journals alone"
    )
    divided: Literal["no", "yes"] = Field(
        "no",
        description="whether journals may be divided over messages of a broker: a message that is not whole waits for "
        "the others; in files they are put together in any case",
    )
    pair_divided: Literal["none", "adjacent_same_key"] = Field(
        "none",
        description="UpdateLogType DIVIDE writes an update as a delete and an insert, which nothing tells from a real "
        "delete and insert: two changes; or one update where they stand one behind the other in a transaction, in one "
        "file or message, and have the same key",
    )
    tagged: Literal["auto", "yes", "no"] = Field(
        "auto", description="an attribute code and its information before every item"
    )
    sysitems: tuple[SystemItem, ...] = Field(
        ("RESOURCE", "DBOP", "TIME", "TRNID", "STS"),
        description="SYSITEM of the acquisition definition, in its order, for journals that are not tagged",
    )
    sysitems_position: Literal["auto", "first", "last"] = Field(
        "auto", description="system items before the columns or behind them, in journals that are not tagged"
    )
    compressed: Literal["auto", "yes", "no"] = Field(
        "auto", description="Compress: a journal holds the columns of its own table, or those of every table"
    )
    has_checkpoint: Literal["auto", "yes", "no"] = Field(
        "auto", description="CHECKPOINT: a checkpoint item ends the journals, in journals that are not tagged"
    )
    name_width: Literal["auto", "38", "72"] = Field(
        "auto", description="bytes of TJNLRESOURCE and TJNLSTORAGE, in journals that are not tagged"
    )
    validity_order: Literal["auto", "native", "bytes"] = Field(
        "auto",
        description="2-byte validity: a number in the message's byte order, or two bytes as the manual has them; auto: "
        "what columns that are no text tell",
    )
    varying_length: Literal["auto", "data", "area"] = Field(
        "auto", description="what a tag's length of VARCHAR and NVARCHAR counts: data, or their 2 length bytes too"
    )
    nchar_length: Literal["auto", "characters", "bytes"] = Field(
        "auto", description="what a tag's length of NCHAR and NVARCHAR counts"
    )

    @field_validator("sysitems")
    @classmethod
    def _once(cls, names: tuple) -> tuple:
        if len(set(names)) < len(names):
            raise ValueError("an item stands there twice")
        return names


ANY_FORM = ("byte_order", "compressed", "numeric_sign")  # members of a reading, which are options
OF_TAGS = ("varying_length", "nchar_length")  # of journals that are tagged
OF_WIDTHS = ("sysitems_position", "has_checkpoint", "name_width", "validity_order")  # of those that are not


def reading_in_force(context: dict, options: Options) -> Settled:
    """How a file is read by the options of now. In: the context of a block, whose reading they may contradict. Messages
    say their byte order themselves, so it decides nothing but in a stream.
    """
    reading, given = context["reading"], option_values(options, ("framing", "tagged", *ANY_FORM, *OF_TAGS, *OF_WIDTHS))
    fixed = {"framing": context["framing"]}
    if context["framing"] == "journal_stream":
        fixed["byte_order"] = reading["byte_order"]
    is_tagged = given.get("tagged", reading["tagged"]) == "yes"
    members = ("tagged", *ANY_FORM, *(OF_TAGS if is_tagged else OF_WIDTHS))
    now = {name: value for name, value in (reading | given).items() if name in members}
    now |= {"byte_order": reading["byte_order"]}
    if any(given.get(name, value) != value for name, value in fixed.items()):
        return contradicted(reading, fixed, {name: given.get(name, value) for name, value in fixed.items()})
    if now["tagged"] != reading["tagged"] and len(now) < len(members):  # what that form leaves open was not settled
        return contradicted(reading, reading, {"tagged": given["tagged"]})
    return Settled(now)


def options_of(source: Source) -> Options:
    """The options of a source. Raises: ConfigError where a required one is missing."""
    return required(source.options_as(Options), f"sources.{source.name}.options")
