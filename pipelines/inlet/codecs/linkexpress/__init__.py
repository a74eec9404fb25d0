"""Fujitsu Linkexpress."""
