"""The formats Inlet reads. A codec is one module; its docstring is its spec; this dict is the whole plug-in system."""

from inlet.codecs import linkexpress_group, qlik_json

CODECS = {
    "qlik_json": qlik_json,
    "linkexpress_group": linkexpress_group,
}
