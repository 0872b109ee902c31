"""Syntax tree -> typed recurrence: names, axes, dtypes, order; all user errors about meaning.

The one entry is `gdsl.semantics.elaborate.elaborate`. Nothing here knows the canonical form, an
algorithm or a machine.
"""
