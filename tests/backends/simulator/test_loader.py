"""Loading kernel files: imports, packages, nothing left behind in `sys.modules`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from backends.simulator.faults import Fault
from backends.simulator.run import simulate
from gdsl.errors import UsageError

X = np.ones((2, 2), np.float32)
KERNEL = """
import nki
import nki.language as nl
from {helper} import double

@nki.jit
def kernel(x):
    return double(x)
"""
HELPER = """
import nki.isa as nisa
import nki.language as nl

def double(x):
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
    nl.store(y, t)
    return y
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / (name.replace("__slash__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def result(path: Path, roots: tuple[Path, ...] = ()) -> float:
    return float(simulate(path, "kernel", (X,), roots=roots).outputs[0][0, 0])


def test_sibling_module(tmp_path: Path) -> None:
    write(tmp_path, kernels=KERNEL.format(helper="my_helper"), my_helper=HELPER)
    assert result(tmp_path / "kernels.py") == 2


@pytest.mark.parametrize("with_init", [True, False])
@pytest.mark.parametrize("helper", ["..utils.helper", "pkg.utils.helper"])
def test_package_with_relative_and_absolute_imports(
    tmp_path: Path, helper: str, with_init: bool
) -> None:
    write(
        tmp_path,
        pkg__slash__core__slash__kernels=KERNEL.format(helper=helper),
        pkg__slash__utils__slash__helper=HELPER,
    )
    if with_init:
        for folder in ("pkg", "pkg/core", "pkg/utils"):
            (tmp_path / folder / "__init__.py").write_text("")
    assert result(tmp_path / "pkg/core/kernels.py", () if with_init else (tmp_path,)) == 2


def test_submodule_by_from_import_and_attribute_chain(tmp_path: Path) -> None:
    text = """
import nki
import pkg.helper
from pkg import helper as again

@nki.jit
def kernel(x):
    assert pkg.helper.double == again.double, "one module"
    return pkg.helper.double(x)
"""
    write(tmp_path, kernels=text, pkg__slash__helper=HELPER, pkg__slash____init__="")
    assert result(tmp_path / "kernels.py") == 2


def test_package_init_runs_when_the_package_is_imported(tmp_path: Path) -> None:
    write(
        tmp_path,
        kernels=KERNEL.format(helper="pkg"),
        pkg__slash____init__="from .helper import double",
        pkg__slash__helper=HELPER,
    )
    assert result(tmp_path / "kernels.py") == 2


def test_nothing_enters_sys_modules(tmp_path: Path) -> None:
    write(tmp_path, kernels=KERNEL.format(helper="my_helper"), my_helper=HELPER)
    before = set(sys.modules)
    result(tmp_path / "kernels.py")
    new = set(sys.modules) - before
    assert not {name for name in new if name.split(".")[0] in ("nki", "kernels", "my_helper")}


def test_module_state_is_fresh_in_every_run(tmp_path: Path) -> None:
    text = KERNEL.format(helper="my_helper") + "COUNT = []\n"
    text = text.replace(
        "return", "COUNT.append(1)\n    assert len(COUNT) == 1, 'fresh'\n    return"
    )
    write(tmp_path, kernels=text, my_helper=HELPER)
    assert result(tmp_path / "kernels.py") == 2
    assert result(tmp_path / "kernels.py") == 2


def test_standard_library_is_not_shadowed_by_siblings(tmp_path: Path) -> None:
    text = KERNEL.format(helper="my_helper") + "\nimport logging\nlogging.getLogger('x')\n"
    write(tmp_path, kernels=text, my_helper=HELPER, logging="raise RuntimeError")
    assert result(tmp_path / "kernels.py") == 2


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("import neuronxcc.nki as nki", "S103"),
        ("from neuronxcc.nki import language", "S103"),
        ("import nki.nothing", "S107"),
        ("from nki.language import arange", "S107"),
        ("import nki.language as nl\nnl.mgrid", "S107"),
        ("from .missing import x", "S103"),
        ("import no_such_package_anywhere", "S102"),
        ("import nki.language as nl\nnl.ndarray((1, 1), dtype=nl.float32)", "S101"),
        ("import nki\n@nki.jit(platform_target='trn2')\ndef f(): pass", "S104"),
        ("1 / 0", "S102"),
        ("def f(:", "S102"),
    ],
)
def test_faults_while_loading(tmp_path: Path, line: str, code: str) -> None:
    write(tmp_path, kernels=line)
    with pytest.raises(Fault) as caught:
        simulate(tmp_path / "kernels.py", "kernel", (X,))
    assert caught.value.code == code
    assert caught.value.location.line == line.count("\n") + 1 - ("def f" in line and "@" in line)


def test_missing_names_can_be_probed(tmp_path: Path) -> None:
    text = """
try:
    from nki.language import float9 as dtype
except ImportError:
    from nki.language import float32 as dtype
assert not hasattr(nl, "float9") and hasattr(nl, "float32")
"""
    text = KERNEL.format(helper="my_helper") + text
    write(tmp_path, kernels=text, my_helper=HELPER)
    assert result(tmp_path / "kernels.py") == 2


def test_dataclasses_work_with_postponed_annotations(tmp_path: Path) -> None:
    text = "from __future__ import annotations\n" + KERNEL.format(helper="my_helper")
    text += """
from dataclasses import dataclass, field

@dataclass(frozen=True)
class Plain:
    a: int
    b: list = field(default_factory=list)

@dataclass
class Config(nl.NKIObject):
    a: int = 1
    b: int

assert Plain(1) == Plain(1) and Config(2).a == 2 and Config(2).b is None
"""
    write(tmp_path, kernels=text, my_helper=HELPER)
    assert result(tmp_path / "kernels.py") == 2


def test_unknown_entries_and_files_are_usage_errors(tmp_path: Path) -> None:
    write(tmp_path, kernels=KERNEL.format(helper="my_helper"), my_helper=HELPER)
    with pytest.raises(UsageError, match="`kernel`"):
        simulate(tmp_path / "kernels.py", "kernels", (X,))
    with pytest.raises(UsageError, match=r"nowhere\.py"):
        simulate(tmp_path / "nowhere.py", "kernel", (X,))


def test_a_function_is_found_by_its_file(tmp_path: Path) -> None:
    write(tmp_path, kernels=KERNEL.format(helper="my_helper"), my_helper=HELPER)
    scope: dict[str, object] = {}
    exec(compile("def kernel(x): pass", str(tmp_path / "kernels.py"), "exec"), scope)
    function = scope["kernel"]
    assert callable(function)
    assert simulate(function, "kernel", (X,)).outputs[0][0, 0] == 2
