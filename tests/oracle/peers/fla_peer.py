"""Runs in a process of its own: the naive references of flash-linear-attention.

`python fla_peer.py OUT.npz`. The package's own `__init__` files import its GPU kernels, so the
packages are put in place empty and only the files `naive.py` are executed. Keys of the file are
`case/name`; `case/out` and `case/state` are theirs, everything else is an input.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import torch

B, T, H, K, V = 2, 64, 4, 64, 96
Tensors = dict[str, Any]


def naive(operator: str) -> Any:
    """Return the module `fla.ops.OPERATOR.naive` without running the packages around it."""
    root = Path(str(importlib.metadata.distribution("fla-core").locate_file("")))
    name = ""
    for part in ("fla", "ops", operator):
        name = f"{name}.{part}".lstrip(".")
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")))]
        sys.modules[name] = package
    return importlib.import_module(f"fla.ops.{operator}.naive")


def unit(*shape: int) -> torch.Tensor:
    """Random rows of length 1."""
    return torch.nn.functional.normalize(torch.randn(*shape), dim=-1)


def decay(*shape: int) -> torch.Tensor:
    """Log decays, a third of them exactly 0."""
    return -torch.rand(*shape) * (torch.rand(*shape) > 1 / 3)


def delta_rule() -> Tensors:
    """DeltaNet; tensors [B, H, T, .]."""
    q, k, v = unit(B, H, T, K), unit(B, H, T, K), torch.randn(B, H, T, V)
    beta, s0 = torch.rand(B, H, T), torch.randn(B, H, K, V)
    out, state = naive("delta_rule").delta_rule_recurrence(q, k, v, beta, s0)
    return {"q": q, "k": k, "v": v, "beta": beta, "s0": s0, "out": out, "state": state}


def gated_delta_rule() -> Tensors:
    """GDN."""
    q, k, v = unit(B, T, H, K), unit(B, T, H, K), torch.randn(B, T, H, V)
    beta, g, s0 = torch.rand(B, T, H), decay(B, T, H), torch.randn(B, H, K, V)
    out, state = naive("gated_delta_rule").naive_recurrent_gated_delta_rule(
        q, k, v, beta, g, initial_state=s0, output_final_state=True
    )
    return {"q": q, "k": k, "v": v, "beta": beta, "g": g, "s0": s0, "out": out, "state": state}


def kda() -> Tensors:
    """KDA with two value heads for each key head."""
    q, k, v = unit(B, T, H, K), unit(B, T, H, K), torch.randn(B, T, 2 * H, V)
    beta, g, s0 = torch.rand(B, T, 2 * H), decay(B, T, 2 * H, K), torch.randn(B, 2 * H, K, V)
    out, state = naive("kda").naive_recurrent_kda(
        q, k, v, g, beta, initial_state=s0, output_final_state=True
    )
    return {"q": q, "k": k, "v": v, "beta": beta, "g": g, "s0": s0, "out": out, "state": state}


def gdn2() -> Tensors:
    """GDN-2."""
    q, k, v = unit(B, T, H, K), unit(B, T, H, K), torch.randn(B, T, H, V)
    g, b, w = decay(B, T, H, K), torch.rand(B, T, H, K), torch.rand(B, T, H, V)
    s0 = torch.randn(B, H, K, V)
    out, state = naive("gdn2").naive_recurrent_gdn2(
        q, k, v, g, b, w, initial_state=s0, output_final_state=True
    )
    return {"q": q, "k": k, "v": v, "g": g, "b": b, "w": w, "s0": s0, "out": out, "state": state}


def gated_delta_product(n: int = 3) -> Tensors:
    """DeltaProduct, n sub-steps a token."""
    q, k, v = unit(B, T, H, K), unit(B, T * n, H, K), torch.randn(B, T * n, H, V)
    beta, g, s0 = 2 * torch.rand(B, T * n, H), decay(B, T, H), torch.randn(B, H, K, V)
    out, state = naive("gated_delta_product").naive_recurrent_gated_delta_product(
        q, k, v, g, beta, K**-0.5, None, s0.clone(), True, n
    )
    split = {"k": k, "v": v, "beta": beta}
    split = {name: x.reshape(B, T, n, *x.shape[2:]) for name, x in split.items()}
    return {"q": q, "g": g, "s0": s0, "out": out, "state": state, **split}


def comba() -> Tensors:
    """Comba."""
    q, k, p, v = unit(B, T, H, K), unit(B, T, H, K), unit(B, T, H, K), torch.randn(B, T, H, V)
    beta, g, s0 = torch.rand(B, T, H), decay(B, T, H), torch.randn(B, H, K, V)
    out, state = naive("comba").naive_recurrent_comba(
        q, k, v, p, beta, g, initial_state=s0, output_final_state=True
    )
    inputs = {"q": q, "k": k, "p": p, "v": v, "beta": beta, "g": g, "s0": s0}
    return {**inputs, "out": out, "state": state}


def gla() -> Tensors:
    """GLA, from a finished log decay."""
    q, k, v = torch.randn(B, T, H, K), torch.randn(B, T, H, K), torch.randn(B, T, H, V)
    g, s0 = decay(B, T, H, K), torch.randn(B, H, K, V)
    out, state = naive("gla").naive_recurrent_gla(q, k, v, g, s0, True)
    return {"q": q, "k": k, "v": v, "g": g, "s0": s0, "out": out, "state": state}


def simple_gla() -> Tensors:
    """Simple GLA."""
    q, k, v = torch.randn(B, T, H, K), torch.randn(B, T, H, K), torch.randn(B, T, H, V)
    g, s0 = decay(B, T, H), torch.randn(B, H, K, V)
    out, state = naive("simple_gla").naive_recurrent_simple_gla(q, k, v, g, initial_state=s0)
    return {"q": q, "k": k, "v": v, "g": g, "s0": s0, "out": out, "state": state}


def retention() -> Tensors:
    """RetNet; tensors [B, H, T, .]. It has no state."""
    q, k, v = torch.randn(B, H, T, K), torch.randn(B, H, T, K), torch.randn(B, H, T, V)
    return {"q": q, "k": k, "v": v, "out": naive("retention").naive_retention(q, k, v)}


CASES = (
    delta_rule,
    gated_delta_rule,
    kda,
    gdn2,
    gated_delta_product,
    comba,
    gla,
    simple_gla,
    retention,
)


def main(path: str) -> None:
    """Write every case."""
    torch.manual_seed(20)
    np.savez(
        path,
        **{
            f"{case.__name__}/{name}": tensor.numpy()
            for case in CASES
            for name, tensor in case().items()
        },
    )


if __name__ == "__main__":
    main(sys.argv[1])
