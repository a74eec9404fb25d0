"""Bronze lands bytes and messages untouched, exactly once. What other layers ask of it."""

from inlet.bronze.files import read_again
from inlet.bronze.framing import cut_file
from inlet.bronze.landing import check_sources, land, messages_of, write_plan, write_units
from inlet.bronze.ordered import undecided
from inlet.bronze.plan import Plan, landed, next_batch, plan_batch, unfinished
from inlet.bronze.redelivered import plan_again
from inlet.bronze.reframing import frame_again

__all__ = [
    "Plan",
    "check_sources",
    "cut_file",
    "frame_again",
    "land",
    "landed",
    "messages_of",
    "next_batch",
    "plan_again",
    "plan_batch",
    "read_again",
    "undecided",
    "unfinished",
    "write_plan",
    "write_units",
]
