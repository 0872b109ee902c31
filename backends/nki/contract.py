"""The head of an emitted kernel: its parameters, the sizes of its axes, its assertions, outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import assert_never

from attrs import define, evolve, field, frozen

from backends.nki.no_states import write_no_states
from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import (
    BF16,
    F8E4M3,
    F16,
    F32,
    I32,
    U8,
    Allocate,
    Element,
    Integers,
    Parameter,
    Space,
    Tile,
    View,
    dtype_of,
)
from backends.nki.program.numbers import (
    NONE,
    ONE,
    ZERO,
    Choice,
    Extent,
    Largest,
    Literal,
    Name,
    Number,
    product,
)
from backends.nki.refusal import refuse
from gdsl.algorithm.schedule_keys import Value
from gdsl.ir.dims import Dim
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Input, Kernel, Output, State
from gdsl.ir.monomials import Monomial, Term, polynomial
from gdsl.ir.size_plan import FromParam, FromQuotient, FromShapes, FromTokens, Step, size_plan
from gdsl.ir.types import DtypeVar

ELEMENTS = {
    Dtype.F32: F32,
    Dtype.BF16: BF16,
    Dtype.F16: F16,
    Dtype.F8E4M3: F8E4M3,
    Dtype.I32: I32,
    Dtype.BOOL: U8,
}


@frozen
class Limit:
    """How many elements an axis may have, and what a caller with more of them can do."""

    axis: str
    most: int
    least: int = 1
    remedy: str = ""


@define
class Contract:
    """A kernel's tensors as tiles, by name."""

    kernel: Kernel
    tensors: dict[str, Tile] = field(factory=dict)
    """Arguments."""
    outputs: dict[str, Tile] = field(factory=dict)
    """Tensors that are returned, by the name of the output."""
    optional: set[str] = field(factory=set)
    """Tensor arguments that may be None."""
    required: list[str] = field(factory=list)
    """Arguments that must be given although the signature cannot say so."""
    indices: dict[str, Tile] = field(factory=dict)
    """Tensors of the kernel's own that count along an axis."""
    exposed: Mapping[str, Value] = field(factory=dict)
    """Defaults of the arguments that are schedule keys; the schedule must know them all."""

    def parameters(self) -> tuple[Parameter, ...]:
        """The entry's parameters in the order of the call line."""
        kernel = self.kernel
        tensors: dict[str, Input | State] = {i.name: i for i in kernel.inputs}
        tensors |= {s.argument: s for s in kernel.states}
        params = {p.name: p for p in kernel.params}
        outputs = {o.name: o for o in kernel.outputs}
        found: list[Parameter] = []
        for argument in kernel.call.arguments:
            name = argument.name
            if name in tensors:
                item = tensors[name]
                optional = item.default is not None if isinstance(item, Input) else item.optional
                if isinstance(item, State) and item.slots is not None:
                    optional = False
                if optional:
                    self.optional.add(name)
                element = self.element(name, item.dtype)
                tile = Tile(name, self.sizes(item.dims), element, Space.ARGUMENT)
                self.tensors[name] = tile
                found.append(Parameter(name, tile, "None" if optional else None))
            elif name in outputs:
                output = outputs[name]
                element = self.element(name, output.dtype)
                tile = Tile(name, self.sizes(output.dims), element, Space.ARGUMENT)
                self.tensors[name] = tile
                found.append(Parameter(name, tile))
            elif name in params:
                value = params[name].default
                found.append(Parameter(name, None, None if value is None else repr(value)))
            elif argument.role == "ignored":
                found.append(Parameter(name, None, "None"))
            elif name in self.exposed:
                found.append(Parameter(name, None, repr(self.exposed[name])))
            else:
                raise refuse(
                    f"argument `{name}` of the call line ({argument.role}) is not emitted yet",
                    argument.span or kernel.call.span,
                )
        return self._python_order(found)

    def _python_order(self, parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
        """Give what is required after an optional parameter the default None, and note it."""
        ordered: list[Parameter] = []
        optional = False
        for parameter in parameters:
            if optional and parameter.default is None:
                self.required.append(parameter.name)
                parameter = evolve(parameter, default="None")
            optional = optional or parameter.default is not None
            ordered.append(parameter)
        return tuple(ordered)

    def element(self, tensor: str, dtype: Dtype | DtypeVar) -> Element:
        """The element type of a tensor as text: its own, so that a transfer never converts."""
        choices = (dtype,) if isinstance(dtype, Dtype) else dtype.choices
        if min(choice.bytes for choice in choices) == 4:
            return ELEMENTS[choices[0]]
        return dtype_of(tensor, max(choice.bytes for choice in choices))

    def new_element(self, dtype: Dtype | DtypeVar) -> Element:
        """The element type of a new tensor: a dtype variable is that of its first input."""
        if isinstance(dtype, Dtype):
            return ELEMENTS[dtype]
        return self.element(next(i.name for i in self.kernel.inputs if i.dtype == dtype), dtype)

    def sizes(self, dims: Sequence[Dim]) -> tuple[Number, ...]:
        """The sizes of a tensor's dimensions."""
        return tuple(self._size(dim) for dim in dims)

    def _size(self, dim: Dim) -> Number:
        packed = {item.name: item for item in self.kernel.packed}
        order = [axis.name for axis in self.kernel.axes]
        total: Number | None = None
        for monomial, factor in polynomial(dim, packed).items():
            axes = sorted(monomial, key=order.index)
            value = product((factor, *(Name(axis) for axis in axes)))
            total = value if total is None else total + value
        assert total is not None
        return total

    def write_sizes(self, block: Block) -> None:
        """Bind every axis to its size, taken from the tensor shapes."""
        for name in self.required:
            block.require(compare("!=", Name(name), NONE), f"`{name}` is required")
        required = {i.name for i in self.kernel.inputs if i.default is None}
        # A pool without the pool is not a call anybody makes.
        required |= {s.argument for s in self.kernel.states if not s.optional or s.slots}
        plan = size_plan(self.kernel, required)
        if plan.open:
            raise refuse(
                f"the size of axis `{plan.open[0]}` does not follow from the tensor shapes",
                self.kernel.span,
                help=f"add `param {plan.open[0]}: int` to the kernel",
            )
        known: dict[Monomial, Number] = {}
        for step in plan.steps:
            value = _solution(step, known)
            if len(step.target) > 1:
                known[step.target] = value
            elif isinstance(step, FromParam):
                known[step.target] = Name(step.param)
            else:
                if isinstance(step, FromTokens) and isinstance(step.every, str):
                    self._require_distance(block, step.every)
                known[step.target] = block.let_named(step.target[0], value)

    def _require_distance(self, block: Block, every: str) -> None:
        """Assert that states are some tokens apart; 0 asks for none."""
        block.require(
            compare(">=", Name(every), 0),
            f"{self.kernel.name} returns the states after every {every} tokens, or none for 0, "
            f"got {every} = {{{every}}}",
        )

    def write_checks(
        self,
        block: Block,
        limits: Sequence[Limit],
        missing: Collection[str] = (),
    ) -> None:
        """Assert the limits of the target and the shape of every tensor that is not `missing`."""
        for limit in limits:
            axis = limit.axis
            for op, bound in ((">=", limit.least), ("<=", limit.most)):
                if op == "<=" or bound > 1:
                    message = f"{self.kernel.name} needs {axis} {op} {bound}, got {axis} = "
                    condition = compare(op, Name(axis), bound)
                    remedy = limit.remedy if op == "<=" else ""
                    block.require(condition, f"{message}{{{axis}}}", remedy)
        for argument in self.kernel.call.arguments:
            tile = self.tensors.get(argument.name)
            if tile is None:
                continue
            if argument.name in missing:
                with block.when(compare("!=", Name(argument.name), NONE)) as given:
                    given.require_shape(tile)
            else:
                block.require_shape(tile)

    def write_outputs(self, block: Block) -> None:
        """Allocate the tensors the kernel returns, but for those the caller brought."""
        for output in self.kernel.outputs:
            self.outputs[output.name] = self._output(block, output)
        write_no_states(block, self.kernel, self.outputs)

    def _output(self, block: Block, output: Output) -> Tile:
        for state in self.kernel.states:
            if state.inplace and output.state == state.name:
                return self.tensors[state.argument]
        if output.name in self.tensors:
            return self.tensors[output.name]
        sizes = self.sizes(output.dims)
        return block.tile(output.name, sizes, self.new_element(output.dtype), Space.SHARED_HBM).tile

    @property
    def returns(self) -> tuple[str, ...]:
        """Names of what the kernel returns, in order."""
        return tuple(self.outputs[name].name for name in self.kernel.call.returns)

    def index(self, axis: str, name: str) -> Tile:
        """A tensor of 0, 1, 2, ... along an axis, which `write_indices` makes."""
        return self.indices.setdefault(axis, Tile(name, (Name(axis),), F32, Space.PRIVATE_HBM))

    def write_indices(self, block: Block) -> None:
        """Make the tensors of `index`, in HBM: inputs of the kernel's own."""
        for tile in self.indices.values():
            block.statements.append(Allocate(tile))
            shape: tuple[Number, ...] = (ONE, tile.shape[0])
            count = block.tile(f"{tile.name}_count_sb", shape, I32)
            block.do("iota", dst=count, pattern=Integers(((ONE, tile.shape[0]),)), offset=ZERO)
            numbers = block.tile(f"{tile.name}_sb", shape, F32)
            block.do("tensor_copy", dst=numbers, src=count)
            block.do("dma_copy", dst=View(tile, tile.shape), src=numbers)

    def whole(self, name: str) -> View:
        """All of a tensor."""
        tile = self.tensors[name]
        return View(tile, tile.shape)


def _solution(step: Step, known: Mapping[Monomial, Number]) -> Number:
    match step:
        case FromShapes(extents=extents, known=summands, divisor=divisor):
            total: Number | None = None
            for extent in extents:
                value = extent.weight * Extent(extent.tensor, extent.dim)
                total = value if total is None else total + value
            assert total is not None
            for summand in summands:
                total = total - _term(summand, known)
            factor = _term(divisor[0], known)
            for more in divisor[1:]:
                factor = factor + _term(more, known)
            return total // factor
        case FromQuotient(product=whole, divisors=divisors):
            return known[whole] // product(tuple(known[d] for d in divisors))
        case FromParam(param=param):
            return Name(param)
        case FromTokens(tokens=tokens, every=every):
            if every == 1:
                return known[(tokens,)]
            # There is no tensor without elements.
            often = Literal(every) if isinstance(every, int) else Name(every)
            found = Largest(ONE, known[(tokens,)] // often)
            return found if isinstance(every, int) else Choice(compare(">", often, 0), found, ONE)
        case _:
            assert_never(step)


def _term(term: Term, known: Mapping[Monomial, Number]) -> Number:
    return product((term.factor, *(known[quantity] for quantity in term.quantities)))
