"""Runs in a process of its own: what transformers' models compute, with their own initialisation.

`python transformers_peer.py OUT.npz`. flash-linear-attention is made unimportable first, because
transformers hands its torch functions over to that package's GPU kernels when it is there. Keys of
the file are `case/name`; `case/out` and `case/state` are theirs, everything else is an input.
"""

from __future__ import annotations

import importlib
import math
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.nn.functional import softplus

sys.modules["fla"] = None  # type: ignore[assignment]


def model(name: str) -> Any:
    """The modules `configuration_NAME` and `modeling_NAME` of a model, as one namespace."""
    parts = (
        importlib.import_module(f"transformers.models.{name}.{part}_{name}")
        for part in ("configuration", "modeling")
    )
    return SimpleNamespace(**{key: value for part in parts for key, value in vars(part).items()})


glm5, kimi, olmo, qwen35, qwen3n = (
    model(name) for name in ("glm5_next", "kimi_linear", "olmo_hybrid", "qwen3_5", "qwen3_next")
)

Tensors = dict[str, Any]
PROMPT = 133
"""Tokens of a prompt: more than one chunk of 128, not a multiple of their 64."""


def qwen3_next(tokens: int = 64) -> Tensors:
    """The mixer of Qwen3-Next (16/32 heads, K = V = 128), decoding token by token."""
    mixer = qwen3n.Qwen3NextGatedDeltaNet(qwen3n.Qwen3NextConfig(num_hidden_layers=1), 0)
    for projection in (mixer.in_proj_qkvz, mixer.in_proj_ba):
        torch.nn.init.normal_(projection.weight, std=0.02)
    hidden = torch.randn(1, tokens, mixer.hidden_size)
    q, k, v, z, b, a = mixer.fix_query_key_value_ordering(
        mixer.in_proj_qkvz(hidden), mixer.in_proj_ba(hidden)
    )
    mixed = torch.cat([x.flatten(2) for x in (q, k, v)], -1).transpose(1, 2)
    taps = mixer.conv1d.weight.squeeze(1)
    mixed = qwen3n.causal_conv1d_fn(mixed, taps, None, activation="silu").transpose(1, 2)
    q, k, v = mixed.split([mixer.key_dim, mixer.key_dim, mixer.value_dim], -1)
    q, k, v = (x.reshape(1, tokens, -1, 128) for x in (q, k, v))
    g = -mixer.A_log.float().exp() * softplus(a.float() + mixer.dt_bias)
    out: list[Any] = []
    state: Any = None
    for t in range(tokens):
        core, state = qwen3n.torch_recurrent_gated_delta_rule(
            *(x[:, t : t + 1] for x in (q, k, v)),
            g=g[:, t : t + 1],
            beta=b[:, t : t + 1].sigmoid(),
            initial_state=state,
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
        )
        out.append(mixer.norm(core.reshape(-1, 128), z[:, t].reshape(-1, 128)))
    return {
        "q": q[0].repeat_interleave(2, 1),
        "k": k[0].repeat_interleave(2, 1),
        "v": v[0],
        "z": z[0],
        "b": b[0],
        "a": a[0],
        "A_log": mixer.A_log,
        "dt_bias": mixer.dt_bias,
        "norm_weight": mixer.norm.weight,
        "out": torch.stack(out),
        "state": state[0],
    }


def gated_delta(
    function: Any, Hk: int, Hv: int, K: int, V: int, beta_range: float = 1.0, tokens: int = 32
) -> Tensors:
    """A function of the GDN family on raw rows and real gate parameters."""
    q, k = torch.randn(1, tokens, Hk, K), torch.randn(1, tokens, Hk, K)
    v, s0 = torch.randn(1, tokens, Hv, V), torch.randn(1, Hv, K, V)
    beta = beta_range * torch.randn(1, tokens, Hv).sigmoid()
    dt = torch.rand(Hv) * (math.log(0.1) - math.log(1e-3)) + math.log(1e-3)
    rate = torch.empty(Hv).uniform_(0.001, 16)
    g = -rate * softplus(torch.randn(1, tokens, Hv) + torch.log(torch.expm1(dt.exp())))
    out, state = function(
        q, k, v, g=g, beta=beta, initial_state=s0, output_final_state=True,
        use_qk_l2norm_in_kernel=True,
    )  # fmt: skip
    return {"q": q, "k": k, "v": v, "g": g, "beta": beta, "s0": s0, "out": out, "state": state}


