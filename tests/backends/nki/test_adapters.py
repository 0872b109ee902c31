"""The drop-in package: the vendor's signatures, called as the vendor's kernels are."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from backends.nki.adapters import VENDOR_KERNELS, drop_in
from backends.simulator import RUNNER
from gdsl import api
from gdsl.regimes.typed import random_arguments
from gdsl.shapes import resolve_sizes

SHAPES = {"gdn_tkg": {"B": 2, "Hv": 3, "K": 8, "V": 4}, "kda_tkg": {"B": 1, "H": 3, "K": 8, "V": 4}}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    programs = {name: api.compile(api.load(name), target="trn2").nki for name in VENDOR_KERNELS}
    folder = tmp_path_factory.mktemp("drop") / "fused"
    folder.mkdir()
    for name, text in drop_in(programs).files.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("kernel", VENDOR_KERNELS)
def test_signature_is_the_vendors(package: Path, kernel: str) -> None:
    tree = ast.parse((package / f"{kernel}_kernel.py").read_text())
    (entry,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == kernel)
    assert tuple(a.arg for a in entry.args.args) == VENDOR_KERNELS[kernel]
    assert not entry.args.defaults
    assert not entry.args.kwonlyargs


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("kernel", VENDOR_KERNELS)
def test_called_by_position(package: Path, kernel: str, lnc: int) -> None:
    definition = api.load(kernel)
    sizes = resolve_sizes(definition.kernel, (), SHAPES[kernel])
    given = random_arguments(definition.kernel, sizes, 0)
    given["out"] = np.zeros((sizes["B"], sizes.get("H", 1), sizes["V"]), np.float32)
    values = tuple(np.array(given[name]) for name in VENDOR_KERNELS[kernel])
    result = RUNNER.simulate(package / "__init__.py", kernel, values, lnc=lnc)
    assert len(result.outputs) == 2
    expected = api.run(definition, {n: given[n] for n in VENDOR_KERNELS[kernel] if n != "out"})
    state = next(name for name in expected if name != "out")
    np.testing.assert_allclose(result.outputs[1], expected[state], rtol=1e-4, atol=1e-4)
    if kernel == "kda_tkg":
        # In place and caller-allocated: the arguments themselves hold the results.
        np.testing.assert_array_equal(result.mutated["S"], result.outputs[1])
        np.testing.assert_array_equal(result.mutated["out"], result.outputs[0])


def test_a_kernel_with_other_arguments_is_no_replacement() -> None:
    grouped = api.compile(api.load("gdn_tkg_grouped"), target="trn2").nki
    with pytest.raises(ValueError, match="recurrent_state"):
        drop_in({"gdn_tkg": grouped})
