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
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np
from attrs import frozen

from gdsl import api, registry
from gdsl.ir.dtypes import Dtype
from gdsl.launch import launch
from gdsl.pipeline import Definition
from gdsl.runner import Array, RunOptions

Arrays = dict[str, Array]
FP32_BOUND, BF16_BOUND = 1e-5, 2.5e-2
BF16 = Dtype.BF16.numpy


@frozen
class Layer:
    """A layer of transformers, and the kernels that stand for it."""

    label: str
    model: str
    """Module of transformers.models."""
    classes: tuple[str, str, str]
    """Configuration, base model (for its initialisation), mixer."""
    prefill: str | None
    """The kernel of a prompt; None: the decode kernel token by token."""
    decode: str
    small: Mapping[str, int]
    """Configuration of a layer that is quick to simulate."""
    output: str
    """The projection behind what we compute."""
    weights: Callable[[Any], tuple[Arrays, Arrays]]
    """The weights of the prefill kernel and of the decode kernel."""
    windows: Callable[[Array], Arrays]
    """The convolution window [B, channels, W] as the decode kernel takes it."""


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
        case = _transformers(layer, chosen)
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


# ---- transformers


@frozen
class Case:
    """What transformers computed."""

    title: str
    hidden: Array
    """[1, tokens, hidden size], in bf16's numbers."""
    out: Array
    """In front of the output projection, [tokens, heads, V]."""
    states: tuple[Array, Array]
    """After the prompt and after the last token, [heads, K, V]."""
    prefill: Arrays
    decode: Arrays


def _transformers(layer: Layer, chosen: argparse.Namespace) -> Case:
    """Run the layer of transformers: the prompt at once, then token by token."""
    # transformers would hand its functions over to flash-linear-attention's GPU kernels.
    sys.modules["fla"] = None  # type: ignore[assignment]
    import torch
    from transformers import DynamicCache
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    torch.manual_seed(9)
    torch.set_grad_enabled(False)
    module = _model(layer.model)
    config_class, base, mixer_class = (getattr(module, name) for name in layer.classes)
    config = config_class(**{"num_hidden_layers": 1, **(layer.small if chosen.small else {})})
    mixer = getattr(module, mixer_class.__name__)(config, 0).eval()
    initialised = base(config)
    for part in mixer.modules():
        initialised._init_weights(part)
    mixer.to(torch.bfloat16).to(torch.float32)
    tokens = chosen.prompt + chosen.steps
    hidden = torch.randn(1, tokens, config.hidden_size).to(torch.bfloat16).to(torch.float32)
    seen: list[Any] = []
    getattr(mixer, layer.output).register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    cache = DynamicCache(config=config)
    mixer(hidden[:, : chosen.prompt], cache)
    states = [_recurrent(cache)]
    for t in range(chosen.prompt, tokens):
        mixer(hidden[:, t : t + 1], cache)
    states.append(_recurrent(cache))
    heads, K, V = states[-1].shape
    out = torch.cat(seen, 1)[0].numpy().reshape(tokens, heads, V)
    prefill, decode = layer.weights(mixer)
    title = f"{layer.classes[2]}, hidden {config.hidden_size}, {heads} heads, K {K}, V {V}"
    return Case(title, hidden.numpy(), out, (states[0], states[1]), prefill, decode)


def _recurrent(cache: Any) -> Array:
    """The state of the one layer and row, [heads, K, V]."""
    state: Array = cache.get_recurrent_state(0, state_idx=0)[0].numpy().copy()
    return state


def _model(name: str) -> ModuleType:
    """The module of a model, with its configuration's names."""
    found = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    config = importlib.import_module(f"transformers.models.{name}.configuration_{name}")
    for key, value in vars(config).items():
        found.__dict__.setdefault(key, value)
    return found


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


# ---- the layers


def _columns(linear: Any) -> Array:
    """The weight of a torch projection as [hidden, channels]."""
    return np.ascontiguousarray(linear.weight.numpy().T)


def _taps(mixer: Any) -> Array:
    """The weight of its convolution as [channels, W]."""
    return np.ascontiguousarray(mixer.conv1d.weight.numpy()[:, 0])


def _gates(mixer: Any) -> Arrays:
    return {
        "A_log": mixer.A_log.numpy(),
        "dt_bias": mixer.dt_bias.numpy(),
        "norm_weight": mixer.norm.weight.numpy(),
    }


