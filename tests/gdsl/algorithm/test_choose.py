"""What is chosen, why, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from gdsl.algorithm.choose import choose
from gdsl.algorithm.chunk_plan import (
    AnchoredSegments,
    ChunkPlan,
    DeltaSolve,
    InverseKind,
    ScalarSegments,
)
from gdsl.algorithm.plan import ChunkedRun
from gdsl.algorithm.schedule_keys import SCHEDULE_KEYS, Value
from gdsl.algorithm.text import plan_text
from gdsl.canonical.form import CanonicalKernel
from gdsl.diagnostics.codes import CODES
from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.errors import CompileError
from gdsl.ir.text import expression_text

Gated = Callable[..., CanonicalKernel]


def chunk_of(kernel: CanonicalKernel, settings: Mapping[str, Value] | None = None) -> ChunkPlan:
    plan = choose(kernel, settings or {})
    (run,) = plan.runs
    assert isinstance(run, ChunkedRun), plan.why
    assert plan.form == "chunked"
    return run.chunk


def refusal(kernel: CanonicalKernel, **settings: Value) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        choose(kernel, settings)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code in CODES
    assert diagnostic.help
    return diagnostic


def test_a_scan_is_chunked_when_that_is_safe(gated: Gated) -> None:
    plan = chunk_of(gated())
    assert plan.chunk == 128
    assert isinstance(plan.segments, ScalarSegments)
    assert isinstance(plan.solve, DeltaSolve)
    assert plan.solve.inverse.kind is InverseKind.MERGE
    assert plan.solve.inverse.merges == (1, 2, 4, 8, 16, 32, 64)
    assert plan.solve.ratio is None
    assert plan.key is not None
    assert plan.value is not None
    assert expression_text(plan.key) == "k * beta"
    assert expression_text(plan.value) == "v"
    assert expression_text(plan.solve.read) == "k"


def test_a_ratio_that_the_value_lacks_stays_in_the_system(
    compiled: Callable[[str], tuple[CanonicalKernel, object]],
) -> None:
    kernel, _ = compiled("""
rule leaky[K, V](q[K], k[K], v[V], beta, state S[K, V]) -> o[V]:
    S = S + k * (v - beta * sum[K](k * S))
    o = sum[K](q * S)
kernel leaky_scan:
    axes B, T, K, V
    input q, k: f32[B, T, K];  input v: f32[B, T, V];  input beta: f32[B, T] in [0, 1]
    assume sum[K](k * k) <= 1
    state S: f32[B, K, V] = s0
    o, S = scan[T] leaky(q, k, v, beta, S)
    output out: f32[B, T, V] = o
    output s1: f32[B, K, V] = S
