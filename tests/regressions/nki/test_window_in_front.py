"""Windows and projections before a rule in chunks: `gdn_mixer_prefill`, `gdn_block_prefill`."""

import pytest

import gdsl
from gdsl.errors import CompileError

HEAD = """
use delta_rule, gates, norms, conv
kernel windowed:
    axes B, T, Hk, G, Hv = (Hk G), K, V, W, C = q:(Hk K) | k:(Hk K) | v:(Hk G V)
    input x: bf16[B, T, C]
    input g: f32[B, T, Hv] in [-inf, 0]
    input beta: f32[B, T, Hv] in [0, 1]
    input conv_weight: f32[C, W]
    state win: bf16[B, C, W] = conv_state inplace
    state S: f32[B, Hv, K, V] = recurrent_state inplace
"""
REST = """
    o, S = scan[T] gated_delta(q * K ** -0.5, l2norm[K](k), v, exp(g), beta, S)
    output out: bf16[B, T, Hv, V] = o
    output conv_state = win
    output recurrent_state = S
"""


@pytest.mark.parametrize(
    ("tokens", "regime", "precision", "cores"),
    [
        (1, "zero-state", "widened", (1,)),
        (3, "lengths", "bf16", (1,)),
        (130, "lnc-bits", "bf16", (1, 2)),
    ],
)
def test_short_and_long_prompts(
    tokens: int, regime: str, precision: str, cores: tuple[int, ...]
) -> None:
    """T of one, of W - 1, and across chunks; windows left out, rows of any length, two cores."""
    shape = {"B": 2, "T": tokens, "Hk": 2, "G": 2, "K": 32, "V": 32, "W": 4}
    report = gdsl.verify(
        gdsl.load("gdn_mixer_prefill"),
        shape=shape,
        targets=["trn2"],
        lnc=cores,
        regimes=[regime],
        settings={"inverse": "neumann"},
        precisions=[precision],
    )
    assert report.ok, report


@pytest.mark.parametrize(("name", "seed"), [("gdn_mixer_prefill", 9), ("gdn_block_prefill", 0)])
def test_one_token_whose_query_meets_its_key_near_zero(name: str, seed: int) -> None:
    """The norm of the output magnifies single errors of rounding q and k, which draws show."""
    hidden = {"Hid": 128} if name == "gdn_block_prefill" else {}
    report = gdsl.verify(
        gdsl.load(name),
        shape={"B": 1, "T": 1, **hidden, "Hk": 2, "G": 2, "K": 32, "V": 32, "W": 4},
        targets=["trn2"],
        lnc=(1,),
        regimes=["zero-state"],
        settings={"inverse": "schur"},
        precisions=["bf16"],
        seed=seed,
    )
    assert report.ok, report


def test_sums_with_silu_and_without_are_refused() -> None:
    text = HEAD + "    y, win = scan[T] causal_conv(x, conv_weight, win)\n"
    text += "    q, k, r = unpack[C](silu(y))\n    a, b, v = unpack[C](y)\n" + REST
    with pytest.raises(CompileError, match="with silu and without"):
        gdsl.compile(gdsl.loads(text))


@pytest.mark.parametrize(
    ("tokens", "hidden", "regime", "cores"),
    [(1, 128, "gaussian", (1,)), (130, 256, "padding", (1,)), (130, 256, "lnc-bits", (1, 2))],
)
def test_projections_in_front(
    tokens: int, hidden: int, regime: str, cores: tuple[int, ...]
) -> None:
    """Whole layers: one token, rows of other lengths, columns and heads shared by two cores."""
    report = gdsl.verify(
        gdsl.load("gdn_block_prefill"),
        shape={"B": 1, "T": tokens, "Hid": hidden, "Hk": 2, "G": 2, "K": 32, "V": 32, "W": 4},
        targets=["trn2"],
        lnc=cores,
        regimes=[regime],
        settings={"inverse": "neumann"},
        precisions=["bf16"],
    )
    assert report.ok, report


@pytest.mark.parametrize(
    ("name", "axes", "regime", "precision"),
    [
        # Three windows of a prompt, two low-rank projections, rows of other lengths.
        ("kda_block_prefill", {"B": 3, "T": 33, "Hid": 128, "R": 24}, "padding", "bf16"),
        ("kda_block_prefill", {"B": 1, "T": 131, "Hid": 256, "R": 256}, "zero-state", "widened"),
        # A second block of 512 tokens sees the end of the first one's lines.
        ("gdn_block_prefill", {"B": 1, "T": 515, "Hid": 128}, "gaussian", "widened"),
        ("gdn_mixer_prefill", {"B": 1, "T": 515}, "padding", "bf16"),
        # Channels that do not fill the partitions: 2 heads of 40 and of 24.
        ("gdn_mixer_prefill", {"B": 2, "T": 5, "K": 40, "V": 24, "W": 2}, "padding", "fp32"),
    ],
)
def test_blocks_of_tokens_rows_and_channels(
    name: str, axes: dict[str, int], regime: str, precision: str
) -> None:
    heads = {"H": 2} if name.startswith("kda") else {"Hk": 2, "G": 1}
    shape = {**heads, "K": 32, "V": 32, "W": 4, **axes}
    report = gdsl.verify(
        gdsl.load(name),
        shape=shape,
        targets=["trn2"],
        lnc=(1,),
        regimes=[regime],
        settings={"inverse": "neumann"},
        precisions=[precision],
    )
    assert report.ok, report


def test_tokens_channel_by_channel_and_a_window_of_their_past() -> None:
    """x as convolutions take it, [B, C, T]; W - 1 columns, which the call does not return."""
    text = HEAD.replace("x: bf16[B, T, C]", "x: bf16[B, C, T]")
    text = text.replace("W, C = q", "M, W = past:M | now:1, C = q").replace(
        "win: bf16[B, C, W] = conv_state inplace", "win: bf16[B, C, M] = conv_state"
    )
    text += """
    past, now = unpack[W](conv_weight)
    y, win = scan[T] causal_conv_past(x, past, now, win)
    q, k, v = unpack[C](silu(y))
""" + REST.replace("    output conv_state = win\n", "")
    report = gdsl.verify(
        gdsl.loads(text),
        shape={"B": 2, "T": 21, "Hk": 2, "G": 1, "K": 32, "V": 32, "M": 3},
        targets=["trn2"],
        lnc=(2,),
        regimes=["gaussian"],
        settings={"inverse": "neumann"},
    )
    assert report.ok, report
