"""`verify` end to end: it agrees where it should, and a wrong kernel does not pass."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from attrs import evolve

import gdsl
from gdsl import registry
from gdsl.emitter import EmitOptions, NkiProgram
from gdsl.verification.precisions import precisions
from gdsl.verification.report import VerifyReport
from gdsl.verification.request import ALL_REGIMES

Cli = Callable[..., Any]
SHAPE = "B=1,Hv=3,K=16,V=8"
QUICK = tuple(name for name in ALL_REGIMES if name != "weak-decay")


@pytest.fixture(scope="module")
def schema(request: pytest.FixtureRequest) -> Any:
    root = Path(__file__).parents[3]
    return json.loads((root / "gdsl" / "schemas" / "verify.schema.json").read_text())


def test_the_decode_kernel_agrees_in_every_regime_and_the_report_fits_its_schema(
    cli: Cli, schema: Any
) -> None:
    done = cli(
        "verify", "gdn_tkg", "--shape", SHAPE, "--regimes", ",".join(QUICK), "--seed", "3", "--json"
    )
    report = json.loads(done.out)
    jsonschema.validate(report, schema)
    assert (done.code, report["ok"], report["seed"]) == (0, True, 3)
    regimes = report["regimes"]
    assert set(regimes["run"]) | {s["name"] for s in regimes["skipped"]} == set(QUICK)
    combinations = {(c["target"], c["lnc"], c["precision"]) for c in report["cases"]}
    assert len(combinations) == 2 * 2 * 3
    assert all(case["instructions"] > 20 for case in report["cases"])
    assert report["schedule"]["form"] == "decode"


def test_all_texts_of_the_program_are_the_same_for_the_same_seed(cli: Cli) -> None:
    command = ("verify", "gdn_tkg", "--shape", SHAPE, "--regimes", "gaussian", "-t", "trn2")
    assert cli(*command).out == cli(*command).out
    assert cli(*command).out != cli(*command, "--seed", "1").out


def _break(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Let the emitter write a text with a fault in it."""
    emitter = registry.emitter()

    class Faulty:
        name = "nki"
        misfits = staticmethod(emitter.misfits)
        footprint = staticmethod(emitter.footprint)

        def emit(self, plan: Any, options: EmitOptions) -> NkiProgram:
            program = emitter.emit(plan, options)
            assert old in program.text
            return evolve(program, text=program.text.replace(old, new))

    monkeypatch.setattr(registry, "emitter", Faulty)


def test_a_wrong_eps_is_found_and_the_command_that_repeats_it_repeats_it(
    cli: Cli, schema: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _break(monkeypatch, "1e-06", "1e-03")
    command = ("verify", "gdn_tkg", "--shape", SHAPE, "--regimes", "gaussian", "-t", "trn3")
    done = cli(*command)
    assert done.code == 1
    assert "DISAGREES" in done.out
    assert "expected" in done.out
    repeat = next(line for line in done.out.splitlines() if line.startswith("  repeat: "))
    again = cli(*shlex.split(repeat.removeprefix("  repeat: gdsl ")), "--json")
    assert again.code == 1
    report = json.loads(again.out)
    jsonschema.validate(report, schema)
    assert len(report["cases"]) == 1
    assert not report["ok"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("op=nl.exp,", "op=nl.tanh,"), ("nl.subtract", "nl.add"), ("nl.maximum", "nl.minimum")],
)
def test_wrong_instructions_are_found(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    _break(monkeypatch, old, new)
    regimes = "gaussian,identical-keys,real-parameters"
    assert cli("verify", "gdn_tkg", "--shape", SHAPE, "--regimes", regimes, "-j", "1").code == 1


def test_a_text_that_the_machine_refuses_is_a_finding_with_the_regime(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    _break(monkeypatch, "nisa.activation(", "nisa.activatoin(")
    done = cli("verify", "gdn_tkg", "--shape", SHAPE, "--regimes", "gaussian", "-t", "trn2")
    assert done.code == 1
    assert "while verifying gaussian, widened, trn2, LNC 1" in done.err
    assert "repeat: gdsl verify" in done.err


def _report() -> VerifyReport:
    kernel = gdsl.load("gdn_tkg")
    return gdsl.verify(kernel, shape=SHAPE, regimes=["gaussian"], targets=["trn2"], lnc=[1])


def test_a_report_is_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    report = _report()
    report.assert_ok()
    assert repr(report) == "<gdsl verify gdn_tkg: ok, 3 cases>"
    _break(monkeypatch, "1e-06", "1e-03")
    report = _report()
    with pytest.raises(gdsl.GdslError, match="expected"):
        report.assert_ok()


def test_nothing_run_is_not_ok() -> None:
    kernel = gdsl.load("gdn_tkg")
    report = gdsl.verify(kernel, shape=SHAPE, regimes=["padding"])
    assert not report.ok
    assert report.skipped[0].reason == "the kernel takes no lengths"


def test_a_text_that_rounds_by_itself_has_no_fp32_variant() -> None:
    assert list(precisions(gdsl.load("gdn_tkg").kernel, {})) == ["widened", "fp32", "bf16"]
    assert list(precisions(gdsl.load("gdn_tkg_bf16_state").kernel, {})) == ["widened", "bf16"]


def test_a_text_whose_inputs_are_all_fp32_has_no_bf16_variant() -> None:
    kernel = gdsl.load("kda_tkg")
    assert list(precisions(kernel.kernel, {})) == ["widened", "fp32"]
    with pytest.raises(gdsl.GdslError, match="no variant in `bf16`; it has widened, fp32"):
        gdsl.verify(kernel, regimes=["gaussian"], precisions=["bf16"])


def test_the_interpreter_gets_the_object_of_semantics(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference must not pass through any rewrite of the compiler."""
    definition = gdsl.load("gdn_tkg")
    seen: list[tuple[int, str]] = []
    runner = registry.interpreter()

    class Spy:
        name = "interpreter"

        def run(self, kernel: Any, arguments: Any, options: Any) -> Any:
            seen.append((id(kernel), options.precision))
            return runner.run(kernel, arguments, options)

    monkeypatch.setattr(registry, "interpreter", Spy)
    gdsl.verify(definition, shape=SHAPE, regimes=["gaussian"], targets=["trn2"], lnc=[1])
    references = {kernel for kernel, precision in seen if precision == "float64"}
    assert references == {id(definition.kernel)}
