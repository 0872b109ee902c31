"""Limits and memory at known sizes: what is said to fit is what the simulator accepts."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

from backends.nki import EMITTER
from backends.simulator import RUNNER
from gdsl import api
from gdsl.capacity import require_fit
from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.emitter import EmitOptions
from gdsl.errors import GdslError
from gdsl.estimate import shapes_only
from gdsl.ir.dtypes import Dtype
from gdsl.pipeline import Compilation
from gdsl.regimes.typed import bind_dtypes
from gdsl.shapes import resolve_sizes

Sizes = dict[str, int]
CONV = {"B": 1, "C": 1024, "T": 512}
CTE = {"B": 1, "Hk": 1, "G": 1, "T": 256, "K": 128, "V": 128}

CASES: list[tuple[str, Sizes, str, int, str | None]] = [
    ("gdn_tkg", {"B": 1, "Hv": 8, "K": 128, "V": 512}, "trn2", 1, None),
    ("gdn_tkg", {"B": 1, "Hv": 8, "K": 129, "V": 128}, "trn2", 1, "E0531"),
    ("gdn_tkg", {"B": 1, "Hv": 8, "K": 129, "V": 128}, "trn3", 2, "E0531"),
    ("gdn_tkg", {"B": 1, "Hv": 8, "K": 128, "V": 513}, "trn3", 1, "E0531"),
    ("kda_tkg", {"B": 2, "H": 4, "K": 256, "V": 128}, "trn2", 2, "E0531"),
    ("gdn_cte", CTE, "trn2", 2, None),
    ("gdn_cte", {**CTE, "K": 130}, "trn3", 1, "E0531"),
    ("gdn_cte", {**CTE, "V": 257}, "trn2", 1, "E0531"),
    ("gdn_prefill", {**CTE, "K": 96, "V": 192}, "trn2", 1, None),
    ("gdn_prefill", {**CTE, "V": 512}, "trn3", 2, None),
    ("gdn_prefill", {**CTE, "V": 513}, "trn2", 1, "E0531"),
    ("kda_prefill", {**CTE, "V": 600}, "trn2", 2, "E0531"),
    ("gdn_cte_varlen", {**CTE, "T": 100}, "trn2", 1, None),
    ("gdn_conv1d_prefill", {**CONV, "W": 64}, "trn2", 1, None),
    ("gdn_conv1d_prefill", {**CONV, "W": 128}, "trn2", 1, "E0532"),
    ("gdn_conv1d_prefill", {**CONV, "W": 256}, "trn2", 2, "E0532"),
    ("gdn_conv1d_prefill", {**CONV, "W": 128}, "trn3", 1, None),
    ("gdn_conv1d_prefill", {**CONV, "W": 640}, "trn3", 2, "E0532"),
]


def found(
    kernel: str, sizes: Sizes, target: str, lnc: int, **settings: Any
) -> tuple[Diagnostic, ...]:
    definition = api.load(kernel)
    complete = resolve_sizes(definition.kernel, (), sizes)
    compilation = Compilation(definition, EmitOptions(target), settings)
    return EMITTER.misfits(compilation.plan, compilation.options, complete, lnc)


@pytest.mark.parametrize(("kernel", "sizes", "target", "lnc", "code"), CASES)
def test_what_fits_is_what_the_simulator_accepts(
    kernel: str, sizes: Sizes, target: str, lnc: int, code: str | None
) -> None:
    codes = {diagnostic.code for diagnostic in found(kernel, sizes, target, lnc)}
    assert codes == ({code} if code else set())
    definition = api.load(kernel)
    program = Compilation(definition, EmitOptions(target)).program
    bound = bind_dtypes(definition.kernel, Dtype.F32)
    complete = resolve_sizes(definition.kernel, (), sizes)
    given = shapes_only(definition.kernel, complete, bound)
    if kernel == "kda_tkg":
        given["out"] = given["v"]

    def run() -> None:
        RUNNER.simulate(program.text, program.entry, given, target=target, lnc=lnc, shape_only=True)

    if code is None:
        run()
    else:
        with pytest.raises(GdslError):
            run()


def test_a_limit_says_what_where_and_which_size_fits() -> None:
    (diagnostic,) = found("gdn_tkg", {"B": 1, "Hv": 8, "K": 200, "V": 128}, "trn2", 1)
    assert diagnostic.message == "`gdn_tkg` needs K <= 128, got K = 200, on trn2"
    assert diagnostic.span is not None
    assert diagnostic.span.text == "K"
    assert diagnostic.label == "200 at this shape"
    assert diagnostic.help is not None
    assert diagnostic.help.startswith("it fits with `K=128`; else set `key_tiles`: 2 for up to 256")


@pytest.mark.parametrize(
    ("kernel", "sizes", "settings"),
    [
        ("gdn_tkg", {"B": 1, "Hv": 8}, {"key_tiles": 2}),
        ("gdn_cte", {"B": 1, "Hk": 1, "G": 1, "T": 5}, {"form": "recurrent", "key_tiles": 2}),
    ],
)
def test_what_a_limit_advises_helps(kernel: str, sizes: Sizes, settings: dict[str, Any]) -> None:
    large = {**sizes, "K": 256, "V": 128}
    (diagnostic,) = found(kernel, large, "trn2", 1)
    assert diagnostic.help is not None
    for key in settings:
        assert key in diagnostic.help
    assert found(kernel, large, "trn2", 1, **settings) == ()


@pytest.mark.parametrize("kernel", ["gdn_block_tkg", "gdn_mixer_prefill"])
def test_channels_of_a_convolution_want_a_kernel_of_their_own(kernel: str) -> None:
    sizes = {"B": 1, "T": 5, "Hid": 256, "Hk": 1, "G": 1, "K": 256, "V": 128, "W": 4}
    axes = {axis.name for axis in api.load(kernel).kernel.axes}
    diagnostic, *_ = found(kernel, {a: n for a, n in sizes.items() if a in axes}, "trn2", 1)
    assert diagnostic.help is not None
    assert "compute the recurrence in a kernel of its own" in diagnostic.help


def test_on_several_tiles_a_head_has_so_many_keys_at_most_and_none_is_empty() -> None:
    sizes = {"B": 1, "Hv": 8, "V": 64}
    for K, message in ((385, "needs K <= 384"), (4, "needs K >= 5")):
        (diagnostic,) = found("gdn_tkg", {**sizes, "K": K}, "trn3", 2, key_tiles=3)
        assert message in diagnostic.message
    assert found("gdn_tkg", {**sizes, "K": 5}, "trn3", 2, key_tiles=3) == ()


@pytest.mark.parametrize(
    ("K", "tiles", "advised"), [(513, 4, False), (385, 3, True), (4, 3, False)]
)
def test_more_tiles_are_advised_where_they_help(K: int, tiles: int, advised: bool) -> None:
    sizes = {"B": 1, "Hv": 8, "V": 64, "K": K}
    (diagnostic,) = found("gdn_tkg", sizes, "trn2", 1, key_tiles=tiles)
    assert diagnostic.help is not None
    assert ("key_tiles" in diagnostic.help) == advised


def test_a_size_that_is_too_small_is_told_the_smallest_that_fits() -> None:
    """A contraction fills whole groups of 128 partitions."""
    text = files("kernels_dsl").joinpath("gdn_block_prefill.gdn").read_text(encoding="utf-8")
    definition = api.loads(text.replace("Hid % 128 == 0", "Hid"), kernel="gdn_block_prefill")
    sizes = {"B": 1, "T": 8, "Hid": 100, "Hk": 1, "G": 2, "K": 32, "V": 32, "W": 4}
    compilation = Compilation(definition, EmitOptions("trn2"))
    (diagnostic,) = EMITTER.misfits(compilation.plan, compilation.options, sizes, 1)
    assert diagnostic.message == "`gdn_block_prefill` needs Hid % 128 == 0, got 100, on trn2"
    assert diagnostic.span is not None
    assert diagnostic.span.text == "Hid"
    assert diagnostic.help == "it fits with `Hid=128`"


def test_memory_says_need_have_and_sizes_that_fit() -> None:
    sizes = {**CONV, "W": 128}
    (diagnostic,) = found("gdn_conv1d_prefill", sizes, "trn2", 1)
    assert "bytes of SBUF per partition, trn2 has 212,984" in diagnostic.message
    assert diagnostic.span is not None
    assert diagnostic.span.text in ("W", "C")
    assert diagnostic.help is not None
    for way in diagnostic.help.removeprefix("it fits with ").split(" or "):
        axis, _, size = way.strip("`").partition("=")
        assert found("gdn_conv1d_prefill", {**sizes, axis: int(size)}, "trn2", 1) == ()


def test_as_many_groups_are_in_flight_as_fit() -> None:
    sizes = {"B": 1, "Hk": 8, "G": 2, "T": 2048, "K": 128, "V": 128}
    for name in ("gdn_cte", "kda_cte"):
        compilation = Compilation(api.load(name), EmitOptions("trn2"), {"group": 64})
        need = require_fit(compilation, sizes, 1)
        assert 120_000 < need.sbuf_bytes_per_partition <= 212_984
