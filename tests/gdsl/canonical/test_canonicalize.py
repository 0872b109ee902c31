"""Rules of the field in canonical form, however they are written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gdsl.canonical.canonicalize import canonicalize
from gdsl.canonical.form import Canonical, DecayKind, Delta, ReadWhen, Window
from gdsl.canonical.verify import broken_invariants
from gdsl.ir.expr import Expr
from gdsl.ir.kernel import Kernel
from gdsl.ir.text import expression_text

ScanOf = Callable[..., Kernel]

GATED = """
rule gated[K, V](q[K], k[K], v[V], decay[K?], beta, state S[K, V]) -> o[V]:
    S = decay * S
    r = sum[K](k * S)
    S = S + k * (beta * (v - r))
    o = sum[K](q * S)
"""
GATED_AXES = {"q": "K", "k": "K", "v": "V", "decay": "", "beta": ""}


def form_of(kernel: Kernel) -> Canonical:
    ((run, form),) = canonicalize(kernel).runs
    assert broken_invariants(run, form) == ()
    return form


def delta_of(kernel: Kernel) -> Delta:
    form = form_of(kernel)
    assert isinstance(form, Delta)
    return form


def text(expr: Expr | None) -> str:
    assert expr is not None
    return expression_text(expr)


def test_gated_delta_rule(scan_of: ScanOf) -> None:
    form = delta_of(scan_of(GATED, GATED_AXES, {"decay": "exp(decay)"}))
    assert (form.key_axis, form.value_axis) == ("K", "V")
    assert form.decay.kind is DecayKind.SCALAR
    assert text(form.decay.log) == "decay"
    assert not form.decay.constant
    assert form.read is not None
    assert (text(form.read.vector), form.read.when) == ("k", ReadWhen.POST)
    assert form.write is not None
    assert (text(form.write.key), text(form.write.value)) == ("k", "beta * v")
    assert text(form.erase) == "k * beta"
    (emit,) = form.emits
    assert (text(emit.query), emit.after, emit.axis, emit.skip) == ("q", True, "K", None)


@pytest.mark.parametrize(
    "body",
    [
        "    S = decay * S\n    S = S + k * beta * v - (beta * k) * sum[K](k * S)\n",
        "    D = decay * S\n    u = beta * (v - sum[K](k * D))\n    S = D + k * u\n",
        "    S = decay * S - k * (beta * sum[K](k * (decay * S) - 0) - v * beta)\n",
    ],
)
def test_the_same_rule_in_other_words(scan_of: ScanOf, body: str) -> None:
    head, _, tail = GATED.partition("    S = decay * S\n")
    other = head + body + "    o = sum[K](q * S)\n"
    first = delta_of(scan_of(GATED, GATED_AXES))
    second = delta_of(scan_of(other, GATED_AXES))
    assert tail
    assert text(second.erase) in ("k * beta", "beta * k")
    assert second.write is not None
    assert first.write is not None
    assert text(second.write.key) == text(first.write.key)
    assert second.decay.kind is first.decay.kind


def test_a_decay_per_channel(scan_of: ScanOf) -> None:
    form = delta_of(scan_of(GATED, {**GATED_AXES, "decay": "K"}))
    assert form.decay.kind is DecayKind.KEY_VECTOR


def test_a_constant_decay_has_no_token(scan_of: ScanOf) -> None:
    form = delta_of(scan_of(GATED, GATED_AXES, {"decay": "decay * 0 + 1 - 2 ** (-5 - index[H]())"}))
    assert not form.decay.constant
    rule = GATED.replace("decay[K?], beta", "beta")
    rule = rule.replace("S = decay * S", "S = 0.5 * S")
    axes = {name: own for name, own in GATED_AXES.items() if name != "decay"}
    assert delta_of(scan_of(rule, axes)).decay.constant


def test_a_read_before_the_decay(scan_of: ScanOf) -> None:
    rule = """
