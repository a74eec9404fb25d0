"""The operation model at speed: Arrow batches of messages -> the compiled walk -> Arrow batches of changes.

What the walk is sure of becomes a row. What it is not sure of is left out: other shapes and options, several records in
one message, an op_ts of another zone than UTC.
"""

from inlet.codecs import walked
from inlet.codecs.goldengate.json import arrow
from inlet.codecs.goldengate.json.contracts import OPERATIONS, Contracts
from inlet.source import Source
from inlet.table import Table

READ = "unit_id", "source", "value"


def changes(sources: list[Source], tables: dict[str, Table], loads: list[dict]):
    """Changes of the messages that are in no doubt, as of FastMessages. There are no loads."""
    contracts = Contracts(sources, tables)
    return walked.changes(arrow.walked(contracts), contracts, OPERATIONS)
