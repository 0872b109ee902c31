"""`reads=bf16`: what is rounded, what is not, and what it is estimated to cost."""

from __future__ import annotations

import pytest

from gdsl import api
from gdsl.errors import CompileError
from gdsl.estimate import estimate
from gdsl.launch import trace
from gdsl.pipeline import Definition
from gdsl.regimes.typed import random_arguments
from gdsl.shapes import resolve_sizes
from gdsl.verification.precisions import precisions
from gdsl.verification.request import ALL_REGIMES

LOW = {"reads": "bf16"}
REGIMES = [name for name in ALL_REGIMES if name != "weak-decay"]
"""All but 1,000 calls in a row."""
RETENTION = """
rule keep[K, V](q[K], k[K], v[V], decay, state S[K, V]) -> o[V]:
    S = decay * S + k * v
    o = sum[K](q * S)
kernel retention:
    axes B, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    input g: f32[B, H] in (-inf, 0]
    state S: f32[B, H, K, V] = s0
    o, S = step keep(q * K ** -0.5, k, v, exp(g), S)
    output out: f32[B, H, V] = o
    output s1: f32[B, H, K, V] = S
"""


def _micros(kernel: str, shape: str, settings: dict[str, str]) -> float:
    definition = api.load(kernel)
    sizes = resolve_sizes(definition.kernel, (), f"{shape},K=128,V=128")
    report = estimate(definition, sizes, target="trn2", settings=dict(settings)).report
    return report.estimate.program_order


@pytest.mark.parametrize(
    ("definition", "shape"),
    [
        (api.load("gdn_tkg_grouped"), "B=1,Hk=5,G=3,K=16,V=24"),
        (api.load("kda_tkg"), "B=1,H=3,K=32,V=144"),
        (api.loads(RETENTION), "B=1,H=5,K=32,V=24"),
    ],
    ids=("grouped heads", "decay along K", "nothing erased"),
)
def test_it_agrees_within_the_bounds_of_bf16_in_every_regime(
    definition: Definition, shape: str
) -> None:
    """Twice the definition in bf16, fp32 outputs included; identical keys are the hardest."""
    report = api.verify(
        definition,
        shape=shape,
        targets=["trn2"],
        lnc=[1],
        regimes=REGIMES,
        precisions=["fp32", "bf16"],
        settings=LOW,
    )
    report.assert_ok()
    assert "identical-keys" in report.run


def test_fp32_inputs_are_judged_as_bf16_when_the_reads_are_rounded() -> None:
    kernel = api.load("gdn_tkg").kernel
    assert precisions(kernel, {})["fp32"].is_fp32
    lowered = precisions(kernel, LOW)["fp32"]
    assert not lowered.is_fp32


def test_what_the_delta_is_made_from_is_read_in_bf16() -> None:
    """Two reads for each head; that of the output is behind an erasure and stays in fp32."""
    definition = api.load("gdn_tkg")
    sizes = resolve_sizes(definition.kernel, (), "B=1,Hv=5,K=32,V=16")
    program = api.compile(definition, target="trn2", settings=LOW)
    given = random_arguments(definition.kernel, sizes, 0)
    records = trace(program.compilation.program, definition.kernel, given, lnc=1).traces[0].records
    operands = [
        {a.operand: a for a in record.reads} for record in records if record.opcode == "nc_matmul"
    ]
    reads = [o for o in operands if o["moving"].elements == 1]
    dtypes = [{o[name].dtype for name in ("stationary", "moving")} for o in reads]
    assert dtypes == 5 * [{"bfloat16"}, {"float32"}]
    updates = [r for r in records if r.opcode == "scalar_tensor_tensor"]
    assert {a.dtype for r in updates for a in r.reads} == {"float32"}


def test_the_docstring_says_what_is_rounded() -> None:
    definition = api.load("gdn_tkg")
    note = "rounded to bf16 where they are"
    assert note in api.compile(definition, target="trn2", settings=LOW).text
    assert note not in api.compile(definition, target="trn2").text


@pytest.mark.parametrize(("shape", "limit"), [("B=1,Hv=32", 24.0), ("B=4,Hv=32", 54.0)])
def test_rounding_the_state_costs_little(shape: str, limit: float) -> None:
    """Estimated microseconds; without `reads=bf16` 20.6 and 47.6."""
    assert _micros("gdn_tkg", shape, LOW) <= limit


def test_states_of_two_bytes_are_read_as_they_are_whatever_is_asked() -> None:
    with pytest.raises(CompileError) as caught:
        _ = api.compile(api.load("gdn_tkg_bf16_state"), target="trn2", settings=LOW).text
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "E0503"
    assert diagnostic.help == "leave out `reads`"
