"""Measure the interpreter against the token loop of transformers, on this CPU, in one run.

`python examples/bench/interpreter_speed.py`: the recurrence of a Gated DeltaNet prompt in fp32, one
sequence, 16 key and 32 value heads, 512 tokens, K = V = 128. Needs the `oracle` extra. Both get the
same arrays, and what they return is compared before anything is timed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import gdsl

TOKENS, KEY_HEADS, VALUE_HEADS, WIDTH = 512, 16, 32, 128
REPEATS = 5


def arguments() -> dict[str, Any]:
    """Normalised queries and keys, gates of a trained layer's size."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2, 1, KEY_HEADS, TOKENS, WIDTH)).astype(np.float32)
    query, key = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    shape = (1, VALUE_HEADS, TOKENS)
    return {
        "query": query,
        "key": key,
        "value": rng.standard_normal((*shape, WIDTH)).astype(np.float32),
        "g_log": -rng.random(shape).astype(np.float32),
        "beta": rng.random(shape).astype(np.float32),
        "scale": WIDTH**-0.5,
    }


def seconds(run: Callable[[], Any]) -> float:
    """Return the duration of one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def token_loop() -> Callable[..., Any]:
    """Return transformers' function in torch; it would hand over to a GPU package it can import."""
    sys.modules["fla"] = None  # type: ignore[assignment]
    from transformers.models.qwen3_next import modeling_qwen3_next

    loop: Callable[..., Any] = modeling_qwen3_next.torch_recurrent_gated_delta_rule
    return loop


def main() -> None:
    """Compare, then time both."""
    torch_loop = token_loop()
    given = arguments()
    kernel = gdsl.load("gdn_cte")
    tensors = [torch.from_numpy(given[name]).transpose(1, 2) for name in given if name != "scale"]

    def ours() -> Any:
        return gdsl.run(kernel, given, precision="float32")["out"]

    def theirs() -> Any:
        return torch_loop(*tensors, None, True)[0].transpose(1, 2).numpy()

    difference = float(np.abs(ours() - theirs()).max())
    # In turn, so that whatever else this machine does meets both alike.
    times = [(seconds(ours), seconds(theirs)) for _ in range(REPEATS)]
    mine, loop = (min(column) for column in zip(*times, strict=True))
    print(
        f"gated delta rule, fp32, heads {KEY_HEADS}/{VALUE_HEADS}, T {TOKENS}, K = V = {WIDTH}, "
        f"torch threads {torch.get_num_threads()}; largest difference {difference:.1e}"
    )
    print(f"interpreter                       {mine:.3f} s measured, best of {REPEATS}")
    print(f"torch_recurrent_gated_delta_rule  {loop:.3f} s measured, best of {REPEATS}")
    print(f"interpreter / torch               {mine / loop:.2f}")


if __name__ == "__main__":
    with torch.no_grad():
        main()
