"""What comes with an Avro datum and names its schema, whoever wrote it: a registry's prefix, or the header of a message
from an Avro container (bronze/message_avro).

Registry    byte 00, a schema id of four bytes, most significant first, the datum [documented: the registry's wire
            format]. The name is the id, in decimal digits
"""

from inlet.fields.wrong import Wrong

HEADER = "avro.schema"
MAGIC, LEN_ID = b"\0", 4
LEN_PREFIX = len(MAGIC) + LEN_ID


def of_container(message: dict) -> str | None:
    """The name of the schema of a message from a container; None for any other message. Bytes that are no text make a
    name that no schema has.
    """
    for header in message.get("headers") or ():
        if header["key"] == HEADER and header["value"]:
            return header["value"].decode(errors="backslashreplace")
    return None


def of_registry(data: bytes) -> tuple[str, int]:
    """The name of a schema, and where the datum begins. Raises: Wrong."""
    if not data.startswith(MAGIC) or len(data) < LEN_PREFIX:
        raise Wrong("wrong_magic", 0, "00 and a schema id of four bytes", data[:LEN_PREFIX].hex().upper())
    return str(int.from_bytes(data[len(MAGIC) : LEN_PREFIX], "big")), LEN_PREFIX
