"""Which rows, heads or channels a core has, where a kernel goes token by token: the key `shard`.

Cores split neighbouring rows of a rule, neighbouring channels of a window, and the first axis of
heads, the key heads, of a kernel of several sections: then no weight, window or state is needed by
two cores, and grouped heads stay with their key head. The last core takes the remainder.
"""

from __future__ import annotations

from backends.nki.program.build import Block, compare
from backends.nki.program.numbers import ZERO, Choice, Number, Query
from backends.nki.refusal import refuse
from backends.nki.select.addressing import Share
from gdsl.algorithm.plan import Plan
from gdsl.canonical.form import Delta


def refuse_columns(plan: Plan) -> None:
    """Raise CompileError where the cores of a plan that is not chunked should split columns."""
    setting = next(setting for setting in plan.resolved if setting.key == "shard")
    if setting.value != "value_columns":
        return
    if any(isinstance(form, Delta) for _, form in plan.kernel.runs):
        why = "token by token a core needs all value columns of its heads"
    else:
        why = "a kernel without a delta rule has no value columns"
    raise refuse(
        f"`shard=value_columns` is not possible: {why}",
        setting.span or plan.span,
        help="leave out `shard`, or set `shard=heads` or `shard=none`",
    )


def share_of(block: Block, total: Number, names: tuple[str, str], shard: object) -> Share:
    """Bind the first of this core's part of `total` and how many they are, by these names.

    `shard` is the value of that key.
    """
    core = block.let_named("core", Query("nl.program_id(0)"))
    if shard == "none":
        block.comment("The first core does everything.")
        count = Choice(compare("==", core, ZERO), total, ZERO)
        return Share(ZERO, block.let_named(names[1], count))
    cores = block.let_named("cores", Query("nl.num_programs(0)"))
    first = block.let_named(names[0], core * (total // cores))
    last = compare("==", core, cores - 1)
    return Share(first, block.let_named(names[1], Choice(last, total - first, total // cores)))
