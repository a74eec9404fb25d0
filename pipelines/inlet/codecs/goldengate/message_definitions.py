"""Column lists of tables that come as messages or as text files of Extract: from the files of defgen, without what only
records of a trail have.
"""

from inlet.codecs.goldengate import defgen, source_type
from inlet.codecs.results import Definition
from inlet.source import Source
from inlet.table_column import without_place


def definitions_of(data: bytes, name: str, source: Source) -> list[Definition]:
    """The column lists in a file of Defgen, or in text of logdump. Their change_seq is empty. Raises: ConfigError."""
    found = defgen.read(data, name, defgen.Feed(source, None))
    return [d._replace(columns=[_of_message(column) for column in d.columns]) for d in found]


def _of_message(column: dict) -> dict:
    """A column whose value is text; of one whose bytes in a trail are not public, too."""
    vendor = without_place(column["source_type"])
    type_ = "string" if source_type.parse(vendor).is_raw else column["type"]
    return column | {"source_type": vendor, "type": type_}
