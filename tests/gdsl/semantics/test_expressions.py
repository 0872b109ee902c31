"""Types of expressions: axes by name, f32 unless cast, ranges from the operators."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Apply, Cast, Const, Index, Reduce, Ref, Rename, Shift, Size, Unpack
from gdsl.ir.kernel import Kernel, Let
from gdsl.ir.types import Interval

Make = Callable[[str], Kernel]

HEAD = (
    "use norms, gates\n"
    "kernel k:\n"
    "    axes T <= 8, B, H, K, J, W, C = a:K | b:(H K)\n"
    "    input x: bf16[B, H, K] in [-2, 3]\n"
    "    input y: f32[H, B]\n"
    "    input flag: bool[B]\n"
    "    input win: f32[B, W]\n"
    "    input c: bf16[C, B]\n"
    "    input t: f32[T, J]\n"
)
TAIL = (
    "    output used: f32[T, J, H, B, K, W] = t + y + x + win + where(flag, 0, 1)\n"
    "    output packed: bf16[B, C] = c\n"
)


def value(make: Make, text: str) -> Let:
    kernel = make(f"{HEAD}    v = {text}\n{TAIL}    output v: f32[{_axes(text)}] = v\n")
    found = [s for s in kernel.body if isinstance(s, Let) and s.target.name == "v"]
    return found[-1]


AXES = {
    "x * y": "B, H, K",
    "sum[K](x)": "B, H",
    "mean[H, K](x)": "B",
    "max[K](x) + min(y, 0)": "B, H",
    "x * x": "B, H, K",
    "sum[K](x * x)": "B, H",
    "-x": "B, H, K",
    "bf16(y)": "B, H",
    "index[T]()": "T",
    "K ** -0.5": "",
    "T * index[K]()": "K",
    "sigmoid(y)": "B, H",
    "exp(-softplus(y))": "B, H",
    "where(flag, x, y)": "B, H, K",
    "rename[K -> J](x)": "B, H, J",
    "shift[W](win, 1)": "B, W",
    "1 - 2 ** (-5 - index[H]())": "H",
    "l2norm[K](x)": "B, H, K",
    "abs(x)": "B, H, K",
    "C + 0": "",
}


def _axes(text: str) -> str:
    return AXES[text]


@pytest.mark.parametrize("text", sorted(AXES))
def test_axes_in_the_order_of_the_text(kernel: Make, text: str) -> None:
    declared = ["T", "B", "H", "K", "J", "W", "C"]
    let = value(kernel, text)
    wanted = [axis for axis in declared if axis in _axes(text).split(", ")]
    assert list(let.value.type.axes) == wanted


@pytest.mark.parametrize(
    ("text", "lo", "hi"),
    [
        ("x * x", 0, 9),
        ("-x", -3, 2),
        ("abs(x)", 0, 3),
        ("sigmoid(y)", 0, 1),
        ("exp(-softplus(y))", 0, 1),
        ("index[T]()", 0, 7),
        ("max[K](x) + min(y, 0)", float("-inf"), 3),
    ],
)
def test_ranges(kernel: Make, text: str, lo: float, hi: float) -> None:
    known = value(kernel, text).value.type.range
    assert (known.lo, known.hi) == (lo, hi)


def test_a_square_is_never_negative_inside_a_sum(kernel: Make) -> None:
    assert value(kernel, "sum[K](x * x)").value.type.range.lo == 0


def test_node_kinds(kernel: Make) -> None:
    kinds = {
        "x * y": Apply,
        "sum[K](x)": Reduce,
        "index[T]()": Index,
        "bf16(y)": Cast,
        "rename[K -> J](x)": Rename,
        "shift[W](win, 1)": Shift,
    }
    for text, kind in kinds.items():
        assert isinstance(value(kernel, text).value, kind)


def test_sizes_are_numbers(kernel: Make) -> None:
    power = value(kernel, "K ** -0.5").value
    assert isinstance(power, Apply)
    size, exponent = power.args
    assert isinstance(size, Size)
    assert size.axis == "K"
    assert isinstance(exponent, Const)
    assert exponent.value == -0.5


def test_the_size_of_a_packed_axis_is_the_sum_of_its_fields(kernel: Make) -> None:
    total = value(kernel, "C + 0").value
    assert isinstance(total, Apply)
    fields = total.args[0]
    assert isinstance(fields, Apply)
    assert fields.operator == "add"
    assert [type(arg) for arg in fields.args] == [Size, Apply]


def test_computed_values_are_f32_and_casts_round(kernel: Make) -> None:
    assert value(kernel, "x * x").value.type.dtype is Dtype.F32
    cast = value(kernel, "bf16(y)").value
    assert cast.type.dtype is Dtype.BF16
    assert value(kernel, "abs(x)").value.type.dtype is Dtype.F32


def test_unpack_gives_one_value_for_each_field(kernel: Make) -> None:
    made = kernel(
        f"{HEAD}    a, b = unpack[C](2 * c)\n{TAIL}"
        "    output a: f32[B, K] = a\n    output b: f32[B, H, K] = b\n"
    )
    shared, a, b = made.body
    assert isinstance(shared, Let)
    assert isinstance(a, Let)
    assert isinstance(b, Let)
    assert isinstance(a.value, Unpack)
    assert isinstance(b.value, Unpack)
    assert a.value.arg == b.value.arg == Ref(shared.target, shared.value.type)
    assert (a.value.field, a.value.type.axes) == ("a", ("B", "K"))
    assert (b.value.field, b.value.type.axes) == ("b", ("B", "H", "K"))


def test_spans_point_at_the_use(kernel: Make) -> None:
    let = value(kernel, "x * y")
    assert isinstance(let.value, Apply)
    assert let.value.span is not None
    assert let.value.span.text == "x * y"
    assert [arg.span.text for arg in let.value.args if arg.span] == ["x", "y"]


def test_declared_ranges_are_kept(kernel: Make) -> None:
    made = kernel(
        "kernel k:\n    axes B\n    input x: f32[B] in (-inf, 0]\n    input n: i32[B] or B\n"
        "    param eps: float = 1e-5 in (0, 1]\n    output y: f32[B] = x * n * eps\n"
    )
    x, n = made.inputs
    assert x.range == x.type.range == Interval(float("-inf"), 0.0, True, False)
    assert n.default == "B"
    assert made.params[0].type.range == Interval(0.0, 1.0, True, False)
