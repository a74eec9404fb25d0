"""Checks ask each step whether today's data is right. What other layers ask of them."""

from inlet.checks.checks import check
from inlet.checks.owed import unchecked
from inlet.checks.results import RESULTS, CheckResult, next_moment

__all__ = ["RESULTS", "CheckResult", "check", "next_moment", "unchecked"]
