"""Where tensors of eight bits may stand in an emitted kernel: weights of projections.

Both targets have the type as `float8_e4m3` (IEEE-like, at most 240), and TensorE multiplies it with
16-bit values there. `float8_e4m3fn` (at most 448) is an input of TensorE on trn3 only.
"""

from __future__ import annotations

from backends.nki.refusal import refuse
from backends.nki.schedules.block.cut import cut
from gdsl.algorithm.plan import Plan
from gdsl.ir.dtypes import Dtype


def refuse_narrow(plan: Plan) -> None:
    """Raise CompileError for an input of eight bits that is no weight of a projection.

    A kernel without a rule is nothing but projections; its own schedule refuses the rest.
    """
    narrow = [item for item in plan.kernel.kernel.inputs if item.dtype == Dtype.F8E4M3]
    if not narrow or not plan.runs:
        return
    weights = {p.weight.name for p in cut(plan).projections} if plan.form == "decode" else set()
    for item in narrow:
        if item.name not in weights:
            raise refuse(
                f"`{item.name}` is {Dtype.F8E4M3.value}, but is no weight of a projection of one "
                "token",
                item.span,
                label="expected bf16, f16 or f32",
            )
