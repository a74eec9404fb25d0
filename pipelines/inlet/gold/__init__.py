"""Gold folds changes into tables, by dbt. What other layers ask of it."""

from inlet.gold.build import STEPS, enter, pending, run, steps, verify
from inlet.gold.progress import lagging

__all__ = ["STEPS", "enter", "lagging", "pending", "run", "steps", "verify"]
