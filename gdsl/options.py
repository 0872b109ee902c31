"""Every environment variable that gdsl reads. An argument beats a variable."""

from __future__ import annotations

import os
from collections.abc import Mapping

from attrs import frozen


@frozen
class Variable:
    """A variable and what it does."""

    name: str
    doc: str

    @property
    def value(self) -> str:
        """What the environment says now; "" when it is not set."""
        return os.environ.get(self.name, "")


DEBUG = Variable("GDSL_DEBUG", "1 prints the traceback of an internal error")
TARGET = Variable("NEURON_PLATFORM_TARGET_OVERRIDE", "default of `-t`: trn2 or gen3, trn3 or gen4")
NO_COLOR = Variable("NO_COLOR", "anything: no colour")
FORCE_COLOR = Variable("FORCE_COLOR", "anything: colour also into a pipe")
CACHE_DIR = Variable("GDSL_CACHE_DIR", "folder of the parser's tables (default: ~/.cache/gdsl)")
VARIABLES: tuple[Variable, ...] = (DEBUG, TARGET, CACHE_DIR, NO_COLOR, FORCE_COLOR)

TARGETS: tuple[str, ...] = ("trn2", "trn3")
DEFAULT_TARGET = "trn2"
# The vendor's own names for the same machines.
_SYNONYMS: Mapping[str, str] = {"gen3": "trn2", "gen4": "trn3"}


def default_target() -> str:
    """Return the target that `-t` defaults to; an unknown value is returned as it is."""
    name = TARGET.value or DEFAULT_TARGET
    return _SYNONYMS.get(name, name)
