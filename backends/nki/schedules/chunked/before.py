"""What a chunked kernel does before its first chunk: it makes the tensors that its rule reads."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from backends.nki.contract import Contract
from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import Constant, Function, Rebind, Space, Tile, View
from backends.nki.program.numbers import Query
from backends.nki.program.structures import tupled
from backends.nki.schedules.chunked.filtering import Filtering
from backends.nki.schedules.chunked.front import Front
from backends.nki.schedules.chunked.projecting import write_projections
from backends.nki.schedules.window.program import constants_of
from gdsl.ir.kernel import Input


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
        for projected in self.front.projected:
            self._tensor(projected.item)
        filtered = self.front.filtered
        self.filtering = Filtering(self.contract, filtered, self.entry) if filtered else None
        if self.filtering is not None:
            self.constants = constants_of(self.filtering.filter)
        for item in self.front.plan.kernel.kernel.inputs:
            if item.name in self.front.sources:
                self._tensor(item, of=item.name)

    def _tensor(self, item: Input, of: str | None = None) -> None:
        """A tensor in HBM that the kernel makes; `of`: whose dtype it has, where it is a name."""
        contract = self.contract
        element = contract.element(of, item.dtype) if of else contract.new_element(item.dtype)
        sizes = contract.sizes(item.dims)
        contract.tensors[item.name] = Tile(item.name, sizes, element, Space.SHARED_HBM)

    def write(self, main: Block) -> None:
        """Add the statements."""
        projected = self.front.projected
        if projected:
            self.functions = (write_projections(main, self.contract, projected),)
            names = [p.item.name for p in projected]
            self._meet(main, names, "Tokens of the other core's columns are read.")
        if self.filtering is not None:
            self.functions += self.filtering.write(main)
            assert self.front.filtered is not None
            filtered = [self.front.filtered.name]
            self._meet(main, filtered, "Heads read what the other core filtered.")
        sources = self.front.sources
        if sources:
            main.names.taken.update(sources)
            main.statements.append(Rebind(tuple(sources), tuple(sources.values())))

    def _meet(self, main: Block, names: Sequence[str], why: str) -> None:
        """Two cores wait for each other's part of tensors."""
        with main.when(compare(">", Query("nl.num_programs(0)"), 1)) as both:
            both.comment(why)
            for name in names:
                tile = self.contract.tensors[name]
                both.do("core_barrier", data=View(tile, tile.shape), cores=tupled(0, 1))