rule comba[K, V](q[K], p[K], k[K], v[V], decay, beta, state S[K, V]) -> o[V]:
    r = sum[K](p * S)
    S = decay * S + k * (beta * (v - r))
    o = sum[K](q * S)
"""
    form = delta_of(
        scan_of(rule, {"q": "K", "p": "K", "k": "K", "v": "V", "decay": "", "beta": ""})
    )
    assert form.read is not None
    assert (text(form.read.vector), form.read.when) == ("p", ReadWhen.PRE)


def test_an_erase_vector_of_its_own(scan_of: ScanOf) -> None:
    rule = """
rule dplr[K, V](r[K], decay[K], k[K], v[V], kk[K], a[K], state S[K, V]) -> o[V]:
    u = sum[K](-kk * S)
    S = decay * S + (kk * a) * u + k * v
    o = sum[K](r * S)
"""
    form = delta_of(
        scan_of(rule, {"r": "K", "decay": "K", "k": "K", "v": "V", "kk": "K", "a": "K"})
    )
    assert form.read is not None
    assert text(form.read.vector) == "kk"
    assert text(form.erase) == "kk * a"
    assert form.read.when is ReadWhen.PRE


def test_no_erase(scan_of: ScanOf) -> None:
    rule = """
rule linear[K, V](q[K], k[K], v[V], decay[K?], state S[K, V]) -> o[V]:
    S = decay * S + k * v
    o = sum[K](q * S)
"""
    form = delta_of(scan_of(rule, {"q": "K", "k": "K", "v": "V", "decay": "K"}))
    assert form.read is None
    assert form.erase is None


def test_an_output_before_the_write_with_a_bonus(scan_of: ScanOf) -> None:
    rule = """
rule rwkv6[K, V](q[K], k[K], v[V], decay[K?], u[K], state S[K, V]) -> o[V]:
    o = sum[K](q * (S + (u * k) * v))
    S = decay * S + k * v
"""
    form = delta_of(scan_of(rule, {"q": "K", "k": "K", "v": "V", "decay": "K", "u": "K"}))
    (emit,) = form.emits
    assert not emit.after
    assert (text(emit.query), text(emit.skip)) == ("q", "v * sum[K](q * u * k)")


def test_a_rule_on_the_other_axis(scan_of: ScanOf) -> None:
    rule = """
rule oja[K, V](q[K], k[K], v[V], decay[V], beta, state S[K, V]) -> o[V]:
    S = decay * S
    r = sum[V](v * S)
    S = S + v * (beta * (k - r))
    o = sum[K](q * S)
"""
    form = delta_of(scan_of(rule, {**GATED_AXES, "decay": "V"}))
    assert (form.key_axis, form.value_axis) == ("V", "K")
    assert form.decay.kind is DecayKind.KEY_VECTOR
    assert form.emits[0].axis == "K"


def test_sub_steps(kernel_of: Callable[[str], Kernel]) -> None:
    form = delta_of(
        kernel_of("""
rule write[K, V](k[K], v[V], beta, state S[K, V]):
    S = S + k * (beta * (v - sum[K](k * S)))
rule product[K, V, N](q[K], k[N, K], v[N, V], decay, beta[N], state S[K, V]) -> o[V]:
    S = decay * S
    S = scan[N] write(k, v, beta, S)
    o = sum[K](q * S)
kernel delta_product:
    axes B, T, N, H, K, V
    input q: f32[B, T, H, K];  input k: f32[B, T, N, H, K];  input v: f32[B, T, N, H, V]
    input g: f32[B, T, H];  input beta: f32[B, T, N, H]
    state S: f32[B, H, K, V] = s0
    o, S = scan[T] product(q, k, v, exp(g), beta, S)
    output out: f32[B, T, H, V] = o
    output s1: f32[B, H, K, V] = S
