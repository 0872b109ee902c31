"""Whole layers of transformers against the interpreter and the simulated block kernels.

The example does the comparison, at real sizes when it is run without arguments; here the layers are
small. Every kernel must stay within 1e-5 in fp32 and 2.5e-2 as declared, prompt and steps.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import pytest

from examples import whole_layer

pytestmark = pytest.mark.oracle
KERNELS = {
    "Qwen3-Next": ("qwen3next_block_prefill", "qwen3next_block_tkg"),
    "Qwen3.5": ("gdn_block_prefill", "gdn_block_tkg"),
    "Kimi-Linear": ("kda_block_prefill", "kda_block_tkg"),
}
"""What takes the prompt, and what the steps."""


Page = Callable[..., tuple[int, str]]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Page:
    """Run the example with words of its command line: its exit code, and what it printed."""
    pytest.importorskip("torch")
    if find_spec("transformers") is None:
        pytest.skip("transformers is not installed")

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["whole_layer", *words])
        return whole_layer.main(), capsys.readouterr().out

    return run


def test_layers_agree_on_two_cores(page: Page) -> None:
    code, printed = page("--small", "--prompt", "9", "--steps", "3", "--lnc", "2")
    assert code == 0, printed
    pages = printed.split("\n\n")[1:-1]
    for (layer, (prefill, decode)), found in zip(KERNELS.items(), pages, strict=True):
        assert found.startswith(f"{layer}: ")
        for precision in ("fp32", "declared"):
            for by in ("interpreter", "simulated, LNC 2"):
                assert f"| {prefill} | 9 | {by} | {precision} |" in found
                assert f"| {decode} | 3 | {by} | {precision} |" in found
        assert found.count("| ok |") == 8


def test_a_bound_that_does_not_hold_is_said_and_is_the_exit_code(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(whole_layer.BOUNDS, "declared", 1e-6)
    code, printed = page("--small", "--layers", "qwen3_5", "--prompt", "3", "--steps", "1")
    assert code == 1, printed
    assert printed.count("| 1.0e-06 | TOO FAR |") == 4
    assert printed.count("| 1.0e-05 | ok |") == 4
    assert printed.endswith("A BOUND DOES NOT HOLD\n")
