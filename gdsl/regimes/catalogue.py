"""The regimes every kernel is verified in, by name, in the order they run."""

from __future__ import annotations

from gdsl.regimes import channels, gates, keys, serving, shapes
from gdsl.regimes.trial import Regime

REGIMES: dict[str, Regime] = {
    name: Regime(name, (trials.__doc__ or "").split("\n\n")[0], trials, once=name == "weak-decay")
    for name, trials in (
        ("gaussian", shapes.gaussian),
        ("zero-state", shapes.zero_state),
        ("identical-keys", keys.identical_keys),
        ("correlated-keys", keys.correlated_keys),
        ("zero-key", keys.zero_key),
        ("beta-0", gates.beta_zero),
        ("beta-1", gates.beta_one),
        ("decay-1", gates.decay_one),
        ("weak-decay", gates.weak_decay),
        ("strong-decay", gates.strong_decay),
        ("strongest-decay", gates.strongest_decay),
        ("strong-then-weak", gates.strong_then_weak),
        ("one-reset", gates.one_reset),
        ("real-parameters", gates.real_parameters),
        ("strong-channel", channels.strong_channel),
        ("half-decay-1", channels.half_decay_one),
        ("raw-gates", channels.raw_gates),
        ("largest-rate", channels.largest_rate),
        ("lengths", shapes.lengths),
        ("rectangular", shapes.rectangular),
        ("head-ratios", shapes.head_ratios),
        ("one-head", shapes.one_head),
        ("split", shapes.split),
        ("padding", serving.padding),
        ("slots", serving.slots),
        ("reset", serving.reset),
    )
}