def kimi_delta(gate: Any, norm: Any, function: Any, hidden_size: int, tokens: int = 32) -> Tensors:
    """Gate module, recurrent KDA and gated norm of one layer; `raw` is the gate's projection."""
    K = V = gate.head_dim
    H = gate.num_heads
    hidden = torch.randn(1, tokens, hidden_size)
    q, k, v, z = (torch.randn(1, tokens, H, K) for _ in range(4))
    logits, s0 = torch.randn(1, tokens, H), torch.randn(1, H, K, V)
    g = gate(hidden)
    core, state = function(q, k, v, g, logits.sigmoid(), s0, True, use_qk_l2norm_in_kernel=True)
    raw = gate.f_b_proj(gate.f_a_proj(hidden)).view(1, tokens, H, K)
    return {
        "query": q.transpose(1, 2),
        "key": k.transpose(1, 2),
        "value": v.transpose(1, 2),
        "z": z.transpose(1, 2),
        "f": raw.transpose(1, 2),
        "b": logits.transpose(1, 2),
        "A_log": gate.A_log.reshape(-1),
        "dt_bias": gate.dt_bias.view(H, K),
        "norm_weight": norm.weight,
        "recurrent_state": s0,
        "g": g.transpose(1, 2),
        "out": norm(core, z).transpose(1, 2),
        "state": state,
    }


def olmo_hybrid(H: int = 30, K: int = 96, V: int = 192, tokens: int = PROMPT) -> Tensors:
    """Gates, chunked rule and gated norm of one layer of OLMo-Hybrid, from raw projections."""
    q, k = torch.randn(1, tokens, H, K), torch.randn(1, tokens, H, K)
    v, z = torch.randn(1, tokens, H, V), torch.randn(1, tokens, H, V)
    a, b, s0 = torch.randn(1, tokens, H), torch.randn(1, tokens, H), torch.randn(1, H, K, V)
    dt = torch.empty(H).uniform_(math.log(1e-3), math.log(1e-1)).exp()
    A_log, dt_bias = torch.empty(H).uniform_(0.001, 16).log(), dt + torch.log(-torch.expm1(-dt))
    norm = olmo.OlmoHybridRMSNormGated(V, eps=1e-5)
    torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
    g = -A_log.exp() * softplus(a + dt_bias)
    core, state = olmo.torch_chunk_gated_delta_rule(
        q, k, v, g=g, beta=2.0 * b.sigmoid(), initial_state=s0, output_final_state=True,
        use_qk_l2norm_in_kernel=True,
    )  # fmt: skip
    per_token = {"query": q, "key": k, "value": v, "z": z, "a": a, "b": b, "out": norm(core, z)}
    return {
        **{name: x.transpose(1, 2) for name, x in per_token.items()},
        "A_log": A_log,
        "dt_bias": dt_bias,
        "norm_weight": norm.weight,
        "recurrent_state": s0,
        "state": state,
    }


def prompt_then_tokens(chunked: Any, recurrent: Any, decoded: int = 32) -> Any:
    """A function of the KDA family that serves: a prompt in chunks, then token by token."""

    def serve(q: Any, k: Any, v: Any, g: Any, beta: Any, s0: Any, *given: Any, **more: Any) -> Any:
        tensors, prompt = (q, k, v, g, beta), q.shape[1] - decoded
        first, state = chunked(
            *(x[:, :prompt] for x in tensors), initial_state=s0, output_final_state=True, **more
        )
        rest, state = recurrent(*(x[:, prompt:] for x in tensors), state, *given, **more)
        return torch.cat((first, rest), dim=1), state

    return serve


