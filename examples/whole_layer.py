"""Whole linear-attention layers of transformers against our kernels: a prompt, then decoding.

    python -m examples.whole_layer
    python -m examples.whole_layer --small --layers qwen3_next,kimi_linear --steps 4

Each layer is a module of transformers with its model's own initialisation, its weights rounded to
bf16 as a checkpoint holds them, in float32 arithmetic; it is judged in front of its output
projection. The prompt goes through the interpreter; its window and state are what the decode steps
begin with. Every step is done by the interpreter and by the emitted kernel on the simulator, each
with its own states, in two precisions: fp32 (nothing is rounded) and as declared (bf16 weights,
activations and windows). The error is the largest e_rms of a head over all steps; needs torch and
transformers. Exit 1 where a bound does not hold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

from examples.layers.definitions import LAYERS, Arrays, Layer
from examples.layers.reference import Case, transformers_case
from gdsl import api, registry
from gdsl.ir.dtypes import Dtype
from gdsl.launch import launch
from gdsl.pipeline import Definition
from gdsl.runner import Array, RunOptions

FP32_BOUND, BF16_BOUND = 1e-5, 2.5e-2
BF16 = Dtype.BF16.numpy


def main() -> int:
    """Print one page; exit 1 where a bound does not hold."""
    chosen = _arguments()
    held = True
    for line, good in _report(chosen):
        print(line, flush=True)
        held = held and good
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
    return chosen


def _report(chosen: argparse.Namespace) -> Iterator[tuple[str, bool]]:
    """Lines of the page, and whether each is within its bound."""
    for name in chosen.layers.split(","):
        layer = LAYERS[name]
        began = perf_counter()
        case = transformers_case(layer, chosen.prompt, chosen.steps, small=chosen.small)
        yield f"{layer.label}: {case.title}, {chosen.prompt} + {chosen.steps} tokens", True
        yield "  | kernel | by | precision | e_rms out | e_rms state | bound |", True
        yield "  |---|---|---|---:|---:|---:|", True
        for precision, bound in (("fp32", FP32_BOUND), ("declared", BF16_BOUND)):
            for row in _compared(layer, case, chosen, precision):
                kernel, by, errors = row
                good = max(errors) <= bound
                texts = " | ".join(f"{error:.1e}" for error in errors)
                yield f"  | {kernel} | {by} | {precision} | {texts} | {bound:.1e} |", good
        yield f"  {perf_counter() - began:.1f} s", True


# ---- ours

Step = Callable[[Arrays], Arrays]


def _compared(
    layer: Layer, case: Case, chosen: argparse.Namespace, precision: str
) -> Iterator[tuple[str, str, tuple[float, float]]]:
    """(kernel, by whom, errors of outputs and state) for the prompt and the steps after it."""
    decode = api.load(layer.decode)
    carried, out = _prompt(layer, case, chosen.prompt, precision)
    name = layer.prefill or layer.decode
    errors = _e_rms(out, case.out[: chosen.prompt]), _e_state(carried, case.states[0])
    yield name, "interpreter", errors
    steps = {
        "interpreter": _interpreter(decode, precision),
        f"simulated, LNC {chosen.lnc}": _simulator(decode, precision, chosen.lnc),
    }
    for by, step in steps.items():
        state = dict(carried)
        out = _decode(decode, step, case, chosen.prompt, state, precision)
        errors = _e_rms(out, case.out[chosen.prompt :]), _e_state(state, case.states[1])
        yield layer.decode, by, errors


def _prompt(layer: Layer, case: Case, tokens: int, precision: str) -> tuple[Arrays, Array]:
    """States after the prompt, by the decode kernel's argument names, and its outputs."""
    hidden = case.hidden[:, :tokens]
    if layer.prefill is None:
        kernel = api.load(layer.decode)
        step = _interpreter(kernel, precision)
        zeros = _zeros(kernel, case)
        return zeros, _decode(kernel, step, case, 0, zeros, precision, tokens)
    kernel = api.load(layer.prefill)
    zeros = {
        "conv_state": np.zeros((1, *case.prefill["conv_weight"].shape), np.float32),
        "recurrent_state": np.zeros((1, *case.states[0].shape), np.float32),
    }
    given = _typed(kernel, {**case.prefill, **zeros, "hidden": hidden}, precision)
    outputs = _interpreter(kernel, precision)(given)
    carried = layer.windows(np.asarray(outputs["conv_state"], np.float32))
    carried["recurrent_state"] = np.asarray(outputs["recurrent_state"])
    return carried, _by_head(outputs["core_out"], case)


