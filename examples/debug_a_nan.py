"""Where does a NaN come from? A hook sees every value that a run computes, token by token."""

import numpy as np

import gdsl
from gdsl.debug.nan_origin import NanOrigin
from gdsl.debug.watch import Watch
from gdsl.errors import RunError
from gdsl.runner import Event

TEXT = """
use delta_rule
kernel decays:
    axes B, T, K, V
    input q, k: f32[B, T, K]
    input v: f32[B, T, V]
    input w: f32[B, T]
    state S: f32[B, K, V] = s0
    decay = sqrt(w)
    o, S = scan[T] gated_delta(q, k, v, decay, 0.5, S)
    output out: f32[B, T, V] = o
    output s1: f32[B, K, V] = S
"""

kernel = gdsl.loads(TEXT)
inputs = gdsl.random_inputs(kernel, {"B": 1, "T": 5, "K": 4, "V": 4})
inputs["w"] = np.array([[0.9, 0.8, -0.1, 0.9, 0.9]], np.float32)

outputs = gdsl.run(kernel, inputs)
print("NaN in the output:", int(np.isnan(outputs["out"]).sum()), "of", outputs["out"].size)

try:
    gdsl.run(kernel, inputs, hook=NanOrigin(kernel.kernel))
except RunError as error:
    print("origin:", error)

# The same in words of your own: any function of an Event is a hook, and may stop the run.
largest: dict[str, float] = {}


def remember(event: Event) -> None:
    size = float(np.max(np.abs(event.values), initial=0.0, where=np.isfinite(event.values)))
    largest[event.name] = max(largest.get(event.name, 0.0), size)


gdsl.run(kernel, inputs, hook=remember)
print("largest values:", {name: round(value, 3) for name, value in largest.items()})

print("the state, token by token:")
gdsl.run(kernel, inputs, hook=Watch(kernel.kernel, ["S"], lambda line: print("  ", line)))
