"""Bronze lands bytes and messages untouched, exactly once. What other layers ask of it."""

from inlet.bronze.framing import cut_file
from inlet.bronze.ordered import undecided
from inlet.bronze.plan import Plan, land, landed, next_batch, plan_batch, unfinished, write_units

__all__ = ["Plan", "cut_file", "land", "landed", "next_batch", "plan_batch", "undecided", "unfinished", "write_units"]
