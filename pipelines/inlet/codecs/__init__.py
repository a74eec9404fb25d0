"""The formats Inlet reads. A codec is one module; its docstring is its spec; this dict is the whole plug-in system."""

from inlet.codecs import linkexpress_group

CODECS = {
    "linkexpress_group": linkexpress_group,
}
