"""The formats Inlet reads. A codec is one module; its docstring is its spec; `CODECS` is the whole plug-in system. The
contract: codec.py.
"""

from inlet.codecs.codec import offers
from inlet.codecs.goldengate.avro import messages as goldengate_avro
from inlet.codecs.goldengate.delimited import messages as goldengate_delimited
from inlet.codecs.goldengate.extract import files as goldengate_text
from inlet.codecs.goldengate.json import messages as goldengate_json
from inlet.codecs.goldengate.logdump import files as goldengate_logdump
from inlet.codecs.goldengate.trail import files as goldengate_trail
from inlet.codecs.goldengate.xml import messages as goldengate_xml
from inlet.codecs.linkexpress import group as linkexpress_group
from inlet.codecs.linkexpress import table as linkexpress_table
from inlet.codecs.linkexpress.journal import files as linkexpress_journal
from inlet.codecs.qlik import avro_messages as qlik_avro
from inlet.codecs.qlik import json_messages as qlik_json
from inlet.codecs.qlik.change_table import files as qlik_change_table
from inlet.source import FILE_TRANSPORTS, MESSAGE_TRANSPORTS, ROW_TRANSPORTS

CODECS = {
    "qlik_json": qlik_json,
    "qlik_avro": qlik_avro,
    "qlik_change_table": qlik_change_table,
    "linkexpress_group": linkexpress_group,
    "linkexpress_table": linkexpress_table,
    "linkexpress_journal": linkexpress_journal,
    "goldengate_trail": goldengate_trail,
    "goldengate_logdump": goldengate_logdump,
    "goldengate_json": goldengate_json,
    "goldengate_avro": goldengate_avro,
    "goldengate_xml": goldengate_xml,
    "goldengate_delimited": goldengate_delimited,
    "goldengate_text": goldengate_text,
}


def transports_of(codec) -> tuple[str, ...]:
    """What can bring a codec its units; the first one is meant where a source names none."""
    return (
        (FILE_TRANSPORTS if offers(codec, "cut") else ())
        + (ROW_TRANSPORTS if offers(codec, "decode_rows") else ())
        + (MESSAGE_TRANSPORTS if offers(codec, "decode_message") else ())
    )