def _qwen3_5(mixer: Any) -> tuple[Arrays, Arrays]:
    weights = {
        "W_in_qkv": _columns(mixer.in_proj_qkv),
        "W_in_z": _columns(mixer.in_proj_z),
        "W_in_a": _columns(mixer.in_proj_a),
        "W_in_b": _columns(mixer.in_proj_b),
        "conv_weight": _taps(mixer),
        **_gates(mixer),
    }
    return weights, weights


def _qwen3_next(mixer: Any) -> tuple[Arrays, Arrays]:
    """The prefill kernel takes the weights sorted, the decode kernel as the checkpoint has them."""
    qkvz, ba = _columns(mixer.in_proj_qkvz), _columns(mixer.in_proj_ba)
    hidden, heads = qkvz.shape[0], mixer.num_k_heads
    grouped = mixer.value_dim // heads
    borders = np.cumsum([mixer.head_k_dim, mixer.head_k_dim, grouped])
    fields = np.split(qkvz.reshape(hidden, heads, -1), borders, axis=2)
    q, k, v, z = (field.reshape(hidden, -1) for field in fields)
    b, a = (part.reshape(hidden, -1) for part in np.split(ba.reshape(hidden, heads, -1), 2, axis=2))
    taps = _taps(mixer)
    sorted_weights = {
        "W_in_qkv": np.concatenate([q, k, v], 1),
        "W_in_z": z,
        "W_in_a": a,
        "W_in_b": b,
        "conv_weight": taps,
        **_gates(mixer),
    }
    parts = np.split(taps, np.cumsum([mixer.key_dim, mixer.key_dim]))
    own = dict(zip(("conv_q", "conv_k", "conv_v"), parts, strict=True))
    return sorted_weights, {"W_qkvz": qkvz, "W_ba": ba, **own, **_gates(mixer)}


def _kimi_linear(mixer: Any) -> tuple[Arrays, Arrays]:
    gate = mixer.forget_gate
    taps = dict(zip(("conv_q", "conv_k", "conv_v"), np.split(_taps(mixer), 3), strict=True))
    weights = {
        "W_q": _columns(mixer.q_proj),
        "W_k": _columns(mixer.k_proj),
        "W_v": _columns(mixer.v_proj),
        "W_f_down": _columns(gate.f_a_proj),
        "W_f_up": _columns(gate.f_b_proj),
        "W_g_down": _columns(mixer.g_a_proj),
        "W_g_up": _columns(mixer.g_b_proj),
        "W_b": _columns(mixer.b_proj),
        **taps,
        "A_log": gate.A_log.numpy().reshape(-1),
        "dt_bias": gate.dt_bias.numpy(),
        "norm_weight": mixer.o_norm.weight.numpy(),
    }
    return {}, weights


def _thirds(window: Array) -> Arrays:
    """Windows of q, k and v of Qwen3-Next: half as many value channels as all together."""
    q, k, v = np.split(window, (window.shape[1] // 4, window.shape[1] // 2), axis=1)
    return {"conv_state_q": q, "conv_state_k": k, "conv_state_v": v}


_SMALL = {
    "hidden_size": 128,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
}
LAYERS = {
    "qwen3_next": Layer(
        "Qwen3-Next",
        "qwen3_next",
        ("Qwen3NextConfig", "Qwen3NextPreTrainedModel", "Qwen3NextGatedDeltaNet"),
        "gdn_block_prefill",
        "qwen3next_block_tkg",
        _SMALL,
        "out_proj",
        _qwen3_next,
        _thirds,
    ),
    "qwen3_5": Layer(
        "Qwen3.5",
        "qwen3_5",
        ("Qwen3_5TextConfig", "Qwen3_5PreTrainedModel", "Qwen3_5GatedDeltaNet"),
        "gdn_block_prefill",
        "gdn_block_tkg",
        _SMALL,
        "out_proj",
        _qwen3_5,
        lambda window: {"conv_state": window},
    ),
    "kimi_linear": Layer(
        "Kimi-Linear",
        "kimi_linear",
        ("KimiLinearConfig", "KimiLinearPreTrainedModel", "KimiLinearDeltaAttention"),
        None,
        "kda_block_tkg",
        {"hidden_size": 128, "linear_num_heads": 2, "linear_head_dim": 32},
        "o_proj",
        _kimi_linear,
        lambda window: {},
    ),
}

if __name__ == "__main__":
    sys.exit(main())
