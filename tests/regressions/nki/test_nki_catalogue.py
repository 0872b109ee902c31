"""Every case that names the kernel column of the list is a test of an emitted kernel, or has a
reason; and every kind that can occur in one decode step has such a test."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
FOLDERS = (HERE, HERE.parent / "nki_window")
"""Recurrences, and the short convolution."""

TRIED_ON_KERNELS = """
    B01 B02 B04 B07 B08 B09 B12 B14 B15 B21 B22 B24 B28 B30 B31 B32 B35 B37 B38 B39 B40 B41 B45 B48
    B49 B50 B51 B53 B54 B56 B58 B62 B63 B69 B71 B73
"""
KERNEL_CASES = frozenset(TRIED_ON_KERNELS.split())
"""Cases with N in their Try column."""

REASONS: dict[str, str] = {}

DECODE_KINDS = {
    "softplus": "B14",
    "gate-form": "B12 B50",
    "norm": "B48 B51",
    "head-map": "B15",
    "state-dtype": "B21",
    "order": "B49 B54",
    "dtype": "B44 B53 B69",
    "api": "B44 B70 B76",
    "slots": "B22 B23 B24 B27 B28",
    "spec-decode": "B24 B30 B35",
    "padding": "B32 B39 B71",
    "stride": "B31 B45",
    "index-width": "B29 B55",
    "varlen": "B40",
    "race": "B62",
    "exp-mask": "B08 B09",
}
"""For each kind that can occur in decode, the cases that must be tests here."""


PREFILL_KINDS = {
    "inverse": "B01 B02 B04 B05",
    "exp-mask": "B07 B08 B09",
    "chunk-tail": "B07 B56 B58",
    "varlen": "B38 B40 B41",
    "order": "B49 B54",
    "layout": "B19",
    "head-map": "B15",
    "padding": "B32 B39",
    "stride": "B31",
    "race": "B62",
    "context-parallel": "B63",
    "slots": "B65 B72",
}
"""For each kind that can occur in a chunked kernel, the cases that must be tests of one."""


def cases_here(pattern: str = "test_*.py") -> set[str]:
    found: set[str] = set()
    for path in (path for folder in FOLDERS for path in folder.glob(pattern)):
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M):
            found |= {case.upper() for case in re.findall(r"_(b\d\d)(?=_|$)", name)}
    return found


def test_every_case_of_a_kernel_has_a_test_or_a_reason() -> None:
    assert sorted(KERNEL_CASES - cases_here() - set(REASONS)) == []
    assert sorted(set(REASONS) - KERNEL_CASES) == []


def test_every_kind_of_decode_has_its_cases() -> None:
    wanted = {case for cases in DECODE_KINDS.values() for case in cases.split()}
    assert sorted(wanted - cases_here()) == []


def test_every_kind_of_prefill_has_its_cases() -> None:
    wanted = {case for cases in PREFILL_KINDS.values() for case in cases.split()}
    assert sorted(wanted - cases_here("test_chunked*.py")) == []


def test_a_reason_is_given_only_where_there_is_no_test() -> None:
    assert sorted(set(REASONS) & cases_here()) == []
