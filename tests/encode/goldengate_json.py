"""Write GoldenGate's JSON messages: operation model, row model, flattened, Kafka Connect's envelope. Knows nothing of
inlet.

A change is a dict: operation, seqno, rba, before, after (dicts of Python values), op_ts (text), tokens.
"""

import decimal
import json

LETTERS = {"INSERT": "I", "UPDATE": "U", "UPSERT": "UPSERT", "DELETE": "D", "TRUNCATE": "T"}
SHAPES = ("operation", "row", "flattened", "envelope")


def value(change: dict, table: str, shape: str = "operation", key: tuple[str, ...] = ()) -> bytes:
    """Message value of one change."""
    images = {name: change[name] for name in ("before", "after") if change.get(name) is not None}
    body = {
        "table": table,
        "op_type": LETTERS[change["operation"]],
        "op_ts": change.get("op_ts", "2026-01-02 03:04:05.000000"),
        "current_ts": "2026-01-02T03:04:06.000001",
        "pos": f"{change['seqno']:010d}{change['rba']:010d}",
        "primary_keys": list(key),
        "tokens": change.get("tokens", {}),
    }
    if shape == "row":
        body |= images.get("after", images.get("before", {}))
    elif shape == "flattened":
        body |= {f"{name}.{column}": of for name, image in images.items() for column, of in image.items()}
    else:
        body |= images
    if shape == "envelope":
        body = {"schema": {"type": "struct", "fields": []}, "payload": {"before": None, "after": None} | body}
    return text(body).encode()


def text(value) -> str:
    """JSON; a decimal is a number with the digits that it has."""
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(name))}:{text(member)}" for name, member in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