""")
    plan = chunk_of(kernel)
    assert plan.absorbed is None
    assert isinstance(plan.solve, DeltaSolve)
    assert plan.solve.ratio is not None


@pytest.mark.parametrize(
    ("gate", "subblock", "levels"),
    [
        (" in [-5, 0]", 16, (32, 64)),
        (" in [-6, 0]", 8, (32, 64)),
        (" in [-50, 0]", 1, (1, 2, 4, 8, 16, 32, 64)),
        (" in (-inf, 0]", 1, (1, 2, 4, 8, 16, 32, 64)),
    ],
)
def test_the_sub_block_follows_from_the_gate(
    gated: Gated, gate: str, subblock: int, levels: tuple[int, ...]
) -> None:
    segments = chunk_of(gated(gate=gate, channels=True)).segments
    assert isinstance(segments, AnchoredSegments)
    assert (segments.subblock, segments.levels) == (subblock, levels)
    assert segments.reach <= 40


def test_f16_operands_shorten_the_sub_block(gated: Gated) -> None:
    segments = chunk_of(gated(gate=" in [-5, 0]", channels=True, dtypes="f16, f32")).segments
    assert isinstance(segments, AnchoredSegments)
    assert segments.subblock * 5 <= 20


@pytest.mark.parametrize(
    "changes",
    [
        {"assume": "", "key": "k * rsqrt(sum[K](k * k) + 1e-6)"},
        {"assume": "", "key": "k / sqrt(sum[K](k * k) + 1e-6)"},
        {"assume": "", "key": "k / max(sqrt(sum[K](k * k)), 1e-12)"},
        {"assume": "", "key": "k * rsqrt(max(sum[K](k * k), 1e-12))"},
        {"decay": "sigmoid(g)", "gate": ""},
        {"decay": "g", "gate": " in (0, 1]"},
        {"beta": " in [0, 2]"},
    ],
)
def test_what_is_recognised_as_safe(gated: Gated, changes: dict[str, str]) -> None:
    assert chunk_of(gated(**changes)).error.inverse > 0


@pytest.mark.parametrize(
    ("changes", "code", "why"),
    [
        ({"assume": ""}, "E0513", "keys are not known to be normalised over `K`"),
        ({"beta": ""}, "E0513", "no known bound"),
        ({"beta": " in [0, 3]"}, "E0513", "may erase too much"),
        ({"gate": ""}, "E0512", "may be positive"),
        ({"decay": "g", "gate": " in [0, 1]"}, "E0512", "not known"),
    ],
)
def test_what_is_not_safe_runs_token_by_token(
    gated: Gated, changes: dict[str, str], code: str, why: str
) -> None:
    kernel = gated(**changes)
    plan = choose(kernel, {})
    assert plan.form == "recurrent"
    assert any(why in sentence for sentence in plan.why)
    found = refusal(kernel, form="chunked")
    assert found.code == code
    assert found.span is not None
    assert "form=recurrent" in (found.help or "")


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, InverseKind.MERGE),
        ({"leaf": 16}, InverseKind.DOUBLING),
        ({"leaf": 16, "corrections": 0}, InverseKind.SUBSTITUTION),
        ({"leaf": 32}, InverseKind.SUBSTITUTION),
    ],
)
def test_the_automatic_inverse_is_the_cheapest_safe_one(
    gated: Gated, settings: Mapping[str, Value], kind: InverseKind
) -> None:
    solve = chunk_of(gated(), settings).solve
    assert isinstance(solve, DeltaSolve)
    assert solve.inverse.kind is kind


def test_a_long_doubling_leaf_is_refused_with_its_limit(gated: Gated) -> None:
    found = refusal(gated(), inverse="neumann", leaf=32)
    assert found.code == "E0514"
    assert any("at most 16 rows" in note for note in found.notes)
    assert "leaf=16" in (found.help or "")


def test_doubling_without_corrections_is_refused(gated: Gated) -> None:
    found = refusal(gated(), inverse="neumann", corrections=1)
    assert found.code == "E0514"
    assert "corrections=2" in (found.help or "")
    chunk_of(gated(dtypes="f32"), {"inverse": "neumann", "corrections": 1})


def test_a_factored_exponential_under_an_unbounded_gate_is_refused(gated: Gated) -> None:
    found = refusal(gated(channels=True), subblock=16)
    assert found.code == "E0515"
    assert "subblock=1" in (found.help or "")


def test_the_settings_are_complete_and_say_who_decided(gated: Gated) -> None:
    plan = choose(gated(), {"chunk": "64", "inverse": "neumann"})
    assert list(plan.settings) == list(SCHEDULE_KEYS)
    origins = {setting.key: setting.origin for setting in plan.resolved}
    assert plan.settings["chunk"] == 64
    assert plan.settings["corrections"] == 2
    assert origins["chunk"] == "override"
    assert origins["corrections"] == "derived"
    assert origins["group"] == "default"


@pytest.mark.parametrize(
    ("key", "value", "code", "text"),
    [
        ("chunc", 64, "E0501", "did you mean `chunk`?"),
        ("chunk", 100, "E0502", "cannot be `100`"),
        ("chunk", "many", "E0502", "cannot be `many`"),
        ("inverse", "magic", "E0502", "cannot be `magic`"),
        ("group", 0, "E0502", "cannot be `0`"),
        ("form", "decode", "E0511", "scan"),
    ],
)
def test_wrong_settings(gated: Gated, key: str, value: Value, code: str, text: str) -> None:
    found = refusal(gated(), **{key: value})
    assert found.code == code
    assert text in found.message + found.label


def test_the_schedule_of_the_file_counts_and_is_pointed_at(
    compiled: Callable[[str], tuple[CanonicalKernel, object]],
) -> None:
    text = """
rule linear[K, V](q[K], k[K], v[V], decay, state S[K, V]) -> o[V]:
    S = decay * S + k * v
    o = sum[K](q * S)
kernel attention:
    axes B, T, K, V
    input q, k: f32[B, T, K];  input v: f32[B, T, V];  input g: f32[B, T] in (-inf, 0]
    state S: f32[B, K, V] = s0
    o, S = scan[T] linear(q, k, v, exp(g), S)
    output out: f32[B, T, V] = o
    output s1: f32[B, K, V] = S
schedule attention on trn2:
    chunk = {chunk}
