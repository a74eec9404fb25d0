"""Silver decodes units into changes and rejects. What other layers ask of it."""

from inlet.silver.decode import check_ledger, pending, run
from inlet.silver.parts import waiting

__all__ = ["check_ledger", "pending", "run", "waiting"]
