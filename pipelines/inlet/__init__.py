"""Inlet: where change streams enter the lakehouse. Read `change.py` first, then docs/architecture.md."""

__version__ = "0.1.0"
