"""Inlet: where change streams enter the lakehouse. Read `change.py` first, then docs/architecture.md.

For notebooks and scripts: `spark = inlet.connect("path/to/project")`, a Spark session with the public views.
"""

__version__ = "0.1.0"
__all__ = ["connect"]


def __getattr__(name: str):
    if name == "connect":  # not before it is asked for: the core is imported without the lakehouse
        from inlet.commands.connect import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
