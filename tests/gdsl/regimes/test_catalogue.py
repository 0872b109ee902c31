"""Each regime really is what its name says, for the kernels it applies to."""

import math

import numpy as np
import pytest

import gdsl
from gdsl.regimes.catalogue import REGIMES
from gdsl.regimes.drive import evaluate
from gdsl.regimes.parts import input_parts
from gdsl.regimes.trial import Setting, Skip, Trial
from gdsl.runner import Array

SIZES = {
    "gdn_tkg": {"B": 1, "Hv": 3, "K": 16, "V": 8},
    "gdn_cte": {"B": 1, "Hk": 2, "G": 2, "T": 40, "K": 16, "V": 8},
    "gdn_block_tkg": {"B": 1, "Hid": 384, "Hk": 1, "G": 2, "K": 8, "V": 8, "W": 2},
    "kda_tkg": {"B": 1, "H": 2, "K": 16, "V": 8},
    **{
        name: {"B": 1, "Hk": 2, "G": 1, "T": 40, "K": 16, "V": 8}
        for name in ("kda_cte", "kda_prefill", "kda_prefill_bounded")
    },
}


def setting(name: str) -> Setting:
    return Setting(gdsl.load(name).kernel, SIZES[name], 0, 16 if "T" in SIZES[name] else None)


def trials(name: str, regime: str) -> list[Trial]:
    found = REGIMES[regime].trials(setting(name))
    assert not isinstance(found, Skip), found
    return list(found)


def role(name: str, which: str, trial: Trial, call: int = 0) -> Array:
    """The values of the expression that plays a role, from the trial's arguments."""
    kernel = gdsl.load(name).kernel
    (roles,) = setting(name).roles
    (expr,) = roles.expressions[which]  # type: ignore[index]
    values = {}
    for item in kernel.inputs:
        (part,) = input_parts(item)
        shape = [trial.sizes[axis] for axis in part.axes]
        values[part] = np.asarray(trial.calls[call][item.name]).reshape(shape)
    return evaluate(kernel, expr, values, trial.sizes)


@pytest.mark.parametrize("name", ["gdn_tkg", "gdn_cte", "kda_tkg"])
@pytest.mark.parametrize(
    ("regime", "which", "value"),
    [("beta-0", "beta", 0.0), ("beta-1", "beta", 1.0), ("decay-1", "decay", 1.0)],
)
def test_gates_at_their_ends_exactly(name: str, regime: str, which: str, value: float) -> None:
    (trial,) = trials(name, regime)
    assert np.all(role(name, which, trial) == value)


@pytest.mark.parametrize("name", ["gdn_tkg", "gdn_cte"])
@pytest.mark.parametrize(("regime", "log"), [("strong-decay", -0.7), ("strongest-decay", -21.0)])
def test_log_decay_within_five_per_cent(name: str, regime: str, log: float) -> None:
    (trial,) = trials(name, regime)
    np.testing.assert_allclose(np.log(role(name, "decay", trial)), log, rtol=0.05)


def test_a_bounded_gate_cannot_go_below_its_bound() -> None:
    found = REGIMES["strongest-decay"].trials(setting("kda_tkg"))
    assert isinstance(found, Skip)
    assert "cannot be" in found.reason


def test_real_ranges_of_parameters_and_of_a_decay_that_comes_ready_made() -> None:
    (trial,) = trials("gdn_cte", "real-parameters")
    logs = -np.log(role("gdn_cte", "decay", trial))
    assert logs.min() >= 1e-6 * 0.9
    assert logs.max() <= 1.6 * 1.1
    # One A for each head: within a head only dt varies, by a factor of 100 at most.
    assert np.all(logs.max(axis=-1) / logs.min(axis=-1) <= 101)
    assert logs.max() / logs.min() > 101


