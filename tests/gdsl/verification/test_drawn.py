"""Rounding errors drawn at a plan's own rounding points, and the points themselves."""

from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pytest

import gdsl
from gdsl.algorithm.handed_on import round_handed_on
from gdsl.algorithm.plan import Plan
from gdsl.algorithm.precision import Precision
from gdsl.emitter import EmitOptions, NkiProgram
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
from gdsl.verification.exact import run_exactly
from gdsl.verification.judge import Allowed
from gdsl.verification.request import Request
from gdsl.verification.work import Work

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
    (window,) = [s for s in kernel.body if isinstance(s, Run) and s is not run]
    assert [isinstance(arg, Cast) and arg.dtype for arg in window.args] == [False, Dtype.F16]


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
    exact, plan = run_exactly(kernel, trial, bound), _plan(definition)
    own = bf16_bounds(exact, plan)
    return own, with_drawn_errors(exact, plan, own)


def test_draws_of_many_tokens_are_alike() -> None:
    """Where errors add up the bound hardly moves, and the fixed limit stands."""
    own, drawn = _bounds("gdn_mixer_prefill", 70, "gaussian", 0)
    for name in ("core_out", "recurrent_state"):
        raised = drawn[name].rms / own[name].rms
        assert (raised >= 1).all()
        assert np.median(raised) <= 1.25
        assert raised.max() <= 1.75
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


@cache
def _loaded(text: str) -> Definition:
    return gdsl.loads(text)


class _Faulty(Work):
    """Runs another text than the one it judges."""

    text: str

    def _program(self, way: Any) -> NkiProgram:
        return _loaded(self.text).compilation(EmitOptions(way.target), way.settings).program


def _mixer(fault: tuple[str, str] = ("", "")) -> str:
    text = (resources.files("kernels_dsl") / "gdn_block_prefill.gdn").read_text(encoding="utf-8")
    start, end = text.index("kernel gdn_mixer_prefill"), text.index("shapes gdn_mixer_prefill")
    text = "use delta_rule, gates, norms, conv\n\n" + text[start:end]
    assert fault[0] in text
    return text.replace(*fault)


@pytest.mark.parametrize(
    ("old", "new", "precisions"),
    [
        ("sigmoid(b)", "0.97 * sigmoid(b)", ("widened", "fp32", "bf16")),
        ("l2norm[K](q) * K", "1.03 * l2norm[K](q) * K", ("widened", "fp32")),
        ("l2norm[K](q)", "l2norm[K](q + 0.1 * k)", ("widened", "fp32", "bf16")),
        ("l2norm[K](k), v", "l2norm[K](k + 0.02 * q), v", ("widened", "fp32", "bf16")),
        ("silu(y)", "silu(1.02 * y)", ("widened", "fp32", "bf16")),
    ],
)
@pytest.mark.parametrize("seed", [7, 9])
def test_small_faults_show_where_one_token_hangs_on_single_errors(
    old: str, new: str, precisions: tuple[str, ...], seed: int
) -> None:
    """Both seeds need drawn errors in bf16 (below); a fault is seen all the same."""
    work = _Faulty(_request(seed))
    work.text = _mixer((old, new))
    cases = work.run("zero-state")
    assert isinstance(cases, list)
    assert {case.precision for case in cases if not case.ok} >= set(precisions)


@pytest.mark.parametrize("seed", [7, 9])
def test_the_report_says_which_cases_were_judged_by_drawn_errors(seed: int) -> None:
    cases = Work(_request(seed)).run("zero-state")
    assert isinstance(cases, list)
    assert all(case.ok for case in cases)
    assert [case.precision for case in cases if case.raised] == ["bf16"]


def _request(seed: int) -> Request:
    return Request(
        _loaded(_mixer()),
        shape={**SMALL, "T": 1},
        targets=("trn2",),
        lnc=(1,),
        regimes=("zero-state",),
        seed=seed,
        settings={"inverse": "schur"},
    )
