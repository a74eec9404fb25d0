"""The formats Inlet reads. A codec is one module; its docstring is its spec; this dict is the whole plug-in system."""

from inlet.codecs.linkexpress import group
from inlet.codecs.qlik import json_messages

CODECS = {
    "qlik_json": json_messages,
    "linkexpress_group": group,
}