def test_channels_that_decay_at_other_speeds() -> None:
    for name, strongest in (("kda_prefill", -25.8), ("kda_prefill_bounded", -5.0)):
        (trial,) = trials(name, "strong-channel")
        logs = np.log(role(name, "decay", trial))
        K = logs.shape[-1]
        np.testing.assert_allclose(logs[..., K // 3], strongest, rtol=0.05)
        assert np.delete(logs, K // 3, axis=-1).min() > -1
        (trial,) = trials(name, "half-decay-1")
        decays = role(name, "decay", trial)
        assert (decays[..., ::2] == 1).all()
        assert (decays[..., 1::2] < 1).all()
    for regime in ("strong-channel", "half-decay-1"):
        assert isinstance(REGIMES[regime].trials(setting("gdn_cte")), Skip)


@pytest.mark.parametrize("name", ["kda_prefill", "kda_tkg", "gdn_tkg"])
def test_raw_gates_and_the_largest_rate(name: str) -> None:
    (trial,) = trials(name, "raw-gates")
    (arguments,) = trial.calls
    raw = arguments[{"kda_prefill": "f", "kda_tkg": "g", "gdn_tkg": "a"}[name]]
    assert set(np.unique(raw)) == {-8.0, 0.0, 8.0}
    assert not arguments["dt_bias"].any()
    (trial,) = trials(name, "largest-rate")
    (arguments,) = trial.calls
    logs = np.log(role(name, "decay", trial))
    # The bound of kda_tkg is an argument of its own.
    bound = arguments["lower_bound"] if name == "kda_tkg" else None
    one = -16 * np.log1p(np.e) if bound is None else bound / (1 + np.exp(-16.0))
    np.testing.assert_allclose(logs, np.broadcast_to(one, logs.shape), rtol=1e-6)
    for regime in ("raw-gates", "largest-rate"):
        assert isinstance(REGIMES[regime].trials(setting("kda_cte")), Skip)


def test_strong_tokens_precede_weak_ones_in_a_chunk() -> None:
    (trial,) = trials("gdn_cte", "strong-then-weak")
    logs = np.log(role("gdn_cte", "decay", trial))
    np.testing.assert_allclose(logs[..., :8], -21.0, rtol=0.05)
    np.testing.assert_allclose(logs[..., 8:16], -1e-3, rtol=0.05)
    (trial,) = trials("gdn_cte", "one-reset")
    logs = np.log(role("gdn_cte", "decay", trial))
    assert np.all(np.sum(logs < -300, axis=-1) == 2)


def test_weak_decay_lasts_a_thousand_steps() -> None:
    (trial,) = trials("gdn_tkg", "weak-decay")
    assert len(trial.calls) == 1000
    np.testing.assert_allclose(np.log(role("gdn_tkg", "decay", trial, 999)), -1e-4, rtol=0.05)
    assert math.prod(trial.sizes[axis] for axis in ("B", "Hv")) <= 2
    (trial,) = trials("gdn_cte", "weak-decay")
    assert trial.sizes["T"] == 1000


def test_a_thousand_steps_of_a_layer_have_the_fewest_hidden_channels() -> None:
    """Each step has weights of its own, which at real sizes would not fit into memory."""
    (trial,) = trials("gdn_block_tkg", "weak-decay")
    assert trial.sizes["Hid"] == 128
    first, second = trial.calls[:2]
    assert np.any(first["W_in_qkv"] != second["W_in_qkv"])


def unit_keys(name: str, trial: Trial) -> Array:
    keys = role(name, "key", trial)
    return np.asarray(keys / np.linalg.norm(keys, axis=-1, keepdims=True))


def test_identical_and_correlated_keys() -> None:
    (same,) = trials("gdn_cte", "identical-keys")
    keys = unit_keys("gdn_cte", same)
    cosines = np.einsum("bhtk,bhsk->bhts", keys, keys)
    np.testing.assert_allclose(cosines, 1.0, atol=1e-12)
    (near,) = trials("gdn_cte", "correlated-keys")
    keys = unit_keys("gdn_cte", near)
    cosines = np.einsum("bhtk,bhsk->bhts", keys, keys)
    off = cosines[..., ~np.eye(40, dtype=bool)]
    assert abs(off.mean() - 0.9) < 0.02


def test_a_zero_key_and_its_neighbours() -> None:
    (trial,) = trials("gdn_cte", "zero-key")
    norms = np.linalg.norm(role("gdn_cte", "key", trial), axis=-1)
    assert np.count_nonzero(norms == 0) == 2


def test_lengths_stand_around_chunks() -> None:
    found = trials("gdn_cte", "lengths")
    lengths = [1, 7, 8, 9, 15, 16, 17, 21, 47, 76, 128]
    assert sorted(t.sizes["T"] for t in found) == lengths
    assert all(t.sizes["Hk"] * t.sizes["G"] <= 2 for t in found if t.sizes["T"] > 32)


def test_a_chunk_of_128_meets_the_lengths_of_issues() -> None:
    kernel = gdsl.load("gdn_cte").kernel
    sizes = {"B": 1, "Hk": 1, "G": 1, "T": 8, "K": 4, "V": 4}
    found = REGIMES["lengths"].trials(Setting(kernel, sizes, 0, 128))
    assert not isinstance(found, Skip)
    lengths = {trial.sizes["T"] for trial in found}
    assert {1, 63, 64, 65, 127, 128, 129, 133, 271, 300, 1024} <= lengths


def test_rectangles_and_head_ratios() -> None:
    shapes = {(t.sizes["K"], t.sizes["V"]) for t in trials("gdn_cte", "rectangular")}
    assert shapes == {(16, 8), (8, 16)}
    found = trials("gdn_cte", "head-ratios")
    assert {t.sizes["G"] for t in found} == {1, 2, 3}
    assert any(t.sizes["B"] * t.sizes["Hk"] * t.sizes["G"] == 3 for t in found)
    assert isinstance(REGIMES["head-ratios"].trials(setting("gdn_tkg")), Skip)


def test_a_cut_run_is_the_whole_run_in_pieces() -> None:
    found = trials("gdn_cte", "split")
    assert [t.sizes["T"] for t in found] == [12] * 11 + [18] * 4
    for trial in found:
        assert trial.whole is not None
        pieces = [call["query"] for call in trial.calls]
        np.testing.assert_array_equal(np.concatenate(pieces, axis=2), trial.whole["query"])


def test_the_second_piece_of_a_cut_run_goes_on_where_the_first_one_ended() -> None:
    """Rows of a pool read the slots that they wrote, and none starts anew."""
    sizes = {"B": 3, "N": 2, "Hk": 1, "G": 2, "T": 40, "K": 16, "V": 8}
    found = REGIMES["split"].trials(Setting(gdsl.load("gdn_prefill_pool").kernel, sizes, 0, 16))
    assert not isinstance(found, Skip)
    for trial in found:
        first, second = trial.calls
        assert trial.whole is not None
        flag = "has_initial_state"
        np.testing.assert_array_equal(first[flag], trial.whole[flag])
        assert not first[flag].all()
        assert second[flag].all()
        np.testing.assert_array_equal(second["read"], first["write"])


def test_padding_slots_and_reset_poison_what_must_not_be_read() -> None:
    kernel = gdsl.load("gdn_cte_varlen").kernel
    sizes = {axis.name: 2 for axis in kernel.axes} | {"T": 8, "B": 4}
    found = REGIMES["padding"].trials(Setting(kernel, sizes, 0, 16))
    assert not isinstance(found, Skip)
    (trial,) = found
    (call,) = trial.calls
    poisoned = np.asarray(np.isnan(call["query"]).any(axis=(1, 3)))
    lengths = call["valid_len"].astype(int)
    np.testing.assert_array_equal(poisoned, np.arange(8) >= lengths[:, None])

    one_row = Setting(kernel, {**sizes, "B": 1}, 0, 16)
    more = REGIMES["padding"].trials(one_row)
    assert not isinstance(more, Skip)
    (few,) = more
    assert sorted(few.calls[0]["valid_len"]) == [0, 4, 7, 8]

    kernel = gdsl.load("gdn_tkg_pool").kernel
    sizes = {"B": 8, "N": 9, "Hk": 1, "G": 2, "K": 4, "V": 4}
    found = REGIMES["slots"].trials(Setting(kernel, sizes, 0))
    assert not isinstance(found, Skip)
    (call,) = next(iter(found)).calls
    read, write = call["read"], call["write"]
    kinds = {(bool(0 <= r < 9), bool(0 <= w < 9)) for r, w in zip(read, write, strict=True)}
    assert kinds == {(True, True), (True, False), (False, True), (False, False)}


@pytest.mark.parametrize("regime", [name for name in REGIMES if name != "weak-decay"])
def test_every_regime_runs_or_says_why_not_and_repeats_itself(regime: str) -> None:
    for name in ("gdn_tkg", "gdn_cte"):
        first, again = (REGIMES[regime].trials(setting(name)) for _ in range(2))
        if isinstance(first, Skip):
            assert len(first.reason) > 10
            continue
        assert not isinstance(again, Skip)
        for a, b in zip(first, again, strict=True):
            for x, y in zip(a.calls, b.calls, strict=True):
                assert x.keys() == y.keys()
                assert all(np.array_equal(x[k], y[k], equal_nan=True) for k in x)
