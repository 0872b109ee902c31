"""gdsl: declare a delta-rule recurrence once, compile it to NKI, verify it in numpy."""

__version__ = "0.1.0"
