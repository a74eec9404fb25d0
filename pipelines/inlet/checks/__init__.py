"""Checks ask each step whether today's data is right. What other layers ask of them."""

from inlet.checks.checks import RESULTS, CheckResult, check
from inlet.checks.owed import unchecked

__all__ = ["RESULTS", "CheckResult", "check", "unchecked"]
