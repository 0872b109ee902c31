"""Value heads that have one key and one query together, and a chunk that makes their products once.

k k^T and k q^T do not depend on the value head, its decays and beta do. A kernel that makes these
products once keeps them as operands, and what each head makes of them is as little as possible:
A takes beta by column, P takes none, and what is solved for is multiplied by beta before it is
written, along the bare key. Exactly the same sums; other rounding points.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from gdsl.algorithm.chunk_plan import (
    AnchoredSegments,
    ChunkEmit,
    ChunkPlan,
    DeltaSolve,
    Rows,
    Segments,
)
from gdsl.canonical.build import Builder
from gdsl.canonical.form import Delta
from gdsl.canonical.substitute import bind_arguments
from gdsl.ir.expr import Expr
from gdsl.ir.kernel import Run


def shared_axes(
    run: Run, form: Delta, solve: DeltaSolve, key: Expr, segments: Segments | None, builder: Builder
) -> tuple[str, ...]:
    """Return the axes that the state has and keys and queries lack, () where nothing is shared.

    `key` is the written key without what was absorbed into it. Products are shared where the state
    is read along that key after it has decayed, and no factor stands inside their sum.
    """
    plain = solve.read == key and solve.ratio is None and solve.rows is Rows.INCLUSIVE
    if not plain or isinstance(segments, AnchoredSegments):
        return ()
    queries = [emit.query for emit in form.emits if emit.query is not None]
    vectors = [bind_arguments(vector, run, builder) for vector in (key, *queries)]
    own = {form.key_axis, form.value_axis, *(axis for v in vectors for axis in v.type.axes)}
    return tuple(axis for axis in run.rule.state_type.axes if axis not in own)


def at_sizes(plan: ChunkPlan, sizes: Mapping[str, int]) -> ChunkPlan:
    """Return the plan as it is computed at `sizes`: with shared products where heads have them."""
    return shared_form(plan) if any(sizes[axis] > 1 for axis in plan.shared) else plan


def shared_form(plan: ChunkPlan) -> ChunkPlan:
    """Return a plan that has shared axes in the form in which heads along them share products."""
    solve = plan.solve
    assert isinstance(solve, DeltaSolve)
    beta, key = plan.absorbed, solve.read
    A = evolve(solve.A, column=key, weight=beta, shared=True)
    return evolve(
        plan,
        solve=evolve(solve, A=A, factor=beta),
        key=key,
        emits=tuple(_emit(emit, key) for emit in plan.emits),
    )


def _emit(emit: ChunkEmit, key: Expr) -> ChunkEmit:
    return emit if emit.P is None else evolve(emit, P=evolve(emit.P, column=key, shared=True))
