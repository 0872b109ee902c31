"""What a layer of transformers computes: a prompt at once, then token by token."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from attrs import frozen

from examples.layers.definitions import Arrays, Layer
from gdsl.runner import Array


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
    windows: tuple[Array, Array]
    """Likewise, [channels, W]."""
    weights: Arrays


def transformers_case(layer: Layer, prompt: int, steps: int, *, small: bool) -> Case:
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
    config = config_class(**{"num_hidden_layers": 1, **(layer.small if small else {})})
    mixer = getattr(module, mixer_class.__name__)(config, 0).eval()
    initialised = base(config)
    for part in mixer.modules():
        initialised._init_weights(part)
    mixer.to(torch.bfloat16).to(torch.float32)
    tokens = prompt + steps
    hidden = torch.randn(1, tokens, config.hidden_size).to(torch.bfloat16).to(torch.float32)
    seen: list[Any] = []
    getattr(mixer, layer.output).register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    cache = DynamicCache(config=config)
    mixer(hidden[:, :prompt], cache)
    states, windows = [_recurrent(cache)], [_window(cache)]
    for t in range(prompt, tokens):
        mixer(hidden[:, t : t + 1], cache)
    states.append(_recurrent(cache))
    windows.append(_window(cache))
    heads, K, V = states[-1].shape
    out = torch.cat(seen, 1)[0].numpy().reshape(tokens, heads, V)
    title = f"{layer.classes[2]}, hidden {config.hidden_size}, {heads} heads, K {K}, V {V}"
    carried = (states[0], states[1]), (windows[0], windows[1])
    return Case(title, hidden.numpy(), out, *carried, layer.weights(mixer))


def _recurrent(cache: Any) -> Array:
    """The state of the one layer and row, [heads, K, V]."""
    state: Array = cache.get_recurrent_state(0, state_idx=0)[0].numpy().copy()
    return state


def _window(cache: Any) -> Array:
    """The convolution's window of the one layer and row, [channels, W]."""
    window: Array = cache.get_conv_state(0, state_idx=0)[0].numpy().copy()
    return window


def _model(name: str) -> ModuleType:
    """The module of a model, with its configuration's names."""
    found = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    config = importlib.import_module(f"transformers.models.{name}.configuration_{name}")
    for key, value in vars(config).items():
        found.__dict__.setdefault(key, value)
    return found