def initialised(gate: Any, bounded: bool) -> Any:
    """A gate module with the initialisation its model gives it."""
    torch.nn.init.normal_(gate.f_a_proj.weight, std=0.02)
    torch.nn.init.normal_(gate.f_b_proj.weight, std=0.02)
    rates = (
        torch.zeros_like(gate.A_log)
        if bounded
        else torch.empty_like(gate.A_log).uniform_(1, 16).log()
    )
    dt = torch.empty_like(gate.dt_bias).uniform_(math.log(1e-3), math.log(1e-1)).exp()
    gate.A_log.copy_(rates)
    gate.dt_bias.copy_(dt.clamp_min(1e-4) + torch.log(-torch.expm1(-dt.clamp_min(1e-4))))
    return gate


def kimi_linear(function: Any = kimi.recurrent_kimi_delta_attention, **tokens: int) -> Tensors:
    """Kimi-Linear: softplus gate."""
    config = kimi.KimiLinearConfig()
    gate = initialised(kimi.KimiLinearForgetGate(config), bounded=False)
    norm = kimi.KimiLinearRMSNormGated(128, eps=1e-5)
    return kimi_delta(gate, norm, function, config.hidden_size, **tokens)


def glm5_next(
    bounded: bool, function: Any = glm5.recurrent_kimi_delta_attention, **tokens: int
) -> Tensors:
    """GLM-5-Next: the bounded gate (its default) or the softplus one."""
    config = glm5.Glm5NextTextConfig()
    gate = glm5.Glm5NextTextForgetGate(config)
    gate.safe_gate_lower_bound = -5.0 if bounded else None
    norm = glm5.Glm5NextTextRMSNormGated(128, eps=1e-5)
    return kimi_delta(initialised(gate, bounded), norm, function, config.hidden_size, **tokens)


def main(path: str) -> None:
    """Write every case."""
    torch.manual_seed(20)
    torch.set_grad_enabled(False)
    cases = {
        "qwen3_next": qwen3_next(),
        "qwen3_next_chunks": gated_delta(
            qwen3n.torch_chunk_gated_delta_rule, 16, 32, 128, 128, tokens=PROMPT
        ),
        "qwen3_5_chunks": gated_delta(
            qwen35.torch_chunk_gated_delta_rule, 16, 48, 128, 128, tokens=PROMPT
        ),
        "olmo_hybrid_chunks": gated_delta(
            olmo.torch_chunk_gated_delta_rule, 30, 30, 96, 192, 2.0, tokens=PROMPT
        ),
        "qwen3_5": gated_delta(qwen35.torch_recurrent_gated_delta_rule, 16, 48, 128, 128),
        "olmo_hybrid": gated_delta(olmo.torch_recurrent_gated_delta_rule, 30, 30, 96, 192, 2.0),
        "olmo_hybrid_layer": olmo_hybrid(),
        "kimi_linear": kimi_linear(),
        "glm5_next_bounded": glm5_next(bounded=True),
        "glm5_next_softplus": glm5_next(bounded=False),
        "kimi_linear_serving": kimi_linear(
            prompt_then_tokens(
                kimi.chunk_kimi_delta_attention, kimi.recurrent_kimi_delta_attention
            ),
            tokens=PROMPT + 32,
        ),
        "glm5_next_serving": glm5_next(
            True,
            prompt_then_tokens(
                glm5.chunk_kimi_delta_attention, glm5.recurrent_kimi_delta_attention
            ),
            tokens=PROMPT + 32,
        ),
    }
    np.savez(
        path,
        **{
            f"{case}/{name}": tensor.detach().numpy()
            for case, tensors in cases.items()
            for name, tensor in tensors.items()
        },
    )


if __name__ == "__main__":
    main(sys.argv[1])
