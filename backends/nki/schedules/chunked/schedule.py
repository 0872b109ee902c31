"""What the stages know of the kernel that is being emitted."""

from __future__ import annotations

from attrs import frozen

from backends.nki.contract import Contract
from backends.nki.program.nodes import Element
from backends.nki.schedules.chunked.addresses import Addresses
from backends.nki.schedules.chunked.scan import Scan
from gdsl.algorithm.plan import Plan


@frozen
class Schedule:
    """One plan in chunked form with its tensors."""

    plan: Plan
    scan: Scan
    contract: Contract
    where: Addresses

    @property
    def operand(self) -> Element:
        """The dtype of the matmul operands where the query tensor is at hand."""
        return self.contract.element(self.scan.query.name, self.scan.query.dtype)