"""
    kernel, schedule = compiled(text.format(chunk=32))
    assert choose(kernel, {}, schedule).settings["chunk"] == 32  # type: ignore[arg-type]
    assert choose(kernel, {"chunk": 64}, schedule).settings["chunk"] == 64  # type: ignore[arg-type]
    kernel, schedule = compiled(text.format(chunk=33))
    with pytest.raises(CompileError) as caught:
        choose(kernel, {}, schedule)  # type: ignore[arg-type]
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert "33" in found.span.text


def test_few_tokens_are_not_worth_a_chunk(
    compiled: Callable[[str], tuple[CanonicalKernel, object]],
) -> None:
    kernel, _ = compiled("""
rule linear[K, V](q[K], k[K], v[V], state S[K, V]) -> o[V]:
    S = S + k * v
    o = sum[K](q * S)
kernel attention:
    axes B, T <= 16, K, V
    input q, k: f32[B, T, K];  input v: f32[B, T, V]
    state S: f32[B, K, V] = s0
    o, S = scan[T] linear(q, k, v, S)
    output out: f32[B, T, V] = o
    output s1: f32[B, K, V] = S
""")
    assert choose(kernel, {}).form == "recurrent"
    assert choose(kernel, {"form": "chunked"}).form == "chunked"


def test_the_plan_as_text_shows_the_equations(gated: Gated) -> None:
    text = plan_text(choose(gated(channels=True, gate=" in [-5, 0]"), {}))
    assert "w = (I + A)^-1" in text
    assert "S <- exp(G_last) S" in text
    assert "in tiles of 32, reference in the middle of 16 rows" in text


@pytest.mark.parametrize("key", ["chunk", "inverse", "leaf", "corrections", "subblock", "group"])
def test_a_key_of_the_chunked_form_is_refused_token_by_token(gated: Gated, key: str) -> None:
    """A value set by hand and ignored would pass for one that was used."""
    value = SCHEDULE_KEYS[key].default
    found = refusal(gated(), form="recurrent", **{key: value})
    assert found.code == "E0503"
    assert f"`{key}` has no effect" in found.message
    assert found.help is not None
    assert "`reads`" in found.help
    assert choose(gated(), {key: value}).form == "chunked"


def test_a_key_of_one_token_is_refused_in_chunks(gated: Gated) -> None:
    assert refusal(gated(), reads="bf16").code == "E0503"
    assert choose(gated(), {"form": "recurrent", "reads": "bf16"}).settings["reads"] == "bf16"


def test_keys_of_a_file_may_serve_other_forms(
    compiled: Callable[[str], tuple[CanonicalKernel, object]],
) -> None:
    text = GATED_STEP + "schedule gated_step:\n    chunk = 64\n"
    kernel, schedule = compiled(text)
    assert choose(kernel, {}, schedule).form == "decode"  # type: ignore[arg-type]
    with pytest.raises(CompileError, match="`chunk` has no effect"):
        choose(kernel, {"chunk": 64}, schedule)  # type: ignore[arg-type]


GATED_STEP = """
rule linear[K, V](q[K], k[K], v[V], state S[K, V]) -> o[V]:
    S = S + k * v
    o = sum[K](q * S)
kernel gated_step:
    axes B, K, V
    input q, k: f32[B, K]
    input v: f32[B, V]
    state S: f32[B, K, V] = s0
    o, S = step linear(q, k, v, S)
    output out: f32[B, V] = o
    output s1 = S
"""


@pytest.mark.parametrize(
    ("every", "chunk"),
    [(16, 16), (48, 16), (64, 64), (192, 64), (128, 128), (256, 128), (20, None)],
)
def test_states_on_the_way_end_chunks(
    compiled: Callable[[str], tuple[CanonicalKernel, object]], every: int, chunk: int | None
) -> None:
    """Nobody has to say `chunk` so that the states after every N tokens are at its ends."""
    text = f"""
rule linear[K, V](q[K], k[K], v[V], state S[K, V]) -> o[V]:
    S = S + k * v
    o = sum[K](q * S)
kernel on_the_way:
    axes B, T, P, H, K, V
    input q, k: f32[B, T, H, K];  input v: f32[B, T, H, V]
    state S: f32[B, H, K, V] = s0
    o, S, Ss = scan[T every {every} -> P] linear(q, k, v, S)
    output out: f32[B, T, H, V] = o
    output states: f32[B, P, H, K, V] = Ss
"""
    kernel, _ = compiled(text)
    plan = choose(kernel, {})
    if chunk is None:
        assert plan.form == "recurrent"
        assert "where no chunk ends" in plan.why[0]
        return
    assert plan.settings["chunk"] == chunk_of(kernel).chunk == chunk
    assert choose(kernel, {"chunk": 32}).settings["chunk"] == 32
