"""Sizes from shapes: every kind of step, every contradiction, on kernels made by hand."""

from __future__ import annotations

import pytest

from gdsl.ir.dims import Atom, Axis, Dim, Packed, Product, Unit
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Call, Input, Kernel, Param
from gdsl.ir.node import Symbol
from gdsl.ir.size_plan import size_plan
from gdsl.ir.sizes import SizeError, solve_sizes
from gdsl.ir.types import Type


def dim(text: str) -> Dim:
    """`K`, `1` or `(Hk G)`."""
    names = text.strip("()").split()
    if len(names) > 1:
        return Product(tuple(Atom(name) for name in names))
    return Unit() if text == "1" else Atom(text)


def kernel(
    axes: list[Axis | str],
    tensors: dict[str, list[str]],
    packed: dict[str, list[str]] | None = None,
    params: tuple[str, ...] = (),
) -> Kernel:
    fields = {
        name: Packed(name, tuple((f"f{i}", dim(part)) for i, part in enumerate(parts)))
        for name, parts in (packed or {}).items()
    }
    inputs = tuple(
        Input(
            Symbol(name, i),
            name,
            Dtype.F32,
            tuple(fields.get(d) or dim(d) for d in dims),
            Type(),
        )
        for i, (name, dims) in enumerate(tensors.items())
    )
    return Kernel(
        "k",
        "",
        tuple(Axis(a) if isinstance(a, str) else a for a in axes),
        (),
        tuple(fields.values()),
        (),
        inputs,
        tuple(Param(Symbol(p, 99), p, "int", 1, Type()) for p in params),
        (),
        (),
        (),
        (),
        Call((), ()),
    )


def solve(
    k: Kernel, params: dict[str, int] | None = None, /, **shapes: tuple[int, ...]
) -> dict[str, int]:
    return solve_sizes(size_plan(k, shapes), shapes, params or {})


def test_batch_from_a_product_and_a_known_head_count() -> None:
    k = kernel(["B", "Hv", "K"], {"q": ["(B Hv)", "K"], "A_log": ["Hv"]})
    assert solve(k, q=(64, 128), A_log=(32,)) == {"B": 2, "Hv": 32, "K": 128}


def test_known_product_divides_a_longer_one() -> None:
    k = kernel(["B", "Hk", "G"], {"v": ["(B Hk G)"], "a": ["(Hk G)"], "q": ["B", "Hk"]})
    assert solve(k, v=(48,), a=(12,), q=(4, 3)) == {"B": 4, "Hk": 3, "G": 4}


def test_packed_axis_gives_one_unknown_monomial() -> None:
    """2 Hk K + Hk G V = conv_dim with Hk G and V known, then Hk from K (Qwen3-Next)."""
    k = kernel(
        ["Hk", "G", "K", "V"],
        {"w": ["C"], "A_log": ["(Hk G)"], "state": ["(Hk G)", "K", "V"]},
        packed={"C": ["(Hk K)", "(Hk K)", "(Hk G V)"]},
    )
    sizes = solve(k, w=(8192,), A_log=(32,), state=(32, 128, 128))
    assert sizes == {"Hk": 16, "G": 2, "K": 128, "V": 128}


def test_packed_axis_inside_a_product() -> None:
    k = kernel(
        ["Hk", "G", "K"],
        {"ba": ["(Hk R)"], "A": ["(Hk G)"], "k": ["Hk"], "s": ["K"]},
        {"R": ["G", "G"]},
    )
    assert solve(k, ba=(16,), A=(8,), k=(2,), s=(5,)) == {"Hk": 2, "G": 4, "K": 5}


def test_two_equations_with_two_unknown_monomials_are_combined() -> None:
    k = kernel(
        ["K", "V"],
        {"conv": ["C"], "proj": ["D"]},
        packed={"C": ["K", "K", "V"], "D": ["K", "K", "V", "V"]},
    )
    assert solve(k, conv=(20,), proj=(28,)) == {"K": 6, "V": 8}


def test_parameter_of_the_axis_name_closes_an_open_size() -> None:
    tensors = {"v": ["(Hk G)"]}
    assert size_plan(kernel(["Hk", "G"], tensors)).open == ("Hk", "G")
    k = kernel(["Hk", "G"], tensors, params=("G",))
    assert size_plan(k).open == ()
    assert solve(k, {"G": 3}, v=(12,)) == {"Hk": 4, "G": 3}


def test_no_tokens_and_empty_batch() -> None:
    k = kernel(["B", "Hv", "T"], {"q": ["(B Hv)", "T"], "A": ["Hv"]})
    assert solve(k, q=(0, 0), A=(4,)) == {"B": 0, "Hv": 4, "T": 0}


@pytest.mark.parametrize(
    ("k", "params", "shapes", "message"),
    [
        (
            kernel(["K", "V"], {"q": ["K"], "k": ["K", "V"]}),
            {},
            {"q": (8,), "k": (9, 4)},
            "dimension 0 of `k` is 9, but `K` is 8: K = 8 from `q`",
        ),
        (
            kernel(["B", "H"], {"q": ["(B H)"], "A": ["H"]}),
            {},
            {"q": (65,), "A": (32,)},
            "dimension 0 of `q` (65) leaves no whole size for `B`: 65 / 32",
        ),
        (
            kernel(["K"], {"q": ["K", "1"]}),
            {},
            {"q": (4, 2)},
            "dimension 1 of `q` is 2, but 1 is declared",
        ),
        (
            kernel(["K"], {"q": ["K"]}),
            {},
            {"q": (4, 2)},
            "`q` has 2 dimensions, (4, 2), but [K] is declared",
        ),
        (
            kernel(["H", "G"], {"q": ["(H G)"]}),
            {},
            {"q": (4,)},
            "the shapes do not determine the size of axis `H`; add `param H: int` to kernel `k`",
        ),
        (
            kernel(["H"], {"q": ["H"]}, params=("H",)),
            {"H": 3},
            {"q": (4,)},
            "parameter `H` is 3, but `q` makes axis `H` 4",
        ),
        (
            kernel([Axis("T", at_most=16)], {"q": ["T"]}),
            {},
            {"q": (17,)},
            "axis `T` is 17 (from `q`), but `T <= 16` is declared",
        ),
        (
            kernel([Axis("Hid", multiple_of=128)], {"x": ["Hid"]}),
            {},
            {"x": (100,)},
            "axis `Hid` is 100 (from `x`), but `Hid % 128 == 0` is declared",
        ),
    ],
)
def test_contradictions_name_what_disagrees(
    k: Kernel, params: dict[str, int], shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    with pytest.raises(SizeError) as error:
        solve(k, params, **shapes)
    assert str(error.value) == message
