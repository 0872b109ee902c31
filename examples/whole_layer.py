"""Whole linear-attention layers of transformers against our kernels: a prompt, then decoding.

    python -m examples.whole_layer
    python -m examples.whole_layer --small --layers qwen3_next,kimi_linear --steps 4

Each layer is a module of transformers with its model's own initialisation, its weights rounded to
bf16 as a checkpoint holds them, in float32 arithmetic; it is judged in front of its output
projection. Ours takes the prompt in one call and then a token per call, once in the interpreter and
once as emitted kernels on the simulator, each going on from its own window and state; and that in
two precisions: fp32 (nothing is rounded) and as declared (bf16 weights, activations and windows).
Needs torch and transformers. Exit 1 where a bound does not hold.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from time import perf_counter

import numpy as np

from examples.layers.definitions import LAYERS, TAPS
from examples.layers.ours import Ran, Way, run
from examples.layers.reference import Case, transformers_case
from gdsl.runner import Array

BOUNDS = {"fp32": 1e-5, "declared": 2.5e-2}
"""The largest e_rms, by precision."""
LEGEND = """\
e_rms against transformers in float32, the largest of a head over all tokens of a line: of what goes
into the output projection, of the state and of the convolution's window (all channels) behind them
"""


def main() -> int:
    """Print one page; exit 1 where a bound does not hold, 2 where nothing can run."""
    chosen = _arguments()
    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if missing:
        print(f"needs {' and '.join(missing)}: pip install 'gdsl[oracle]'", file=sys.stderr)
        return 2
    held = True
    print(LEGEND)
    for name in chosen.layers.split(","):
        held = _page(name, chosen) and held
    print("all bounds hold" if held else "A BOUND DOES NOT HOLD")
    return 0 if held else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--layers", default=",".join(LAYERS), metavar="NAME,...")
    parser.add_argument("--prompt", type=int, default=37, metavar="TOKENS")
    parser.add_argument("--steps", type=int, default=16, metavar="TOKENS")
    parser.add_argument("--lnc", type=int, default=1, choices=(1, 2))
    parser.add_argument("--small", action="store_true", help="few and small heads")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.layers.split(",") if name not in LAYERS]
    if unknown:
        parser.error(f"there is no layer `{unknown[0]}`; known: {', '.join(LAYERS)}")
    for option in ("prompt", "steps"):
        if getattr(chosen, option) < 1:
            parser.error(f"--{option} takes 1 token or more")
    return chosen


def _page(name: str, chosen: argparse.Namespace) -> bool:
    """Print the table of a layer; return whether all its bounds hold."""
    layer, began, held = LAYERS[name], perf_counter(), True
    case = transformers_case(layer, chosen.prompt, chosen.steps, small=chosen.small)
    print(f"{layer.label}: {case.title}, {chosen.prompt} + {chosen.steps} tokens")
    print("  | kernel | tokens | by | precision | out | state | window | bound | |")
    print("  |---|---:|---|---|---:|---:|---:|---:|---|")
    for precision, bound in BOUNDS.items():
        for way in (Way(precision, None), Way(precision, chosen.lnc)):
            for at, ran in enumerate(run(layer, case, chosen.prompt, way)):
                errors = _errors(ran, case, at, chosen.prompt)
                good = max(errors) <= bound
                cells = [ran.kernel, str(ran.tokens), way.name, precision]
                cells += [*(f"{error:.1e}" for error in errors), f"{bound:.1e}"]
                print("  |", " | ".join([*cells, "ok" if good else "TOO FAR"]), "|", flush=True)
                held = held and good
    print(f"  {perf_counter() - began:.1f} s\n")
    return held


def _errors(ran: Ran, case: Case, at: int, prompt: int) -> tuple[float, float, float]:
    """Of the outputs, the state and the window of the prompt (`at` 0) or of the steps (1)."""
    expected = case.out[prompt:] if at else case.out[:prompt]
    parts = [ran.states[name][0] for name in TAPS if name in ran.states]
    window = np.concatenate(parts).astype(np.float64)
    state = ran.states["recurrent_state"].astype(np.float64)
    return (
        _e_rms(ran.out, expected),
        _e_rms(state, case.states[at][None]),
        _e_rms(window[:, None], case.windows[at][:, None]),
    )


def _e_rms(x: Array, reference: Array) -> float:
    """The largest rms error of a head (dimension 1), relative to the rms of what it should be."""
    assert x.shape == reference.shape
    axes = (0, *range(2, x.ndim))
    exact = reference.astype(np.float64)
    rms = np.sqrt(np.mean(np.square(exact), axes))
    scale = np.maximum(rms, 0.01 * np.sqrt(np.mean(np.square(rms))))
    # A NaN is as far off as can be.
    error = np.nan_to_num(np.sqrt(np.mean(np.square(x - exact), axes)), nan=np.inf)
    return float(np.max(error / scale))


if __name__ == "__main__":
    sys.exit(main())
