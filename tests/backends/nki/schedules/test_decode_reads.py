"""`reads=bf16`: what is rounded, what is not, and what it is estimated to cost."""

from __future__ import annotations

import pytest

from gdsl import api
from gdsl.errors import CompileError
from gdsl.estimate import estimate
from gdsl.launch import trace
from gdsl.regimes.typed import random_arguments
from gdsl.shapes import resolve_sizes
from gdsl.verification.bounds import BF16_RMS
from gdsl.verification.precisions import precisions

LOW = {"reads": "bf16"}
QUICK = ("gaussian", "identical-keys", "decay-1", "one-head")


def _micros(kernel: str, shape: str, settings: dict[str, str]) -> float:
    definition = api.load(kernel)
    sizes = resolve_sizes(definition.kernel, (), f"{shape},K=128,V=128")
    report = estimate(definition, sizes, target="trn2", settings=dict(settings)).report
    return report.estimate.program_order


@pytest.mark.parametrize(
    ("kernel", "shape"),
    [
        ("gdn_tkg", "B=2,Hv=4,K=64,V=64"),
        ("kda_tkg", "B=1,H=3,K=32,V=144"),
    ],
)
def test_it_agrees_within_the_bounds_of_bf16(kernel: str, shape: str) -> None:
    report = api.verify(
        api.load(kernel), shape=shape, targets=["trn2"], lnc=[1], regimes=QUICK, settings=LOW
    )
    report.assert_ok()
    assert "gaussian" in report.run


def test_errors_are_relative_to_the_old_state() -> None:
    """A limit that the schedule states: 2.5e-2 holds, twice the rounded definition does not.

    Identical keys overwrite a large state, and the output of this kernel is fp32.
    """
    report = api.verify(
        api.load("gdn_tkg_grouped"),
        shape="B=1,Hk=5,G=7,K=16,V=24",
        targets=["trn2"],
        lnc=[1],
        regimes=["gaussian", "identical-keys"],
        settings=LOW,
    )
    over = {(c.regime, c.precision) for c in report.cases if not c.ok}
    assert over == {("identical-keys", "fp32")}
    assert max(v.e_rms for c in report.cases for v in c.outputs) <= BF16_RMS


def test_fp32_inputs_are_judged_as_bf16_when_the_reads_are_rounded() -> None:
    kernel = api.load("gdn_tkg").kernel
    assert precisions(kernel, {})["fp32"].is_fp32
    lowered = precisions(kernel, LOW)["fp32"]
    assert not lowered.is_fp32
    assert not lowered.settings


def test_the_reads_are_bf16_and_the_update_is_not() -> None:
    """The reads are the matmuls with two moving columns, q and k; two for each head."""
    definition = api.load("gdn_tkg")
    sizes = resolve_sizes(definition.kernel, (), "B=1,Hv=5,K=32,V=16")
    program = api.compile(definition, target="trn2", settings=LOW)
    given = random_arguments(definition.kernel, sizes, 0)
    records = trace(program.compilation.program, definition.kernel, given, lnc=1).traces[0].records
    operands = [
        {a.operand: a for a in record.reads} for record in records if record.opcode == "nc_matmul"
    ]
    reads = [o for o in operands if o["moving"].elements == 2]
    assert len(reads) == 2 * 5
    assert {o[name].dtype for o in reads for name in ("stationary", "moving")} == {"bfloat16"}
    updates = [r for r in records if r.opcode == "scalar_tensor_tensor"]
    assert {a.dtype for r in updates for a in r.reads} == {"float32"}


def test_the_docstring_says_what_is_rounded() -> None:
    definition = api.load("gdn_tkg")
    note = "The state is rounded to bf16 where it is read"
    assert note in api.compile(definition, target="trn2", settings=LOW).text
    assert note not in api.compile(definition, target="trn2").text


@pytest.mark.parametrize(("shape", "limit"), [("B=1,Hv=32", 24.0), ("B=4,Hv=32", 52.0)])
def test_rounding_the_state_costs_little(shape: str, limit: float) -> None:
    """Estimated microseconds; without `reads=bf16` 20.6 and 47.6."""
    assert _micros("gdn_tkg", shape, LOW) <= limit


def test_states_of_two_bytes_are_read_as_they_are_whatever_is_asked() -> None:
    with pytest.raises(CompileError) as caught:
        _ = api.compile(api.load("gdn_tkg_bf16_state"), target="trn2", settings=LOW).text
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "E0503"
    assert diagnostic.help == "leave out `reads`"
