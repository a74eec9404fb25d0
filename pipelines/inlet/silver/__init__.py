"""Silver decodes units into changes and rejects. What other layers ask of it."""

from inlet.silver.decode import check_ledger, pending, run

__all__ = ["check_ledger", "pending", "run"]
