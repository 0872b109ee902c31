"""The instructions of `nki.isa`: rules from `backends.isa`, one compute function each.

`issue` executes one call. What a call must obey is in the `*_rules.py` modules, driven by the rows
of `backends.isa.instructions`; what it computes is in the module of its family.
"""

from backends.isa.instructions import INSTRUCTIONS
from backends.simulator.instructions.enums import ENGINE_ALIASES, ENUMS
from backends.simulator.instructions.functions import NOT_SIMULATED
from backends.simulator.instructions.issue import issue

INSTRUCTION_NAMES: tuple[str, ...] = tuple(INSTRUCTIONS)

__all__ = ["ENGINE_ALIASES", "ENUMS", "INSTRUCTION_NAMES", "NOT_SIMULATED", "issue"]
