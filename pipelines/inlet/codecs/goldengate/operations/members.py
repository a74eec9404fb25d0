"""A message's own members, where the form has nothing but texts: delimited text, XML, Avro's strings."""

from typing import Any

from inlet.codecs.goldengate.operations.operation import Operation, Refused
from inlet.codecs.goldengate.operations.position import LEN_RBA

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
