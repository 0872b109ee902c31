"""The head of an emitted kernel: its parameters, the sizes of its axes, its assertions, outputs."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import (
    BF16,
    F16,
    F32,
    I32,
    U8,
    Element,
    Parameter,
    Space,
    Tile,
    View,
)
from backends.nki.program.numbers import Extent, Name, Number, product
from backends.nki.refusal import refuse
from gdsl.ir.dims import Atom, Dim, Packed, Product, Unit
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Input, Kernel, Output, State
from gdsl.ir.types import DtypeVar

ELEMENTS = {
    Dtype.F32: F32,
    Dtype.BF16: BF16,
    Dtype.F16: F16,
    Dtype.I32: I32,
    Dtype.BOOL: U8,
}


@define
class Contract:
    """A kernel's tensors as tiles, by name."""

    kernel: Kernel
    tensors: dict[str, Tile] = field(factory=dict)
    """Arguments and outputs."""

    def parameters(self) -> tuple[Parameter, ...]:
        """The entry's parameters in the order of the call line."""
        kernel = self.kernel
        inputs = {i.name: i for i in kernel.inputs}
        states = {s.argument: s for s in kernel.states}
        params = {p.name: p for p in kernel.params}
        found: list[Parameter] = []
        for argument in kernel.call.arguments:
            name = argument.name
            if name in inputs:
                item = inputs[name]
                default = None if item.default is None else "None"
                found.append(Parameter(name, self._argument(name, item), default))
            elif name in states:
                state = states[name]
                default = "None" if state.optional else None
                found.append(Parameter(name, self._argument(name, state), default))
            elif name in params:
                value = params[name].default
                found.append(Parameter(name, None, None if value is None else repr(value)))
            else:
                raise refuse(
                    f"argument `{name}` of the call line ({argument.role}) is not emitted yet",
                    argument.span or kernel.call.span,
                )
        return tuple(found)

    def _argument(self, name: str, item: Input | State) -> Tile:
        tile = Tile(name, dim_sizes(item.dims), self.element(item.dtype), Space.ARGUMENT)
        self.tensors[name] = tile
        return tile

    def element(self, dtype: Dtype | DtypeVar) -> Element:
        """The element type of a tensor; a dtype variable is that of its first tensor."""
        if isinstance(dtype, Dtype):
            return ELEMENTS[dtype]
        first = next(i.name for i in self.kernel.inputs if i.dtype == dtype)
        return Element(f"{first}.dtype", max(choice.bytes for choice in dtype.choices))

    def write_sizes(self, block: Block) -> None:
        """Bind every axis to its size, taken from the tensor shapes."""
        tensors = [(i.name, i.dims) for i in self.kernel.inputs if i.default is None]
        tensors += [(s.argument, s.dims) for s in self.kernel.states if not s.optional]
        known: set[str] = set()
        pending = [axis.name for axis in self.kernel.axes]
        while pending:
            solved = [axis for axis in pending if self._solve(axis, tensors, known, block)]
            if not solved:
                raise refuse(
                    f"the size of axis `{pending[0]}` does not follow from the tensor shapes",
                    self.kernel.span,
                )
            pending = [axis for axis in pending if axis not in solved]

    def _solve(
        self,
        axis: str,
        tensors: Sequence[tuple[str, Sequence[Dim]]],
        known: set[str],
        block: Block,
    ) -> bool:
        for name, dims in tensors:
            for position, dim in enumerate(dims):
                atoms = atoms_of(dim)
                others = [atom for atom in atoms if atom != axis]
                if axis in atoms and all(other in known for other in others):
                    value = Extent(name, position) // product(tuple(Name(o) for o in others))
                    block.names.taken.add(axis)
                    block.let_named(axis, value)
                    known.add(axis)
                    return True
        return False

    def write_checks(self, block: Block, limits: Sequence[tuple[str, int]]) -> None:
        """Assert the limits of the target and the shape of every tensor."""
        for axis, limit in limits:
            block.require(
                compare("<=", Name(axis), limit),
                f"{self.kernel.name} needs {axis} <= {limit}, got {axis} = {{{axis}}}",
            )
        for argument in self.kernel.call.arguments:
            tile = self.tensors.get(argument.name)
            if tile is not None:
                block.require_shape(tile)

    def write_outputs(self, block: Block) -> None:
        """Allocate the tensors the kernel returns."""
        for output in self.kernel.outputs:
            self.tensors[output.name] = self._output(block, output)

    def _output(self, block: Block, output: Output) -> Tile:
        view = block.tile(
            output.name, dim_sizes(output.dims), self.element(output.dtype), Space.SHARED_HBM
        )
        return view.tile

    def whole(self, name: str) -> View:
        """All of a tensor."""
        tile = self.tensors[name]
        return View(tile, tile.shape)


def atoms_of(dim: Dim) -> list[str]:
    """The atomic axes of a dimension, outermost first."""
    match dim:
        case Unit():
            return []
        case Atom(axis=axis):
            return [axis]
        case Product(parts=parts):
            return [atom for part in parts for atom in atoms_of(part)]
        case Packed(name=name):
            return [name]


def dim_sizes(dims: Sequence[Dim]) -> tuple[Number, ...]:
    """The sizes of a tensor's dimensions."""
    return tuple(product(tuple(Name(a) for a in atoms_of(dim))) for dim in dims)
