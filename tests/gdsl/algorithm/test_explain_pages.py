"""The pages of E04 and E05 codes: the failing program fails so, the repaired one compiles."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from gdsl.algorithm.choose import choose
from gdsl.canonical.canonicalize import canonicalize
from gdsl.errors import CompileError
from gdsl.semantics.elaborate import elaborate
from gdsl.source import Source
from gdsl.syntax.parse import parse

CODES = (
    [f"E04{n:02}" for n in range(1, 7)]
    + ["E0501", "E0502", "E0503"]
    + [f"E05{n}" for n in range(11, 17)]
)


def plan(text: str) -> None:
    """Plan the kernel of a block, with the `--set` of the command its first line may hold."""
    module, _ = elaborate(parse(Source("page.gdn", text)), lambda name: None)
    (kernel,) = module.kernels
    settings = dict(re.findall(r"^# gdsl check \S+ --set (\w+)=(\w+)", text))
    choose(canonicalize(kernel), settings, next(iter(module.schedules), None))


@pytest.mark.parametrize("code", CODES)
def test_the_page(code: str) -> None:
    page = (resources.files("gdsl.diagnostics") / "explain" / f"{code}.md").read_text()
    failing, repaired = re.findall(r"```gdn\n(.*?)```", page, re.DOTALL)
    with pytest.raises(CompileError) as caught:
        plan(failing)
    assert code in {diagnostic.code for diagnostic in caught.value.diagnostics}
    plan(repaired)
