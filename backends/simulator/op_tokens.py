"""The operator tokens of `nki.language`: one object per name."""

from __future__ import annotations

from backends.isa.activations import ACTIVATIONS
from backends.isa.operators import OPERATOR_ALIASES, OPERATORS
from backends.isa.operators import TOKENS as PURE_TOKENS
from backends.simulator.tokens import OpToken

TOKENS: dict[str, OpToken] = {
    name: OpToken(name) for name in (*OPERATORS, *OPERATOR_ALIASES, *PURE_TOKENS, *ACTIVATIONS)
}
