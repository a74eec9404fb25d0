"""Bronze lands bytes and messages untouched, exactly once. What other layers ask of it."""

from inlet.bronze.framing import cut_file
from inlet.bronze.history import History
from inlet.bronze.landing import check_sources, land, messages_of, write_plan, write_units
from inlet.bronze.ordered import undecided
from inlet.bronze.plan import Plan, plan_batch
from inlet.bronze.redelivered import plan_again
from inlet.bronze.reframing import frame_again

__all__ = [
    "History",
    "Plan",
    "check_sources",
    "cut_file",
    "frame_again",
    "land",
    "messages_of",
    "plan_again",
    "plan_batch",
    "undecided",
    "write_plan",
    "write_units",
]