def _decode(
    kernel: Definition,
    step: Step,
    case: Case,
    first: int,
    carried: Arrays,
    precision: str,
    count: int | None = None,
) -> Array:
    """Return the outputs of tokens from `first` on, one call each; `carried` is moved on."""
    argument = _states(kernel)
    last = case.hidden.shape[1] if count is None else first + count
    out: list[Array] = []
    for t in range(first, last):
        given = {**case.decode, **carried, "hidden": case.hidden[:, t : t + 1]}
        outputs = step(_typed(kernel, given, precision))
        for output, name in argument.items():
            carried[name] = np.asarray(outputs[output])
        out.append(np.asarray(outputs["core_out"], np.float64).reshape(1, case.out.shape[1], -1))
    return np.concatenate(out)


def _states(kernel: Definition) -> dict[str, str]:
    """The state argument that each returned state is for the next call, by place in the text."""
    outputs = [o.name for o in kernel.kernel.outputs if o.name != "core_out"]
    return dict(zip(outputs, (s.argument for s in kernel.kernel.states), strict=True))


def _zeros(kernel: Definition, case: Case) -> Arrays:
    """States of a kernel with one window for each of q, k and v."""
    shapes: dict[str, tuple[int, ...]] = {"recurrent_state": (1, *case.states[0].shape)}
    for part in ("q", "k", "v"):
        shapes[f"conv_state_{part}"] = (1, *case.decode[f"conv_{part}"].shape)
    return {s.argument: np.zeros(shapes[s.argument], np.float32) for s in kernel.kernel.states}


def _typed(kernel: Definition, given: Arrays, precision: str) -> Arrays:
    """Arguments in the dtypes the text declares, or all in float32."""
    if precision == "fp32":
        return {name: np.asarray(value, np.float32) for name, value in given.items()}
    declared = {i.name: i.dtype for i in kernel.kernel.inputs}
    declared |= {s.argument: s.dtype for s in kernel.kernel.states}
    return {
        name: value.astype(BF16 if declared[name] == Dtype.BF16 else np.float32)
        for name, value in given.items()
    }


def _interpreter(kernel: Definition, precision: str) -> Step:
    options = RunOptions("float32" if precision == "fp32" else "declared")
    return lambda given: registry.interpreter().run(kernel.kernel, given, options)


def _simulator(kernel: Definition, precision: str, lnc: int) -> Step:
    program = api.compile(kernel, target="trn2").nki

    def step(given: Arrays) -> Arrays:
        return launch(program, kernel.kernel, given, lnc=lnc, widen=precision == "fp32")[0]

    return step


def _by_head(out: Array, case: Case) -> Array:
    return np.asarray(out, np.float64).reshape(-1, *case.out.shape[1:])


def _e_rms(x: Array, reference: Array) -> float:
    """The largest rms error of a head (dimension 1), relative to the rms of what it should be."""
    axes = (0, *range(2, x.ndim))
    rms = np.sqrt(np.mean(np.square(reference.astype(np.float64)), axes))
    scale = np.maximum(rms, 0.01 * np.sqrt(np.mean(np.square(rms))))
    error = np.sqrt(np.mean(np.square(x - reference.astype(np.float64)), axes))
    return float(np.max(error / scale))


def _e_state(carried: Arrays, reference: Array) -> float:
    return _e_rms(np.asarray(carried["recurrent_state"], np.float64), reference[None])


if __name__ == "__main__":
    sys.exit(main())
