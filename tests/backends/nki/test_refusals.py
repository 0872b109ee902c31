"""What the decode schedule does not emit is refused at its place in the text."""

from __future__ import annotations

import re
from collections.abc import Callable
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


@pytest.mark.parametrize("run", ["step", "scan[T]"])
def test_a_state_that_is_a_single_matrix_is_refused(run: str) -> None:
    """There are no rows to lay on partitions; nor did anything say so."""
    tokens = "T, " if run != "step" else ""
    text = f"""{RULE}
kernel single:
    axes {tokens}K, V
    input q, k: f32[{tokens}K]
    input v: f32[{tokens}V]
    state S: f32[K, V] = s0
    o, S = {run} linear(q, k, v, 0.9, S)
    output out: f32[{tokens}V] = o
    output s1 = S
"""
    with pytest.raises(CompileError, match="no axis beside `K` and `V`") as error:
        _ = api.compile(api.loads(text), target="trn2").text
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.span is not None
    assert diagnostic.span.text.startswith("state S")


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


PROMPT = (
    RULE
    + """
kernel prompt:
    axes B, H, T, K, V
    input q: {query}[B, H, T, K]
    input k: {key}[B, H, T, K]
    input v: bf16[B, H, T, V]
    input g: f32[{decay}] in [-4, 0]
    state S: f32[B, H, K, V] = s0
    o, S = scan[T] linear(q, k, v, exp(g), S)
    output out: bf16[B, H, T, V] = o
    output s1 = S
"""
)


@pytest.mark.parametrize(
    ("query", "key", "decay", "message"),
    [
        ("bf16", "f32", "B, H, T", "a key `k` and a query `q` of different dtypes"),
        ("f32", "bf16", "H", "a key `k` and a query `q` of different dtypes"),
        ("bf16", "bf16", "K", "a decay per channel that all heads and tokens have in common"),
    ],
)
def test_vectors_that_go_token_by_token_alone(
    query: str, key: str, decay: str, message: str, agrees: Callable[..., None]
) -> None:
    """They made texts that do not run, or none; now the advice is to go token by token."""
    definition = api.loads(PROMPT.format(query=query, key=key, decay=decay))
    with pytest.raises(CompileError, match=message) as error:
        _ = api.compile(definition, target="trn2").text
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.help == "use `--set form=recurrent`, token by token"
    sizes = {"B": 1, "H": 2, "T": 3, "K": 8, "V": 4}
    agrees(definition, sizes, settings={"form": "recurrent"})


@pytest.mark.parametrize("decay", ["H", "B, H, T", "H, K"])
def test_a_prompt_whose_vectors_are_bf16_holds_in_every_precision(
    decay: str, agrees: Callable[..., None]
) -> None:
    """With no fp32 variant of its vectors it is judged by the bounds of bf16 operands."""
    definition = api.loads(PROMPT.format(query="bf16", key="bf16", decay=decay))
    agrees(definition, {"B": 1, "H": 2, "T": 140, "K": 8, "V": 4})


STATEFUL = (
    RULE
    + """
kernel stateful:
    axes B, H, T, K, V
    input q, k: f32[B, H, T, K]
    input v: f32[B, H, T, V]
    input w: f32[B, H, K]
    state S: f32[B, H, K, V] = s0
    m = {before}
    o, S = scan[T] linear(q * m, k, v, 0.9, S)
    output out: f32[B, H, T, V] = o
    output s1: f32[B, H, K, V] = S
    output last: f32[B, H, K] = {after}
"""
)


@pytest.mark.parametrize("form", ["chunked", "recurrent"])
@pytest.mark.parametrize(
    ("before", "after", "place", "remedy"),
    [
        ("sum[V](S * S)", "w", "sum[V](S * S)", "compute it before the kernel"),
        (
            "w",
            "w + sum[V](S)",
            "w + sum[V](S)",
            "return the state, and compute it after the kernel",
        ),
    ],
    ids=["before the rule", "after it"],
)
def test_values_made_of_a_state_are_refused(
    before: str, after: str, place: str, remedy: str, form: str
) -> None:
    """A state is read by its rule alone; anything else was an internal error."""
    definition = api.loads(STATEFUL.format(before=before, after=after))
    with pytest.raises(CompileError, match="computed from the state `S`") as error:
        _ = api.compile(definition, target="trn2", settings={"form": form}).text
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.span is not None
    assert diagnostic.span.text == place
    assert remedy in str(diagnostic.help)
