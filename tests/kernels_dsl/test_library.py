"""The kernel library as text: it elaborates without a warning, and its table is complete."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from gdsl.ir.kernel import Kernel, Module
from gdsl.semantics.elaborate import elaborate
from gdsl.source import Source
from gdsl.syntax.parse import parse

LIBRARY = Path(str(files("kernels_dsl")))
FILES = sorted(LIBRARY.glob("*.gdn"))


def load(name: str) -> Source | None:
    path = LIBRARY / f"{name}.gdn"
    return Source(path.name, path.read_text(encoding="utf-8")) if path.is_file() else None


@cache
def module(path: Path) -> Module:
    made, warnings = elaborate(parse(Source(path.name, path.read_text(encoding="utf-8"))), load)
    assert warnings == ()
    return made


def kernels() -> dict[str, Kernel]:
    return {kernel.name: kernel for path in FILES for kernel in module(path).kernels}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_opens_with_what_it_is(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith(('"""', "# "))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_kernels_elaborate_and_have_docs_and_shapes(path: Path) -> None:
    made = module(path)
    named = dict(made.shapes)
    for kernel in made.kernels:
        assert kernel.doc
        if path.stem != "family":
            assert named[kernel.name]


def test_table_lists_every_kernel_once() -> None:
    text = (LIBRARY / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert sorted(rows) == sorted(kernels())


def test_table_lists_every_rule_and_function() -> None:
    text = (LIBRARY / "README.md").read_text(encoding="utf-8")
    for stem in ("delta_rule", "gates", "norms", "conv"):
        source = (LIBRARY / f"{stem}.gdn").read_text(encoding="utf-8")
        declared = re.findall(r"^(?:rule|fn) (\w+)", source, re.MULTILINE)
        (row,) = re.findall(rf"^\| `{stem}\.gdn` \| (.*) \|$", text, re.MULTILINE)
        assert re.findall(r"`(\w+)`", row) == declared


# Contracts that callers rely on: argument order, then return order.
CONTRACTS = {
    "gdn_tkg": "q k v b a A_log dt_bias z norm_weight state_in -> out state_out",
    "gdn_cte": "query key value g_log beta scale algorithm mask_pack group_size recurrent_state"
    " -> out recurrent_state",
    "kda_tkg": "q k v g beta a_log dt_bias out S scale lower_bound -> out S",
    "gdn_block_tkg": "hidden W_in_qkv W_in_z W_in_a W_in_b conv_weight conv_state A_log dt_bias"
    " norm_weight recurrent_state -> core_out conv_out state_out",
    "gdn_block_tkg_fp8": "hidden W_in_qkv W_scale_qkv W_in_z W_scale_z W_in_a W_in_b conv_weight"
    " conv_state A_log dt_bias norm_weight recurrent_state -> core_out conv_out state_out",
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_contract(name: str) -> None:
    call = kernels()[name].call
    arguments = " ".join(argument.name for argument in call.arguments)
    assert f"{arguments} -> {' '.join(call.returns)}" == CONTRACTS[name]
