"""The stages in order, kept, and each as text."""

import pytest

import gdsl
from gdsl.emitter import EmitOptions
from gdsl.errors import CompileError, UsageError
from gdsl.pipeline import MOST_COMPILATIONS, STAGES, Compilation, Definition, KernelFile
from gdsl.source import Source

TEXT = """\
use delta_rule
kernel plain:
    axes B, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    input beta: f32[B, H] in [0, 1]
    state S: f32[B, H, K, V] = s0
    o, S = step delta(q, k, v, beta, S)
    output out: f32[B, H, V] = o
    output s1: f32[B, H, K, V] = S
"""
TWO = TEXT + TEXT.partition("\n")[2].replace("plain", "other")


def test_the_stages_are_those_of_the_command_line_in_order() -> None:
    assert tuple(STAGES) == ("ast", "ir", "canonical", "plan", "program", "nki")


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_prints_and_names_the_kernel_or_its_rule(stage: str) -> None:
    compilation = Compilation(gdsl.load("gdn_tkg"))
    text = STAGES[stage](compilation)
    assert "gdn_tkg" in text
    assert text.endswith("\n")
    assert text == STAGES[stage](Compilation(gdsl.load("gdn_tkg"))), "not deterministic"


def test_levels_are_computed_once() -> None:
    compilation = Compilation(gdsl.load("gdn_tkg"))
    assert compilation.plan is compilation.plan
    assert compilation.definition.kernel is compilation.plan.kernel.kernel


def test_a_definition_keeps_its_last_compilations() -> None:
    definition, options = gdsl.load("gdn_tkg"), EmitOptions()
    first = definition.compilation(options, {"group": 1})
    assert definition.compilation(options, {"group": 1}) is first
    assert definition.compilation(options, {"group": True}) is not first, "another type"
    assert definition.compilation(EmitOptions("trn3"), {"group": 1}) is not first
    assert gdsl.compile(definition, "trn2").nki is gdsl.compile(definition, "trn2").nki
    for group in range(MOST_COMPILATIONS):
        definition.compilation(options, {"group": 2 + group})
    assert definition.compilation(options, {"group": 1}) is not first


def test_a_stage_before_the_failing_one_still_prints() -> None:
    text = TEXT.replace("step delta(q, k, v,", "step delta(q, k, k,")
    definition = Definition(KernelFile(Source("bad.gdn", text)))
    assert "plain" in STAGES["ast"](Compilation(definition))
    with pytest.raises(CompileError) as caught:
        STAGES["ir"](Compilation(definition))
    assert caught.value.diagnostics[0].span is not None


def test_origin_comments_can_be_left_out() -> None:
    definition = gdsl.load("gdn_tkg")
    with_origin = Compilation(definition).program.text
    without = Compilation(definition, EmitOptions(origin=False)).program.text
    assert ".gdn:" in with_origin
    assert ".gdn:" not in without


def test_one_kernel_is_found_without_a_name_and_several_need_one() -> None:
    assert Definition(KernelFile(Source("a.gdn", TEXT))).kernel.name == "plain"
    two = KernelFile(Source("a.gdn", TWO))
    assert Definition(two, "other").kernel.name == "other"
    with pytest.raises(UsageError, match=r"it holds `plain`, `other`.*`a\.gdn:plain`"):
        _ = Definition(two).kernel
    with pytest.raises(UsageError, match="did you mean `other`"):
        _ = Definition(two, "othr").kernel


def test_schedules_belong_to_a_kernel_and_a_target() -> None:
    text = TWO + "schedule plain on trn2:\n    reads = bf16\nschedule other:\n    reads = bf16\n"
    file = KernelFile(Source("a.gdn", text))
    plain, other = Definition(file, "plain"), Definition(file, "other")

    def reads(definition: Definition, target: str) -> object:
        return Compilation(definition, EmitOptions(target)).plan.settings["reads"]

    assert (reads(plain, "trn2"), reads(plain, "trn3")) == ("bf16", "f32")
    assert (reads(other, "trn2"), reads(other, "trn3")) == ("bf16", "bf16")


def test_outside_settings_beat_the_file() -> None:
    text = TEXT + "schedule plain:\n    reads = bf16\n"
    definition = Definition(KernelFile(Source("a.gdn", text)))
    assert Compilation(definition, settings={"reads": "f32"}).plan.settings["reads"] == "f32"
