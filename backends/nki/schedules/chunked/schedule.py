"""What the stages know of the kernel that is being emitted."""

from __future__ import annotations

from attrs import frozen

from backends.nki.contract import ELEMENTS, Contract
from backends.nki.program.mentions import names_in
from backends.nki.program.nodes import Element, Tile
from backends.nki.program.numbers import Number, product
from backends.nki.program.structures import DtypeName, DtypeOf
from backends.nki.schedules.chunked.addresses import Addresses
from backends.nki.schedules.chunked.around import Around
from backends.nki.schedules.chunked.entries import Entries
from backends.nki.schedules.chunked.scan import Scan
from backends.nki.schedules.chunked.stage import Stage
from gdsl.algorithm.chunk_plan import DeltaSolve, Inverse, InverseKind
from gdsl.algorithm.plan import Plan, Resolved
from gdsl.ir.kernel import Input, Output, State


@frozen
class Schedule:
    """One plan in chunked form with its tensors."""

    plan: Plan
    scan: Scan
    contract: Contract
    where: Addresses
    around: Around
    entries: Entries

    @property
    def operand(self) -> Element:
        """The dtype of the matmul operands where the query tensor is at hand."""
        asked = self.scan.chunk.operands
        if asked is not None:
            return ELEMENTS[asked]
        return self.contract.element(self.scan.query.name, self.scan.query.dtype)

    @property
    def solves(self) -> bool:
        """Whether something is erased, so that there is a system to solve for what is written."""
        return self.scan.chunk.solve is not None

    @property
    def shares(self) -> bool:
        """Whether lanes may have one key and one query together, whose products are made once."""
        return bool(self.scan.chunk.shared)

    def sharing(self, stage: Stage) -> Number:
        """How many lanes have one key and one query together; brings the sizes it needs in."""
        return product(stage.numbers("sizes", *self.scan.chunk.shared))

    @property
    def left(self) -> str:
        """What is left of the written key at the end of the chunk, for docstrings."""
        return "(beta) k exp(G_last - G)" if self.shares else "beta k exp(G_last - G)"

    @property
    def columns(self) -> str:
        """The tile of k^T: with q^T, unless what stands there is another read vector."""
        return "keys_T" if self.scan.formulas.own_read else "kq_T"

    @property
    def read(self) -> str:
        """The tile of the vector that the state is read along before it is written."""
        return "p_sb" if self.scan.formulas.own_read else "k_sb"

    @property
    def inverses(self) -> tuple[Inverse, ...]:
        """The inverse of the plan, then those that a trace-time argument may choose instead."""
        solve = self.scan.chunk.solve
        if not isinstance(solve, DeltaSolve):
            return ()
        exposed = any(e.key == "inverse" for e in self.plan.exposed)
        return (solve.inverse, *(solve.alternatives if exposed else ()))

    @property
    def doubled_leaf(self) -> int:
        """Rows of the leaves that are doubled, 0 when none are."""
        leaves = [i.leaf for i in self.inverses if i.kind is InverseKind.DOUBLING]
        return leaves[0] if leaves else 0

    @property
    def operand_dtype(self) -> Number:
        """The same as a trace-time value of the entry."""
        asked = self.scan.chunk.operands
        query = DtypeOf(self.scan.query.name)
        return query if asked is None else DtypeName(ELEMENTS[asked])

    def setting(self, key: str) -> Resolved:
        """A schedule key and who decided it."""
        return next(setting for setting in self.plan.resolved if setting.key == key)

    def corrections_follow_dtype(self, inverse: Inverse) -> bool:
        """Whether fp32 operands may do with fewer corrections of a leaf than the plan has."""
        asked = self.setting("corrections").origin in ("file", "override")
        return not asked and inverse.corrections > 1

    def tensors(self, stage: Stage, *names: str) -> tuple[Tile, ...]:
        """Bring tensors in HBM in from the record `tensors`."""
        stage.block.take("tensors", *names)
        held = self.contract.tensors | {t.name: t for t in self.contract.outputs.values()}
        return tuple(held[name] for name in names)

    def strides(
        self, stage: Stage, tensor: Input | State | Output, *axes: str
    ) -> tuple[Number, ...]:
        """Elements between neighbours along axes; brings the sizes they need in."""
        steps = tuple(self.where.stride(tensor, axis) for axis in axes)
        missing = [name for name in names_in(steps) if name not in stage.block.names.taken]
        if missing:
            stage.block.take("sizes", *missing)
        return steps
