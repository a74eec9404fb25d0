"""Publish moves the public views of all tables together. What other layers ask of it."""

from inlet.publish.point import PUBLISHED, Point, newest
from inlet.publish.publish import pending, run, show

__all__ = ["PUBLISHED", "Point", "newest", "pending", "run", "show"]
