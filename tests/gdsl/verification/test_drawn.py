"""Rounding errors drawn at a plan's own rounding points, and the points themselves."""

import numpy as np
import pytest

import gdsl
from gdsl.algorithm.handed_on import round_handed_on
from gdsl.algorithm.plan import Plan
from gdsl.algorithm.precision import Precision
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Cast, Expr
from gdsl.ir.kernel import Let, Run
from gdsl.ir.traverse import walk
from gdsl.pipeline import Compilation, Definition
from gdsl.regimes.catalogue import REGIMES
from gdsl.regimes.trial import Setting, Trial
from gdsl.regimes.typed import bind_dtypes
from gdsl.verification.bounds import BF16_RMS, bf16_bounds
from gdsl.verification.drawn import with_drawn_errors
from gdsl.verification.judge import Allowed
from gdsl.verification.witnesses import interpret

SMALL = {"B": 1, "Hk": 2, "G": 2, "K": 32, "V": 32, "W": 4}

HEAD = """
use delta_rule, gates, norms, conv
kernel windowed:
    axes B, T, H, K, V, W, C = q:(H K) | k:(H K) | v:(H V)
    input x: bf16[B, T, C]
    input g: f32[B, T, H] in [-inf, 0]
    input beta: f32[B, T, H] in [0, 1]
    input taps: f32[C, W]
    state win: bf16[B, C, W] = conv_state inplace
    state S: f32[B, H, K, V] = recurrent_state inplace
    y, win = scan[T] causal_conv(x, taps, win)
"""
REST = """
    output out: bf16[B, T, H, V] = o
    output conv_state = win
    output recurrent_state = S
"""


def _plan(definition: Definition) -> Plan:
    return Compilation(definition).plan


def _rounded(expr: Expr) -> set[str]:
    """The kinds of what is cast to bf16."""
    return {
        type(node.arg).__name__
        for node in walk(expr)
        if isinstance(node, Cast) and node.dtype is Dtype.BF16
    }


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        # silu of all channels, then its fields: rounded once, as a whole.
        ("    q, k, v = unpack[C](silu(y))\n", "let", "Apply"),
        # silu of fields: the sum itself is not rounded.
        ("    q, k, v = unpack[C](y)\n", "args", "Ref"),
    ],
)
def test_what_a_window_hands_on_is_rounded(text: str, where: str, what: str) -> None:
    rule = "    o, S = scan[T] gated_delta(q, l2norm[K](k), v, exp(g), beta, S)\n"
    kernel = round_handed_on(_plan(gdsl.loads(HEAD + text + rule + REST)), Dtype.BF16)
    run = [s for s in kernel.body if isinstance(s, Run)][-1]
    lets = [s.value for s in kernel.body if isinstance(s, Let)]
    places = lets if where == "let" else [*lets, *run.args]
    assert set().union(*map(_rounded, places)) == {what}
    assert not any(_rounded(output.value) for output in kernel.outputs)


def test_silu_of_a_sum_inside_a_norm_is_rounded_before_it() -> None:
    text = HEAD + "    q, k, v = unpack[C](y)\n"
    text += (
        "    o, S = scan[T] gated_delta(silu(q), l2norm[K](silu(k)), silu(v), exp(g), beta, S)\n"
    )
    kernel = round_handed_on(_plan(gdsl.loads(text + REST)), Dtype.BF16)
    run = [s for s in kernel.body if isinstance(s, Run)][-1]
    casts = [n for arg in run.args[:3] for n in walk(arg) if isinstance(n, Cast)]
    assert casts
    assert all("sigmoid" in repr(cast.arg) for cast in casts)


def _bounds(
    name: str, tokens: int, regime: str, seed: int, **axes: int
) -> tuple[dict[str, Allowed], dict[str, Allowed]]:
    """The bounds of the plan as evaluated, and with drawn errors."""
    definition = gdsl.load(name)
    kernel = definition.kernel
    setting = Setting(kernel, {**SMALL, **axes, "T": tokens}, seed, 128)
    trials = REGIMES[regime].trials(setting)
    assert isinstance(trials, tuple)
    trial: Trial = trials[0]
    bound = bind_dtypes(kernel, Dtype.BF16)
    reference = interpret(kernel, trial, bound, "float64")
    plan = _plan(definition)
    own = bf16_bounds(kernel, plan, trial, bound, reference)
    return own, with_drawn_errors(kernel, plan, trial, bound, reference, own)


def test_draws_of_many_tokens_are_alike() -> None:
    """Where errors add up the bound stays what it is, within a fifth."""
    own, drawn = _bounds("gdn_mixer_prefill", 70, "gaussian", 0)
    for name, limits in own.items():
        if name != "conv_state":
            assert (drawn[name].rms >= limits.rms).all()
            assert (drawn[name].rms <= 1.35 * limits.rms).all(), name
            assert (drawn[name].rms <= BF16_RMS).all()


def test_one_token_near_orthogonal_hangs_on_single_errors() -> None:
    """q . k near 0 before an RMSNorm (seed 9): the evaluated plan is one draw, not the worst."""
    own, drawn = _bounds("gdn_mixer_prefill", 1, "zero-state", 9)
    assert (drawn["core_out"].rms / own["core_out"].rms).max() > 2
    assert (drawn["recurrent_state"].rms <= 2 * own["recurrent_state"].rms).all()


@pytest.mark.parametrize("dtype", [Dtype.BF16, Dtype.F16])
def test_drawn_errors_are_those_of_rounding_up_or_down(dtype: Dtype) -> None:
    """Neighbours of every value, its mean kept; what needs no rounding stays."""
    values = np.random.default_rng(0).uniform(1.0, 2.0, 20_000).astype(np.float32)
    rounding = Precision(np.dtype(np.float32), dtype, np.random.default_rng(1))
    drawn = rounding.operand(values)
    errors = (drawn - values) * 2.0**dtype.fraction_bits
    assert np.abs(errors).max() < 1
    assert abs(np.mean(errors)) < 0.01
    assert np.mean(errors**2) == pytest.approx(1 / 6, rel=0.05)
    assert np.array_equal(rounding.operand(drawn), drawn)
    assert (rounding.operand(np.zeros(3, np.float32)) == 0).all()
