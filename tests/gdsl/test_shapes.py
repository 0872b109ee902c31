"""Sizes of axes: names, text, mappings, composites, limits, and tensor shapes."""

import pytest

import gdsl
from gdsl.errors import UsageError
from gdsl.ir.dims import Atom, Packed, Product, Unit
from gdsl.shapes import dim_axes, empty_axes, parse_sizes, resolve_sizes, tensor_shape

TEXT = """\
use delta_rule
kernel small:
    axes B, Hk, G, T <= 16, Hid % 128 == 0, K, V, Hv = (Hk G)
    input k: f32[B, Hk, T, K]
    input v: f32[B, Hv, T, V]
    input beta: f32[B, Hv, T] in [0, 1]
    input w: f32[Hid, K]
    state S: f32[B, Hv, K, V] = s0
    o, S = scan[T] delta(k, k + sum[Hid](w), v, beta, S)
    output o1: f32[B, Hv, T, V] = o
    output s1: f32[B, Hv, K, V] = S
shapes small:
    tiny = {B: 1, Hk: 1, G: 2, T: 3, Hid: 128, K: 4, V: 8}
"""


@pytest.fixture(scope="module")
def small() -> gdsl.Definition:
    return gdsl.loads(TEXT)


def sizes(small: gdsl.Definition, wanted: object) -> dict[str, int]:
    return resolve_sizes(small.kernel, small.shapes, wanted)  # type: ignore[arg-type]


TINY = {"B": 1, "Hk": 1, "G": 2, "T": 3, "Hid": 128, "K": 4, "V": 8}


def test_a_name_a_text_a_mapping_and_the_first_named_agree(small: gdsl.Definition) -> None:
    text = ",".join(f"{axis}={size}" for axis, size in TINY.items())
    for wanted in (None, "tiny", text, TINY):
        assert sizes(small, wanted) == TINY


def test_a_composite_axis_gives_its_open_part(small: gdsl.Definition) -> None:
    assert sizes(small, "B=1,Hk=2,Hv=6,T=3,Hid=128,K=4,V=8")["G"] == 3


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("tinny", "did you mean `tiny`"),
        ("B=1", r"axis `Hk` of kernel `small` has no size; add `Hk=\.\.\.`, `G=\.\.\.`"),
        ("B=1,B=2", "two sizes, 1 and 2"),
        ("B=x", "is not a size"),
        ("B=-1", "is not a size"),
        ("B=1,", "is not a size"),
        ("B=99999999999", "the limit is"),
        ({**TINY, "Q": 1}, "no axis `Q`"),
        ({**TINY, "T": 17}, "declares `T <= 16`, got 17"),
        ({**TINY, "Hid": 100}, "declares `Hid % 128 == 0`, got 100"),
        ({**TINY, "Hv": 5}, "`Hv=5` is not"),
        ("B=1,Hv=6,T=3,Hid=128,K=4,V=8", r"composite axis \(Hk G\); give its parts"),
    ],
)
def test_what_is_wrong_is_said(small: gdsl.Definition, wanted: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sizes(small, wanted)


def test_parse_sizes_ignores_blanks() -> None:
    assert parse_sizes(" A = 1 , B=2") == {"A": 1, "B": 2}


def test_shapes_of_dimensions() -> None:
    packed = Packed("C", (("q", Product((Atom("H"), Atom("K")))), ("v", Atom("V"))))
    dims = (Unit(), Atom("B"), Product((Atom("H"), Atom("K"))), packed)
    assert tensor_shape(dims, {"B": 2, "H": 3, "K": 5, "V": 7}) == (1, 2, 15, 22)
    assert dim_axes(packed) == ("H", "K", "V")


def test_the_axis_of_checkpoints_follows_from_the_tokens() -> None:
    kernel = gdsl.load("gdn_cte_varlen").kernel
    sizes = {"B": 1, "Hk": 1, "G": 1, "T": 300, "K": 4, "V": 4}
    assert resolve_sizes(kernel, (), sizes)["P"] == 2
    with pytest.raises(UsageError, match="counts checkpoints, here 2 and not 3; leave it out"):
        resolve_sizes(kernel, (), {**sizes, "P": 3})
    short = resolve_sizes(kernel, (), {**sizes, "T": 20})
    assert short["P"] == 0
    assert empty_axes(kernel, short) == ()
    assert empty_axes(kernel, {**short, "T": 0}) == ("T",)
