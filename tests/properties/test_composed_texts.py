"""Features of the language put together at random: the emitted kernel equals the definition.

Each construct has tests of its own; these find what two of them do to one another.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import gdsl

RULES = {
    "gated_delta": "gated_delta({q}, {k}, v, {decay}, {beta}, S)",
    "delta": "delta({q}, {k}, v, {beta}, S)",
    "gdn2": "gdn2({q}, {k}, v, {decay}, sigmoid(b), sigmoid(w), S)",
    "linear_attention": "linear_attention({q}, {k}, v, {decay}, S)",
}
GATES = {
    "exp(g)": "input g: f32[{gate}] in (-inf, 0]",
    "exp(log_decay(a, A_log, dt_bias))": "input a: f32[{gate}]\n    input A_log, dt_bias: f32[Hv]",
    "exp(bounded_log_decay(a, A_log, 0, -5))": "input a: f32[{gate}]\n    input A_log: f32[Hv]",
    "sigmoid(a)": "input a: f32[{gate}]",
    "0.9": "",
}
POSTS = {
    "o": "",
    "rms_norm[V](o) * nw * silu(z)": "input nw: f32[V]\n    input z: f32[{value}]",
    "o + D * v": "input D: f32[Hv]",
    "where(nw >= D, o, v) + softplus(-v * v)": "input nw: f32[V]\n    input D: f32[Hv]",
    "log(abs(v) + 0.2)": "",
}


class Composed:
    """A text, sizes and a schedule, from a seed."""

    def __init__(self, seed: int) -> None:
        pick = random.Random(seed)
        self.tokens = pick.choice([False, True, True])
        self.chunked = self.tokens and pick.random() < 0.7
        self.every = pick.choice([None, 16, 32]) if self.tokens else None
        self.valid = self.tokens and pick.random() < 0.5
        self.flag = not self.chunked and pick.random() < 0.5
        rule = pick.choice(list(RULES))
        decay, post = pick.choice(list(GATES)), pick.choice(list(POSTS))
        key = pick.choice(["B, T, Hk, K", "B, Hk, T, K"] if self.tokens else ["B, Hk, K"])
        value = key.replace("Hk", "Hv").replace("K", "V")
        state = "B, Hv, V, K" if pick.random() < 0.3 else "B, Hv, K, V"
        start = pick.choice(["s0", "s0 inplace", "s0 or zeros"])
        start += " unless keep" if self.flag else ""
        head = value.replace(", V", "")
        gate = head + (", K" if rule != "delta" and pick.random() < 0.4 else "")
        beta = pick.choice(["sigmoid(b)", "2 * sigmoid(b)", "0.5"])
        call = RULES[rule].format(
            q=pick.choice(["q * K ** -0.5", "l2norm[K](q)"]),
            k="l2norm[K](k)",
            decay=decay,
            beta=beta,
        )
        inputs = [f"input q, k: f32[{key}]", f"input v: f32[{value}]"]
        inputs += [GATES[decay].format(gate=gate)] if "decay" in RULES[rule] else []
        inputs += [POSTS[post].format(value=value)]
        if rule == "gdn2":
            inputs += [f"input b: f32[{head}, K]", f"input w: f32[{value}]"]
        elif "{beta}" in RULES[rule] and "b" in beta:
            inputs += [f"input b: f32[{head}]"]
        inputs += ["input keep: bool[B]"] if self.flag else []
        inputs += ["input valid_len: i32[B] in [0, inf) or T"] if self.valid else []
        run = "step"
        if self.tokens:
            every = f" every {self.every} -> P" if self.every else ""
            run = f"scan[T{' < valid_len' if self.valid else ''}{every}]"
        body = [
            f"state S: f32[{state}] = {start}",
            f"o, S{', Ss' if self.every else ''} = {run} {call}",
            f"output out: f32[{value}] = {post}",
            "output s0 = S" if "inplace" in start else f"output s1: f32[{state}] = S",
        ]
        body += ["output after: f32[B, P, Hv, K, V] = Ss"] if self.every else []
        heads = pick.choice(["Hk G", "G Hk"])
        axes = (
            f"B, {'T, ' if self.tokens else ''}{'P, ' if self.every else ''}Hk, G, Hv = ({heads})"
        )
        lines = [f"axes {axes}, K, V", *filter(None, inputs), *body]
        self.text = "use delta_rule, gates, norms\nkernel m:\n    " + "\n    ".join(lines) + "\n"
        self.sizes = {
            "B": pick.choice([1, 3]),
            "Hk": pick.choice([1, 2, 5]),
            "G": pick.choice([1, 3]),
        }
        self.sizes |= {"K": pick.choice([4, 16, 40]), "V": pick.choice([1, 12, 130])}
        if self.tokens:
            self.sizes["T"] = max(self.every or 0, pick.choice([1, 16, 37, 65]))
        self.settings: dict[str, Any] = {}
        if self.tokens:
            chunk = pick.choice([16, self.every or 64])
            self.settings = {"chunk": chunk} if self.chunked else {"form": "recurrent"}
        self.target, self.lnc = pick.choice(["trn2", "trn3"]), pick.choice([1, 2])


@pytest.mark.parametrize("seed", range(24))
def test_emitted_is_defined(seed: int) -> None:
    made = Composed(seed)
    definition = gdsl.loads(made.text)
    given = dict(gdsl.random_inputs(definition, made.sizes, seed))
    if made.flag:
        given["keep"] = np.arange(made.sizes["B"]) % 2 == 1
        given["s0"][::2] = np.nan
    if made.valid:
        rng = np.random.default_rng(seed)
        given["valid_len"] = rng.integers(0, made.sizes["T"] + 1, made.sizes["B"]).astype(np.int32)
    right = gdsl.run(definition, given, precision="float64")
    got = gdsl.run(
        definition,
        given,
        backend="simulator",
        target=made.target,
        lnc=made.lnc,
        settings=made.settings,
    )
    for name, array in right.items():
        scale = max(float(np.sqrt(np.mean(array**2))), 1e-3)
        assert np.abs(got[name] - array).max(initial=0) < 5e-4 * scale, made.text
