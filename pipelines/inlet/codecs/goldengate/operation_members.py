"""A message's own members, where the form has nothing but texts: delimited text, XML, Avro's strings."""

from typing import Any

from inlet.codecs.goldengate import operation_change, position
from inlet.codecs.goldengate.operation import Operation, Refused
from inlet.codecs.goldengate.operation_options import OperationOptions
from inlet.codecs.goldengate.position import LEN_RBA
from inlet.source import Source
from inlet.table import Table

TEXTS = ("table", "op_type", "op_ts", "current_ts", "pos", "xid", "seqno", "rba")  # roles whose members are texts


def operation(texts: dict[str, str | None], **others: Any) -> Operation:
    """An operation. In: texts by role, of which `seqno` and `rba` are a `pos` where there is none. Raises: Refused."""
    own: dict[str, Any] = {role: texts.get(role) for role in TEXTS}
    sequence, rba = own.pop("seqno"), own.pop("rba")
    if own["pos"] is None and sequence and rba:
        if len(rba) > LEN_RBA:
            raise Refused("missing_change_seq", "rba", f"at most {LEN_RBA} digits", rba)
        own["pos"] = sequence + rba.zfill(LEN_RBA)
    return Operation(**own, **others)


def contract_in_force(
    told: Operation, topic: str, source: Source, tables: dict[str, Table], options: OperationOptions
) -> Table:
    """The contract of an operation at its place, for a form whose columns have no names. Where the place cannot be
    told, the newest: the operation is rejected then, whatever its columns. Raises: Refused.
    """
    contract = operation_change.table_of(told.table, topic, source, tables)
    place = position.position(told.pos or "")
    is_behind = told.row is not None and options.words.get(told.op_type or "") == "INSERT"
    seq = place and position.change_seq(place[0] + options.sequence_shift, place[1], is_behind)
    return contract.at(seq) if seq else contract
