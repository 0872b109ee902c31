"""Every case of the list of public bugs is a test here, a test elsewhere, or has a reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parent

LANGUAGE_OR_INTERPRETER = """
    B01 B02 B04 B05 B08 B09 B12 B14 B15 B18 B19 B21 B23 B27 B29 B30 B37 B38 B39 B40 B42 B48 B49 B50
    B51 B53 B54 B55 B59 B61 B62 B63 B64 B65 B68 B70 B72 B73 B76
"""
KERNEL_OR_HARNESS = "B07 B22 B24 B25 B28 B31 B32 B35 B36 B41 B44 B45 B56 B58 B69 B71"
# Those of the first list a text or the interpreter can get right or wrong. Those of the second are
# about emitted kernels, host wrappers and pools; here they are tested where a value allows it.
HERE_CASES = frozenset(LANGUAGE_OR_INTERPRETER.split())
ALL_CASES = HERE_CASES | frozenset(KERNEL_OR_HARNESS.split())

REASONS = {
    "B29": (
        "a text and the interpreter address elements by axis, never by a flat offset, so there is "
        "no 32-bit product to overflow; emitted kernels: nki/test_slots.py"
    ),
    "B59": (
        "there is neither a packed token axis with cu_seqlens nor an attention mask in the "
        "language: a sequence is a row with its valid_len, so two descriptions cannot disagree, "
        "and an argument the kernel does not declare is refused (test_b61)"
    ),
    "B68": "no backward pass is in scope; nothing recomputes a forward value",
}


def cases_of(paths: Iterable[Path]) -> set[str]:
    """Return the cases that names of tests in these files mention."""
    found: set[str] = set()
    for path in paths:
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M):
            found |= {case.upper() for case in re.findall(r"_(b\d\d)(?=_|$)", name)}
    return found


def test_every_case_has_a_test_or_a_reason() -> None:
    assert sorted(HERE_CASES - cases_of(HERE.glob("test_*.py")) - set(REASONS)) == []


def test_no_test_names_an_unknown_case() -> None:
    assert sorted(cases_of(TESTS.rglob("test_*.py")) - ALL_CASES) == []


def test_a_reason_is_given_only_where_there_is_no_test() -> None:
    assert sorted(set(REASONS) & cases_of(HERE.glob("test_*.py"))) == []
