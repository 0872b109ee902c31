"""The chunked schedule in the simulator: every length, head map and width, on 1 and 2 cores.

f32 operands are judged at the fp32 bounds, bf16 ones within 1.5 times of the plan evaluator that
rounds where the plan does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from backends.cost.program import prepare
from backends.cost.timeline import program_order
from backends.interpreter import RUNNER
from backends.isa.machine import MACHINES
from backends.nki import EMITTER
from backends.simulator.options import SimOptions
from backends.simulator.run import SimResult, simulate
from gdsl import api
from gdsl.algorithm.choose import choose
from gdsl.algorithm.evaluate_plan import evaluate
from gdsl.algorithm.plan import Plan
from gdsl.canonical.canonicalize import canonicalize
from gdsl.emitter import EmitOptions
from gdsl.errors import CompileError, GdslError
from gdsl.runner import RunOptions

Array = NDArray[Any]
BF16 = ml_dtypes.bfloat16

Settings = Mapping[str, str | int]
DEFAULT: Settings = MappingProxyType({})


@cache
def planned(name: str, **settings: str | int) -> Plan:
    return choose(canonicalize(api.load(name).kernel), settings)


@cache
def emitted(name: str = "gdn_cte", **settings: str | int) -> str:
    return EMITTER.emit(planned(name, **settings), EmitOptions()).text


def arguments(
    B: int, Hk: int, G: int, T: int, K: int, V: int, dtype: type, *, state: bool, like: float = 0.0
) -> dict[str, Any]:
    """Random inputs; `like` mixes a common vector into the keys of a head."""
    rng = np.random.default_rng(3)
    key = rng.standard_normal((B, Hk, T, K)) + like * rng.standard_normal((B, Hk, 1, K))
    values: dict[str, Any] = {
        "query": (rng.standard_normal((B, Hk, T, K)) / np.sqrt(K)).astype(dtype),
        "key": (key / np.linalg.norm(key, axis=-1, keepdims=True)).astype(dtype),
        "value": rng.standard_normal((B, Hk * G, T, V)).astype(dtype),
        "g_log": -rng.exponential(0.1, (B, Hk * G, T)).astype(np.float32),
        "beta": rng.uniform(size=(B, Hk * G, T)).astype(np.float32),
        "scale": 0.5,
    }
    if state:
        values["recurrent_state"] = rng.standard_normal((B, Hk * G, K, V)).astype(np.float32)
    return values


def run(
    values: dict[str, Any], lnc: int = 1, name: str = "gdn_cte", settings: Settings = DEFAULT
) -> SimResult:
    copies = {n: x.copy() if isinstance(x, np.ndarray) else x for n, x in values.items()}
    return simulate(emitted(name, **settings), name, copies, lnc=lnc)


def errors(found: Array, reference: Array) -> tuple[float, float]:
    """(e_rms, e_max) of the worst head, as `verify` takes them."""
    difference = found.astype(np.float64) - reference
    size = np.sqrt((reference**2).mean(axis=(-2, -1)))
    scale = np.maximum(size, 0.01 * np.sqrt((reference**2).mean()))
    rms = np.sqrt((difference**2).mean(axis=(-2, -1))) / scale
    return float(rms.max()), float((np.abs(difference).max(axis=(-2, -1)) / scale).max())


def judged(
    result: SimResult, values: dict[str, Any], kernel: str = "gdn_cte", settings: Settings = DEFAULT
) -> None:
    plan = planned(kernel, **settings)
    reference = RUNNER.run(plan.kernel.kernel, values, RunOptions("float64"))
    rounded = evaluate(plan, values, "plan")
    for found, name in zip(result.outputs, plan.kernel.kernel.call.returns, strict=True):
        rms, largest = errors(found, reference[name])
        if values["query"].dtype == np.float32:
            assert rms <= 3e-6
            assert largest <= 3e-5
        else:
            assert rms <= 1.5 * errors(rounded[name], reference[name])[0]


@pytest.mark.parametrize(
    ("sizes", "dtype", "state"),
    [
        ((1, 1, 1, 1, 32, 32), np.float32, True),
        ((1, 1, 3, 133, 96, 192), BF16, True),
        ((2, 1, 2, 129, 32, 16), np.float32, False),
        ((1, 5, 1, 64, 128, 64), BF16, True),
        ((1, 1, 1, 640, 32, 32), np.float32, True),
    ],
)
def test_every_shape(sizes: tuple[int, int, int, int, int, int], dtype: type, state: bool) -> None:
    values = arguments(*sizes, dtype, state=state)
    judged(run(values), values)


@pytest.mark.parametrize("like", [3.0, 1e4])
@pytest.mark.parametrize("algorithm", ["schur", "neumann"])
@pytest.mark.parametrize("dtype", [np.float32, BF16], ids=["f32", "bf16"])
def test_correlated_and_identical_keys(like: float, algorithm: str, dtype: type) -> None:
    values = arguments(1, 1, 1, 256, 32, 32, dtype, state=True, like=like)
    values["g_log"] *= 1e-2
    values["beta"][:] = 1.0
    judged(run({**values, "algorithm": algorithm}), values)


@pytest.mark.parametrize(
    ("settings", "algorithm"),
    [
        ({"chunk": 64}, "schur"),
        ({"chunk": 16}, "schur"),
        ({"chunk": 64, "inverse": "neumann", "leaf": 8}, "neumann"),
        ({"inverse": "neumann", "corrections": 3}, "neumann"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, BF16], ids=["f32", "bf16"])
def test_the_plan_is_read(settings: Settings, algorithm: str, dtype: type) -> None:
    values = arguments(1, 5, 1, 150, 32, 32, dtype, state=True, like=3.0)
    judged(run({**values, "algorithm": algorithm}, settings=settings), values, settings=settings)


@pytest.mark.parametrize(
    ("settings", "every", "lengths"),
    [({}, 128, None), ({}, 256, [290, 100]), ({"chunk": 64}, 64, [0, 128])],
)
def test_checkpoints(settings: Settings, every: int, lengths: list[int] | None) -> None:
    values = arguments(2, 1, 2, 300, 32, 16, np.float32, state=True)
    values["checkpoint_every"] = every
    if lengths is not None:
        values["valid_len"] = np.array(lengths, np.int32)
    result = run(values, name="gdn_cte_varlen", settings=settings)
    judged(result, values, "gdn_cte_varlen", settings)
    for row, length in enumerate(lengths or [300, 300]):
        assert (result.outputs[2][row, length // every :] == 0).all()


def test_checkpoints_inside_a_chunk_are_refused_when_traced() -> None:
    values = arguments(1, 1, 1, 128, 32, 16, np.float32, state=True)
    with pytest.raises(GdslError, match="checkpoint_every must be a multiple of the chunk, 128"):
        run({**values, "checkpoint_every": 64}, name="gdn_cte_varlen")


def test_another_algorithm_is_refused_when_traced() -> None:
    values = arguments(1, 1, 1, 32, 32, 32, np.float32, state=False)
    with pytest.raises(GdslError, match="algorithm must be schur or neumann, got magic"):
        run({**values, "algorithm": "magic"})


def test_strong_tokens_before_weak_ones() -> None:
    values = arguments(1, 1, 1, 256, 64, 32, np.float32, state=True)
    values["g_log"][:] = -1e-3
    values["g_log"][..., :64] = -21.0
    values["g_log"][..., 70] = -336.0
    judged(run(values), values)


def test_two_cores_give_the_bits_of_one() -> None:
    values = arguments(1, 3, 1, 150, 32, 32, BF16, state=True)
    one, two = run(values), run(values, lnc=2)
    for left, right in zip(one.outputs, two.outputs, strict=True):
        assert left.tobytes() == right.tobytes()


@pytest.mark.parametrize("shard", ["heads", "value_columns", "none"])
@pytest.mark.parametrize(("heads", "V"), [(1, 32), (1, 192), (3, 32)])
def test_what_cores_split_changes_no_bit(shard: str, heads: int, V: int) -> None:
    values = arguments(1, heads, 1, 150, 32, V, BF16, state=True)
    one, two = run(values), run(values, lnc=2, settings={"shard": shard})
    for left, right in zip(one.outputs, two.outputs, strict=True):
        assert left.tobytes() == right.tobytes()
    first, second = (len(trace.records) for trace in two.traces)
    assert (second > 100) == (shard != "none")
    assert shard != "value_columns" or first == second


def test_the_group_size_changes_no_bit() -> None:
    values = arguments(1, 2, 1, 300, 32, 32, BF16, state=True)
    first = run({**values, "group_size": 1})
    for size in (2, 16):
        other = run({**values, "group_size": size})
        for left, right in zip(first.outputs, other.outputs, strict=True):
            assert left.tobytes() == right.tobytes()


def test_a_text_admits_the_group_size_it_was_made_with() -> None:
    """`--set group=64`: its caller, who may ask for 16 at most elsewhere, gets the default."""
    definition = api.load("gdn_cte")
    program = api.compile(definition, target="trn2", settings={"group": 64, "chunk": 16})
    given = api.random_inputs(definition, "B=1,Hk=1,G=1,T=20,K=4,V=4")
    assert program.run(given)["out"].shape == (1, 1, 20, 4)
    assert "group_size <= 16" in api.compile(definition, target="trn2").text


def test_the_state_is_written_in_place() -> None:
    values = arguments(1, 1, 2, 100, 32, 32, np.float32, state=True)
    result = run(values)
    assert np.array_equal(result.mutated["recurrent_state"], result.outputs[1])


@pytest.mark.parametrize("name", ["kda_cte", "kda_cte_bounded"])
@pytest.mark.parametrize("lengths", [None, [140, 0]], ids=["all live", "tails of NaN"])
@pytest.mark.parametrize("dtype", [np.float32, BF16], ids=["f32", "bf16"])
def test_a_decay_per_channel(name: str, lengths: list[int] | None, dtype: type) -> None:
    values = arguments(2, 1, 2, 200, 32, 32, dtype, state=True)
    rng = np.random.default_rng(5)
    del values["g_log"]
    values["g"] = np.maximum(-rng.exponential(0.5, (2, 2, 200, 32)), -5.0).astype(np.float32)
    values["g"][..., ::2] = 0.0
    if name == "kda_cte":
        values["g"][..., 3] = -25.8
    if lengths is not None:
        values["valid_len"] = np.array(lengths, np.int32)
        for tensor in ("query", "key", "value", "g", "beta"):
            for row, length in enumerate(lengths):
                values[tensor][row, :, length:] = np.nan
    plan = planned(name)
    reference = RUNNER.run(plan.kernel.kernel, values, RunOptions("float64"))
    copies = {n: x.copy() if isinstance(x, np.ndarray) else x for n, x in values.items()}
    result = simulate(emitted(name), name, copies)
    limit = 3e-6 if dtype is np.float32 else 6e-3
    for found, output in zip(result.outputs, ("out", "recurrent_state"), strict=True):
        live = slice(0, 1) if lengths else slice(None)
        assert errors(found[live], reference[output][live])[0] <= limit
    if lengths is not None:
        assert (result.outputs[0][0, :, 140:] == 0).all()
        assert (result.outputs[0][1] == 0).all()
        assert np.array_equal(result.outputs[1][1], values["recurrent_state"][1])


def test_what_is_not_emitted_is_refused_with_its_place() -> None:
    with pytest.raises(CompileError) as caught:
        EMITTER.emit(planned("rwkv7_fwd"), EmitOptions())
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert "an erase vector that is no multiple of the written key" in found.message
    assert found.help == "use `--set form=recurrent`, token by token"


@pytest.mark.parametrize(
    ("heads", "shared", "tokens", "dtype", "limit"),
    [
        (8, 1, 128, BF16, 37.5 / 8),
        (8, 1, 2048, BF16, 1.85),
        (8, 1, 8192, BF16, 1.75),
        (1, 1, 2048, BF16, 4.0),
        (8, 1, 2048, np.float32, 4.9),
    ],
)
def test_the_estimated_time_per_chunk_and_head(
    heads: int, shared: int, tokens: int, dtype: type, limit: float
) -> None:
    assert estimated(heads, shared, tokens, dtype) / (heads * shared * tokens / 128) <= limit


@pytest.mark.parametrize("shared", [2, 4])
def test_value_heads_with_one_key_head_take_a_tenth_less(shared: int) -> None:
    alone = estimated(8, 1, 2048, BF16)
    assert estimated(8 // shared, shared, 2048, BF16) <= 0.9 * alone


def test_value_heads_with_one_key_head_take_no_more_transfers() -> None:
    def transfers(heads: int, shared: int) -> int:
        result = shapes_only(heads, shared, 512, BF16)
        return sum(r.opcode.startswith("dma") for trace in result.traces for r in trace.records)

    assert transfers(4, 2) == transfers(2, 4) == transfers(8, 1)


@pytest.mark.parametrize("heads", [3, 6, 7, 12])
def test_gates_of_any_number_of_heads_fit_their_banks(heads: int) -> None:
    """Sums of gates stand side by side, a column for every chunk of every head."""
    shapes_only(heads, 1, 2048, BF16)


@cache
def estimated(heads: int, shared: int, tokens: int, dtype: type) -> float:
    """Microseconds of gdn_cte in program order."""
    result = shapes_only(heads, shared, tokens, dtype)
    timeline = program_order([prepare(trace) for trace in result.traces], MACHINES["trn2"])
    return timeline.end / 1000


def shapes_only(heads: int, shared: int, tokens: int, dtype: type) -> SimResult:
    """gdn_cte traced without data, K = V = 128."""
    key, value = (1, heads, tokens, 128), (1, heads * shared, tokens, 128)
    values: dict[str, Any] = {name: np.empty(key, dtype) for name in ("query", "key")}
    values["value"] = np.empty(value, dtype)
    values |= {name: np.empty(value[:3], np.float32) for name in ("g_log", "beta")}
    values["scale"] = 0.5
    return simulate(emitted(), "gdn_cte", values, options=SimOptions(shape_only=True))


def test_the_estimated_time_with_a_decay_per_channel() -> None:
    values = arguments(1, 8, 1, 1024, 128, 128, BF16, state=False)
    del values["g_log"]
    values["g"] = np.zeros((1, 8, 1024, 128), np.float32)
    result = simulate(emitted("kda_cte"), "kda_cte", values, options=SimOptions(shape_only=True))
    timeline = program_order([prepare(trace) for trace in result.traces], MACHINES["trn2"])
    assert timeline.end / 1000 / (8 * 1024 / 128) <= 8.0
