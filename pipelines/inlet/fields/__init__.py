"""Fields: bytes -> values. Each function is a readable spec; interpreter.py is the same, compiled, and tested equal.

Nothing here knows a vendor or Spark, opens a file or reads a clock.
"""
