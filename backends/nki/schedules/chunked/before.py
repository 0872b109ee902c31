"""What a chunked kernel does before its first chunk: it makes the tensors that its rule reads."""

from __future__ import annotations

from attrs import define, field

from backends.nki.contract import Contract
from backends.nki.program.build import Block
from backends.nki.program.nodes import Constant, Function, Rebind, Space, Tile
from backends.nki.schedules.chunked.filtering import Filtering
from backends.nki.schedules.chunked.front import Front
from backends.nki.schedules.window.program import constants_of


@define
class Before:
    """Statements of the entry, and the functions and constants they need."""

    contract: Contract
    front: Front
    entry: str
    """The batch axis."""
    functions: tuple[Function, ...] = ()
    constants: tuple[Constant, ...] = ()
    filtering: Filtering | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        filtered = self.front.filtered
        self.filtering = Filtering(self.contract, filtered, self.entry) if filtered else None
        if self.filtering is not None:
            self.constants = constants_of(self.filtering.filter)
        contract, kernel = self.contract, self.front.plan.kernel.kernel
        for item in kernel.inputs:
            if item.name in self.front.sources:
                element = contract.element(item.name, item.dtype)
                sizes = contract.sizes(item.dims)
                contract.tensors[item.name] = Tile(item.name, sizes, element, Space.SHARED_HBM)

    def write(self, main: Block) -> None:
        """Add the statements."""
        if self.filtering is not None:
            self.functions = self.filtering.write(main)
        sources = self.front.sources
        if sources:
            main.names.taken.update(sources)
            main.statements.append(Rebind(tuple(sources), tuple(sources.values())))