""")
    )
    assert form.substeps == "N"
    assert form.write is not None
    assert "N" in form.write.key.type.axes


def test_a_step_inside_a_rule_is_part_of_it(kernel_of: Callable[[str], Kernel]) -> None:
    form = delta_of(
        kernel_of("""
rule write[K, V](k[K], v[V], beta, state S[K, V]):
    S = S + k * (beta * (v - sum[K](k * S)))
rule gated[K, V](q[K], k[K], v[V], decay, beta, state S[K, V]) -> o[V]:
    S = decay * S
    S = step write(k, v, beta, S)
    o = sum[K](q * S)
kernel one:
    axes B, H, K, V
    input q, k: f32[B, H, K];  input v: f32[B, H, V];  input g, beta: f32[B, H]
    state S: f32[B, H, K, V] = s0
    o, S = step gated(q, k, v, exp(g), beta, S)
    output out: f32[B, H, V] = o
    output s1: f32[B, H, K, V] = S
""")
    )
    assert form.substeps is None
    assert form.read is not None
    assert form.read.when is ReadWhen.POST


def test_a_window(kernel_of: Callable[[str], Kernel]) -> None:
    form = form_of(
        kernel_of("""
rule conv[W](x, w[W], bias, state win[W]) -> y:
    win = shift[W](win, x)
    y = sum[W](win * w) + bias
kernel convolve:
    axes B, T, C, W
    input x: f32[B, T, C];  input w: f32[C, W];  input bias: f32[C]
    state win: f32[B, C, W] = win0
    y, win = scan[T] conv(x, w, bias, win)
    output out: f32[B, T, C] = y
    output win1: f32[B, C, W] = win
""")
    )
    assert isinstance(form, Window)
    (emit,) = form.emits
    assert emit.after
    assert (text(form.value), text(emit.taps), text(emit.skip)) == ("x", "w", "bias")


def test_a_window_read_before_the_new_column(kernel_of: Callable[[str], Kernel]) -> None:
    form = form_of(
        kernel_of("""
rule conv[M](x, w[M], now, state win[M]) -> y:
    y = sum[M](w * win) + x * now
    win = shift[M](win, x)
kernel convolve:
    axes B, T, C, M
    input x: f32[B, T, C];  input w: f32[C, M];  input now: f32[C]
    state win: f32[B, C, M] = win0
    y, win = scan[T] conv(x, w, now, win)
    output out: f32[B, T, C] = y
    output win1: f32[B, C, M] = win
""")
    )
    assert isinstance(form, Window)
    (emit,) = form.emits
    assert not emit.after
    assert (text(emit.taps), text(emit.skip)) == ("w", "x * now")


@pytest.mark.parametrize(
    ("decay", "log"),
    [
        ("exp(decay)", "decay"),
        ("exp(decay) * exp(beta)", "decay + beta"),
        ("exp(decay) / exp(beta)", "decay - beta"),
        ("sigmoid(decay)", "-softplus(-decay)"),
    ],
)
def test_the_logarithm_of_a_decay(scan_of: ScanOf, decay: str, log: str) -> None:
    form = delta_of(scan_of(GATED, GATED_AXES, {"decay": decay}))
    assert text(form.decay.log) == log


def test_no_logarithm_is_made_up(scan_of: ScanOf) -> None:
    assert delta_of(scan_of(GATED, GATED_AXES, {"decay": "abs(decay)"})).decay.log is None


@pytest.mark.parametrize("axes", ["", "K"])
def test_a_decay_inside_the_read_is_a_read_after_the_decay(scan_of: ScanOf, axes: str) -> None:
    rule = GATED.replace("    S = decay * S\n", "").replace(
        "sum[K](k * S)", "sum[K](k * decay * S)"
    )
    rule = rule.replace("S = S + k", "S = decay * S + k")
    form = delta_of(scan_of(rule, {**GATED_AXES, "decay": axes}))
    assert form.read is not None
    assert (text(form.read.vector), form.read.when) == ("k", ReadWhen.POST)
    assert text(form.erase) == "k * beta"
