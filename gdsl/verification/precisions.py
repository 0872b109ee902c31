"""The precisions a kernel is judged in, and how each is got from the same text."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Cast
from gdsl.ir.kernel import Kernel, Let, Run, Statement
from gdsl.ir.traverse import walk
from gdsl.regimes.roles import kernel_roles
from gdsl.regimes.typed import bind_dtypes


@frozen
class Precision:
    """`widened`: the default schedule with every float in fp32 (is the algorithm right?).
    `fp32`: fp32 inputs, whose dtype is that of the operands; where the schedule asks for bf16
    operands or reads it is judged as bf16. `bf16`: bf16 inputs, where the text takes them.
    """

    name: str
    prefer: Dtype
    """What dtype variables are bound to, where they may be."""
    is_fp32: bool
    """Whether everything is computed in fp32, so that the bounds of fp32 apply."""
    widen: bool = False


_WIDENED = Precision("widened", Dtype.BF16, is_fp32=True, widen=True)
_FP32 = Precision("fp32", Dtype.F32, is_fp32=True)
_FP32_INPUTS = Precision("fp32", Dtype.F32, is_fp32=False)
_BF16 = Precision("bf16", Dtype.BF16, is_fp32=False)
_LOWERED = ("operands", "reads")
"""Schedule keys that may round fp32 inputs to bf16."""
PRECISIONS: tuple[str, ...] = ("widened", "fp32", "bf16")


def precisions(
    kernel: Kernel, asked: Mapping[str, object], *, chunked: bool = False
) -> dict[str, Precision]:
    """Return the precisions that apply.

    A text that rounds by itself has no fp32 variant, one whose inputs are all fp32 no bf16 variant.

    `asked` are the schedule keys that the file or the user set. In chunks (`chunked`) the operands
    of matmuls have the dtype that the text gives its vectors.
    """
    found = {"widened": _WIDENED}
    if not _rounds(kernel):
        lowered = any(asked.get(key) == Dtype.BF16.value for key in _LOWERED)
        lowered |= chunked and asked.get("operands") != Dtype.F32.value and _narrow_keys(kernel)
        found["fp32"] = _FP32_INPUTS if lowered else _FP32
    if _takes_bf16(kernel):
        found["bf16"] = _BF16
    return found


def _narrow_keys(kernel: Kernel) -> bool:
    """Whether vectors along a key axis are given in less than fp32 by the text itself."""
    axes = {roles.key_axis for roles in kernel_roles(kernel)}
    return any(
        isinstance(item.dtype, Dtype) and item.dtype.is_narrow and axes & {*item.type.axes}
        for item in kernel.inputs
    )


def _takes_bf16(kernel: Kernel) -> bool:
    bound = bind_dtypes(kernel, Dtype.BF16)
    return any(
        (item.dtype if isinstance(item.dtype, Dtype) else bound[item.dtype.name]) == Dtype.BF16
        for item in kernel.inputs
    )


def _rounds(kernel: Kernel) -> bool:
    """Whether the text casts a value to less than fp32, or keeps a state in less."""
    return casts(kernel) or any(
        isinstance(state.dtype, Dtype) and state.dtype.is_narrow for state in kernel.states
    )


def casts(kernel: Kernel) -> bool:
    """Whether the text casts a value to less than fp32."""
    return any(
        isinstance(node, Cast) and node.dtype.is_narrow
        for statement in kernel.body
        for node in _nodes(statement)
    )


def _nodes(statement: Statement) -> list[object]:
    match statement:
        case Let(value=value):
            return list(walk(value))
        case Run():
            inside = [node for inner in statement.rule.body for node in _nodes(inner)]
            return inside + [node for arg in statement.args for node in walk(arg)]
