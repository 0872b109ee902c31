"""The backend object: what gdsl sees, independence of the compiler, faults as gdsl errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from backends.simulator import RUNNER
from backends.simulator.fault_table import FAULTS
from backends.simulator.faults import Fault, MissingImport, MissingName
from gdsl.errors import GdslError, UsageError
from gdsl.simulator import Simulator

TEXT = """
import nki
import nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out
"""


def test_it_is_the_protocol_of_gdsl() -> None:
    runner: Simulator = RUNNER
    result = runner.simulate(TEXT, "kernel", {"x": np.ones((2, 2), np.float32)}, lnc=1)
    assert result.outputs[0].tolist() == [[1, 1], [1, 1]]
    assert result.traces[0].kernel == "kernel"
    assert {"nisa.quantize_mx", "nki.collectives.all_reduce"} <= set(runner.not_simulated())


def test_codes_can_be_explained() -> None:
    assert set(RUNNER.fault_codes()) == set(FAULTS)
    assert FAULTS["S203"].explanation in RUNNER.explain("S203")
    assert RUNNER.explain("E0101") is None


def test_wrong_settings_and_targets_are_usage_errors() -> None:
    x = (np.ones((2, 2), np.float32),)
    with pytest.raises(UsageError, match="trn9"):
        RUNNER.simulate(TEXT, "kernel", x, target="trn9")
    with pytest.raises(UsageError, match="nothing"):
        RUNNER.simulate(TEXT, "kernel", x, settings={"nothing": 1})


def test_faults_are_gdsl_errors_and_probe_friendly() -> None:
    fault = Fault("S210", "index", values={"shape": (1, 2)}, help="smaller")
    assert isinstance(fault, GdslError)
    assert fault.diagnostics[0].code == "S210"
    assert fault.diagnostics[0].help == "smaller"
    assert "shape = (1, 2)" in str(fault)
    assert fault.rule == FAULTS["S210"].rule
    assert isinstance(MissingName("S107", "x"), AttributeError)
    assert isinstance(MissingImport("S107", "x"), ImportError)


@pytest.mark.parametrize("code", sorted(FAULTS))
def test_every_code_says_what_why_and_where_from(code: str) -> None:
    info = FAULTS[code]
    assert info.title
    assert info.title[-1] != "."
    assert info.explanation.endswith(".")
    assert info.rule


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        parts = name.split(".")
        hidden = ("syntax", "semantics", "canonical", "algorithm", "pipeline", "ir")
        if parts[0] == "gdsl" and len(parts) > 1 and parts[1] in hidden:
            raise ImportError(name)
        if parts[:2] in (["backends", "nki"], ["backends", "interpreter"], ["backends", "cost"]):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
import numpy as np
from backends.simulator import RUNNER
light = [name for name in sys.modules if name.startswith("backends.simulator.")]
assert light == ["backends.simulator.runner"], light
print(RUNNER.simulate(TEXT, "kernel", (np.ones((1, 1), np.float32),)).outputs[0][0, 0])
"""


def test_it_runs_without_the_compiler_and_imports_late() -> None:
    script = f"TEXT = {TEXT!r}\n{BLOCKED}"
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.stdout == "1.0\n", done.stderr
