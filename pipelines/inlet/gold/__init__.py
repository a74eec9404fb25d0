"""Gold folds changes into tables, by dbt. What other layers ask of it."""

from inlet.gold.build import STEPS, pending, run, steps, verify
from inlet.gold.progress import behind

__all__ = ["STEPS", "behind", "pending", "run", "steps", "verify"]
