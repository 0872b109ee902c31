"""Mistakes that people make, and what to type instead: a table read by the syntax messages."""

from __future__ import annotations

import re

from gdsl.suggest import nearest
from gdsl.syntax.words import words

_NO_CONTROL_FLOW = (
    "there is no control flow; choose between values with `where(condition, a, b)`, "
    "repeat over tokens with `scan[T] rule(...)`"
)

# (what stands before on the line, what was found, what to do); two regular expressions and a text.
_HINTS: tuple[tuple[str, str, str], ...] = (
    (r"\b(if|for|while|return|else|elif)$", r".*", _NO_CONTROL_FLOW),
    (r"^$", r"if|for|while|return|else|elif", _NO_CONTROL_FLOW),
    (r"\b(let|var|const|def)$", r".*", "an assignment is written `name = expression`"),
    (r"\b(sum|mean)$", r"\(", "name the axes: `sum[K](x)`"),
    (r"\bindex$", r"\(", "name the axis: `index[H]()`"),
    (r"\bshift$", r"\(", "name the axis: `shift[W](window, x)`"),
    (r"\bunpack$", r"\(", "name the axis: `unpack[C](x)`"),
    (r"\brename$", r"\(", "name both axes: `rename[K -> J](x)`"),
    (r":\s*\w+$", r"\(", "dimensions stand in square brackets: `f32[B, K]`"),
    (
        r"\b(exp|log|sigmoid|softplus|tanh|sqrt|rsqrt|abs|where)$",
        r"\[",
        "this works on each element and takes no axes",
    ),
    (r"^\w+$", r"[-+*/]", "a state is rebound in full: `S = S + x`"),
    (
        r"\b(step|scan)\b.*\)$",
        r"[-+*/]",
        "a run is a line of its own; calculate with its results in the next line",
    ),
    (r"\bscan$", r"\w+", "name the axis of the tokens: `scan[T] rule(...)`"),
    (r"\bcall$", r"\w+", "the arguments stand in brackets: `call (q, k, v) -> out`"),
    (
        r"^state\b[^=]*$",
        r"",
        "say where the state starts: `= state_in`, or `= state_in or zeros` if it may be missing",
    ),
    (r"^param\s+\w+$", r"=", "give its kind: `param scale: float = 1.0`"),
    (r"^rule\s+\w+$", r"\(", "a rule names its axes: `rule delta[K, V](...)`"),
    (r"^(kernel|rule|schedule|shapes)\b.*$", r"", "end the line that opens a block with `:`"),
    (
        r"(<=|>=|<|>|==|!=)",
        r"<=|>=|<|>|==|!=",
        "comparisons do not chain; state one at a time: `assume x >= 0`, then `assume x <= 1`",
    ),
    (r"^axes\b.*\w$", r"\w+", "separate axes by commas; `Hv = (Hk G)` makes one of two"),
    (r"\w\[$", r"\d+", "no element is picked by its number; reduce over an axis: `sum[K](x)`"),
)


def hint(before: str, found: str) -> str | None:
    """Return what to type instead, given the text before a token and the token itself."""
    line = before[before.rfind("\n") + 1 :].strip()
    if not line and found in words("_declaration"):
        return "this starts at the left margin, outside of any block"
    if not line and found in words("_kernel_item"):
        return "this belongs in the indented block of a `kernel NAME:`"
    for stands, then, text in _HINTS:
        if re.search(stands, line) and re.fullmatch(then, found.strip()):
            return text
    # `ouput out: ...` is found at `out`, `kernl k:` at its first word.
    word = line if re.fullmatch(r"\w+", line) else "" if line else found
    meant = nearest(word, words("_kernel_item") | words("_declaration"))
    return None if meant is None else f"did you mean `{meant}`?"
