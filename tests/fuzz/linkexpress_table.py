"""Linkexpress extracts by table, as those of groups."""

from tests.fuzz.linkexpress_group import TOKENS, check, units

__all__ = ("TOKENS", "check", "units")
