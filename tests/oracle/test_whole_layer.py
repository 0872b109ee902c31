"""Whole layers of transformers against the interpreter and the simulated block kernels.

The example does the comparison, at real sizes when it is run without arguments; here the layers are
small. Every kernel must stay within 1e-5 in fp32 and 2.5e-2 as declared, prompt and steps.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.oracle
ROOT = Path(__file__).parents[2]
KERNELS = {
    "Qwen3-Next": ("qwen3next_block_prefill", "qwen3next_block_tkg"),
    "Qwen3.5": ("gdn_block_prefill", "gdn_block_tkg"),
    "Kimi-Linear": ("kda_block_prefill", "kda_block_tkg"),
}
"""What takes the prompt, and what the steps."""


@pytest.fixture
def transformers() -> None:
    pytest.importorskip("torch")
    if find_spec("transformers") is None:
        pytest.skip("transformers is not installed")


def _example(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import sys, examples.whole_layer as page; {code}", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_layers_agree_on_two_cores(transformers: None) -> None:
    words = ["--small", "--prompt", "9", "--steps", "3", "--lnc", "2"]
    done = _example("sys.exit(page.main())", *words)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    pages = done.stdout.split("\n\n")[1:-1]
    for (layer, (prefill, decode)), page in zip(KERNELS.items(), pages, strict=True):
        assert page.startswith(f"{layer}: ")
        for precision in ("fp32", "declared"):
            for by in ("interpreter", "simulated, LNC 2"):
                assert f"| {prefill} | 9 | {by} | {precision} |" in page
                assert f"| {decode} | 3 | {by} | {precision} |" in page
        assert page.count("| ok |") == 8


def test_a_bound_that_does_not_hold_is_said_and_is_the_exit_code(transformers: None) -> None:
    words = ["--small", "--layers", "qwen3_5", "--prompt", "3", "--steps", "1"]
    done = _example("page.BOUNDS['declared'] = 1e-6; sys.exit(page.main())", *words)
    assert done.returncode == 1, done.stderr[-4000:]
    assert done.stdout.count("| 1.0e-06 | TOO FAR |") == 4
    assert done.stdout.count("| 1.0e-05 | ok |") == 4
    assert done.stdout.endswith("A BOUND DOES NOT HOLD\n")
