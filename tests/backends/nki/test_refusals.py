"""What the decode schedule does not emit is refused at its place in the text."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from gdsl import api
from gdsl.errors import CompileError

RULE = """
rule linear[K, V](q[K], k[K], v[V], decay[K?], state S[K, V]) -> o[V]:
    S = decay * S + k * v
    o = sum[K](q * S)
"""
KERNEL = """
kernel refused:
    axes B, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    input g: f32[B, H] in (-inf, 0]
    state S: f32[B, H, K, V] = s0
{body}
    output out: f32[B, H, V] = o
    output s1 = S
"""


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("    o, S = step linear(q / sum[H](exp(g)), k, v, exp(g), S)", "exp(g)"),
        ("    o, S = step linear(q * rename[H -> K](exp(g)), k, v, exp(g), S)", "rename[H -> K]"),
        ("    o, S = step linear(max[V](q * v * v), k, v, exp(g), S)", "q * v"),
    ],
)
def test_refused_with_the_place(body: str, place: str) -> None:
    definition = api.loads(RULE + KERNEL.format(body=body))
    with pytest.raises(CompileError) as caught:
        _ = api.compile(definition, target="trn2").text
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "E0521"
    assert diagnostic.span is not None
    assert place in diagnostic.span.text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("input v: f32", "input v: f8e4m3", "`v` is f8e4m3, but is no weight of a projection"),
        ("step linear(q, k", "step linear(f8e4m3(q), k", "rounding to f8e4m3 is not emitted"),
    ],
)
def test_eight_bits_are_for_weights(old: str, new: str, message: str) -> None:
    text = RULE + KERNEL.format(body="    o, S = step linear(q, k, v, exp(g), S)")
    assert "def refused(" in api.compile(api.loads(text), target="trn2").text
    with pytest.raises(CompileError, match=message):
        _ = api.compile(api.loads(text.replace(old, new)), target="trn2").text


def test_the_page_of_the_code() -> None:
    page = (resources.files("gdsl.diagnostics") / "explain" / "E0521.md").read_text()
    failing, repaired = re.findall(r"```gdn\n(.*?)```", page, re.DOTALL)
    with pytest.raises(CompileError) as caught:
        _ = api.compile(api.loads(failing), target="trn2").text
    assert {d.code for d in caught.value.diagnostics} == {"E0521"}
    assert "def retention(" in api.compile(api.loads(repaired), target="trn2").text


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gdn_tkg", "a core needs all value columns of its heads"),
        ("gdn_verify", "a core needs all value columns of its heads"),
        ("gdn_block_tkg", "a core needs all value columns of its heads"),
        ("gdn_conv1d_prefill", "a kernel without a delta rule has no value columns"),
    ],
)
def test_no_value_columns_are_split_token_by_token(name: str, why: str) -> None:
    kernel = api.load(name)
    with pytest.raises(CompileError, match=f"`shard=value_columns` is not possible: .*{why}") as e:
        _ = api.compile(kernel, target="trn2", settings={"shard": "value_columns"}).text
    (found,) = e.value.diagnostics
    assert found.span == kernel.kernel.span
    assert found.help == "leave out `shard`, or set `shard=heads` or `shard=none`"


ORDER = """
kernel refused:
    axes A, B, C, H, K, V
    input q: f32[{q}, K]
    input k: f32[A, B, C, H, K]
    input v: f32[A, B, C, H, V]
    state S: f32[A, B, C, H, K, V] = s0
    o, S = step linear(q, k, v, 0.9, S)
    output out: f32[{out}, V] = o
    output s1 = S
"""


@pytest.mark.parametrize(
    ("q", "out", "message"),
    [
        ("H, C, B, A", "A, B, C, H", "the rows of input `q` lie at more than two strides"),
        ("A, B, C, H", "H, C, B, A", "`out` does not hold the rows of the state in order"),
    ],
)
def test_orders_of_rows_that_no_transfer_follows(q: str, out: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        _ = api.compile(api.loads(RULE + ORDER.format(q=q, out=out)), target="trn2").text
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.span is not None
    assert diagnostic.help is not None
