"""What stands in front of a delta rule and is not emitted: said where it stands, with a way out."""

import pytest

from gdsl import api
from gdsl.errors import CompileError

TEXT = """
use delta_rule, conv, gates, norms
kernel layer:
    axes B, Hid % 128 == 0, Hk, G, Hv = {heads}, K, V, W, D, C = q:(Hk K) | k:(Hk K) | v:({heads} V)
    input hidden: bf16[B, {tokens}Hid]
    input W_in: bf16[Hid, C]
    input taps: f32[C, W]
    input decay, beta: f32[B, {tokens}Hv] in [0, 1]
{more}
    state win: bf16[B, C, W] = conv_state
    state S: f32[B, Hv, K, V] = s0
    x = bf16(sum[Hid](hidden * W_in))
    y, win = {run} causal_conv(x, taps, win)
    q, k, v = unpack[C](silu(y))
    o, S = {run} gated_delta(l2norm[K](q), l2norm[K](k), v, decay, beta, S)
{after}
    output out: bf16[B, {tokens}Hv, V] = o
    output conv_out: bf16[B, C, W] = win
    output s1: f32[B, Hv, K, V] = S
"""
PLAIN = (
    "    input z: bf16[B, D]\n    input z_taps: f32[D, W]\n    state past: bf16[B, D, W] = past_in",
    "    u, past = step causal_conv(z, z_taps, past)\n    output u_out: bf16[B, D] = u\n"
    "    output past_out: bf16[B, D, W] = past",
)


def text(more: str = "", after: str = "", **changed: str) -> str:
    parts = {"heads": "(Hk G)", "tokens": "", "run": "step", "more": more, "after": after}
    filled = TEXT.format(**{**parts, **changed})
    return filled if "z_taps" in filled else filled.replace(" D,", "")


def test_it_is_emitted_otherwise() -> None:
    assert "def layer(" in api.compile(api.loads(text()), target="trn2").text


@pytest.mark.parametrize(
    ("source", "line", "message", "help"),
    [
        (
            text(heads="(G Hk)").replace("Hk, G, Hv", "G, Hk, Hv"),
            "causal_conv(x",
            r"the heads of `q` are \[Hk\], those of the state \[G, Hk\]",
            "give the state heads that begin with `Hk`, or compute it in a kernel of its own",
        ),
        (
            text().replace("v:((Hk G) V)", "v:((G Hk) V)"),
            "input W_in",
            "the heads of `W_in` do not lie side by side",
            "lay its channels out as (Hk G V), the last cycling fastest",
        ),
        (
            text(*PLAIN),
            "causal_conv(z",
            r"the heads of `\w+` are \[none\], those of the state \[Hk, G\]",
            "compute it in a kernel of its own",
        ),
        (
            text(tokens="T, ", run="scan[T]")
            .replace("axes B,", "axes B, T <= 16,")
            .replace("hidden: bf16[B, T, Hid]", "hidden: bf16[B, Hid, T]"),
            "input hidden",
            r"a projection of several tokens needs them as an input \[batch, tokens, hidden\]",
            "pass the result of the projection to this kernel as an input",
        ),
        (
            text(tokens="T, ", run="scan[T]")
            .replace("axes B,", "axes B, T <= 16,")
            .replace("W_in: bf16", "W_in: f32"),
            "input W_in",
            "a projection of several tokens needs tokens and weight of one dtype",
            "declare both alike, or pass the result of the projection as an input",
        ),
        (
            text().replace("hidden * W_in", "2 * hidden * hidden * W_in"),
            "sum[Hid]",
            "must be the product of one value per entry and a weight",
            "pass what is multiplied with the weight to this kernel as an input",
        ),
    ],
)
def test_what_is_not_emitted(source: str, line: str, message: str, help: str) -> None:
    kernel = api.loads(source)
    settings = {"form": "recurrent"} if "scan" in source else {}
    with pytest.raises(CompileError, match=message) as raised:
        _ = api.compile(kernel, target="trn2", settings=settings).text
    (found,) = raised.value.diagnostics
    assert found.code == "E0521"
    assert found.help == help
    assert found.span is not None
    assert line in source.splitlines()[found.span.line - 1]


def test_a_flag_of_a_window_in_no_pool_is_not_ignored() -> None:
    source = text(more="    input keep: bool[B]")
    source = source.replace("= conv_state\n", "= conv_state unless keep\n")
    with pytest.raises(CompileError, match="a flag that starts windows from zeros, in no pool"):
        _ = api.compile(api.loads(source), target="trn2").text
