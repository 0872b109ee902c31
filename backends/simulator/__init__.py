"""A numpy machine that runs NKI source text, anybody's, and refuses what the hardware would.

Strict and independent of the compiler: it imports only `backends.isa` and gdsl's error types.
`RUNNER` is the backend; the machinery is imported when it is used.
"""

from backends.simulator.runner import RUNNER

__all__ = ["RUNNER"]
