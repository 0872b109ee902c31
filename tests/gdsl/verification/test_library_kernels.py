"""Every library kernel that is emitted agrees with the interpreter, at small sizes."""

import pytest

import gdsl
from gdsl.emitter import EmitOptions
from gdsl.errors import CompileError
from gdsl.library import library_kernels
from gdsl.shapes import atomic_axes, checkpoint_axes, checkpoint_distance

_SIZES = {"B": 2, "T": 20, "K": 32, "V": 16, "N": 3, "W": 4, "Hid": 128}


def sizes(kernel: gdsl.Definition) -> dict[str, int]:
    wanted = {}
    for axis in atomic_axes(kernel.kernel):
        size = _SIZES.get(axis.name, 2)
        size = -(-size // axis.multiple_of) * axis.multiple_of
        wanted[axis.name] = min(size, axis.at_most or size)
    if "T" in wanted:
        wanted["T"] = max(wanted["T"], checkpoint_distance(kernel.kernel))
    return wanted | checkpoint_axes(kernel.kernel, wanted)


def emitted(kernel: gdsl.Definition) -> dict[str, str] | CompileError:
    """The settings with which the kernel is emitted, or why it is not."""
    try:
        plan = kernel.compilation(EmitOptions("trn2"), {}).plan
        # One inverse is enough here; both run in the regressions and the drop-in.
        settings = {"inverse": "auto"} if plan.takes("inverse") else {}
        gdsl.compile(kernel, "trn2", settings=settings)
    except CompileError as error:
        return error
    return settings


@pytest.mark.parametrize("name", library_kernels())
def test_what_is_emitted_agrees(name: str) -> None:
    kernel = gdsl.load(name)
    settings = emitted(kernel)
    if isinstance(settings, CompileError):
        assert settings.diagnostics[0].code.startswith("E05"), settings
        assert settings.diagnostics[0].span is not None
        return
    report = gdsl.verify(
        kernel,
        shape=sizes(kernel),
        settings=settings,
        regimes=["gaussian", "padding", "slots", "reset"],
        targets=["trn2"],
        lnc=[1],
        precisions=["widened", "bf16"],
    )
    report.assert_ok()
