"""The options of a source of trails."""

from pydantic import BaseModel, ConfigDict, Field

FILE_NAME = r".*?(?P<seqno>\d{9}|\d{6})"


class TextOptions(BaseModel):
    """What the text in a source's records is."""

    charset: str = Field(
        "AL32UTF8",
        description="character set of the source's text, as Oracle, MySQL or PostgreSQL names it; a column may have "
        "its own (`charset` in the contract)",
    )


class Options(TextOptions):
    """`options` of a source of trails."""

    model_config = ConfigDict(extra="forbid")
    file_name: str = Field(
        FILE_NAME, description="pattern of a whole file name; its group `seqno` is the number of the file in the trail"
    )
