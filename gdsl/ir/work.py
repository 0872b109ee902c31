"""What a kernel must do whatever its schedule: bytes of its tensors, multiply-adds of its rule.

The bytes are those of the declaration: every input once, every output once, a state once in and
once out; of a pool or of states per token only the rows that a call touches. The multiply-adds are
those of the token-by-token form, two FLOPs each: contractions (`sum` of a product) and outer
products. Elementwise work is not counted; no TensorE could take it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from attrs import frozen

from gdsl.ir.dims import Dim
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Apply, Expr, Reduce
from gdsl.ir.kernel import Kernel, Let, Run, State, Statement
from gdsl.ir.monomials import polynomial
from gdsl.ir.traverse import walk
from gdsl.ir.types import DtypeVar


@frozen
class Contract:
    """The work of one call; rooflines come from it."""

    hbm_bytes: int
    """Bytes that must cross the HBM interface."""
    matmul_flops: float
    operands: str = "bf16"
    """Element type that TensorE would multiply: `fp32`, `bf16`, `fp8` or `mx`."""


def work(kernel: Kernel, sizes: Mapping[str, int], dtypes: Mapping[str, Dtype]) -> Contract:
    """Return the work of one call: `sizes` of the atomic axes, `dtypes` of the dtype variables."""
    sized = _Sizes(kernel, sizes, dtypes)
    moved = sum(sized.bytes(item.dims, item.dtype) for item in kernel.inputs)
    moved += sum(_state_bytes(state, sized) for state in kernel.states)
    moved += sum(
        sized.bytes(output.dims, output.dtype)
        for output in kernel.outputs
        if output.state is None  # otherwise it is the write of an in-place state
    )
    flops = _flops(kernel.body, sized) + _contractions((o.value for o in kernel.outputs), sized)
    narrow = any(sized.dtype(item.dtype).is_narrow for item in kernel.inputs)
    return Contract(moved, float(flops), "bf16" if narrow else "fp32")


class _Sizes:
    """Sizes of axes, dimensions and element types at one call."""

    def __init__(
        self, kernel: Kernel, sizes: Mapping[str, int], dtypes: Mapping[str, Dtype]
    ) -> None:
        self._sizes = sizes
        self._dtypes = dtypes
        self._packed = {packed.name: packed for packed in kernel.packed}

    def dtype(self, declared: Dtype | DtypeVar) -> Dtype:
        return self._dtypes[declared.name] if isinstance(declared, DtypeVar) else declared

    def dim(self, dim: Dim) -> int:
        return sum(
            factor * prod(self._sizes[axis] for axis in monomial)
            for monomial, factor in polynomial(dim, self._packed).items()
        )

    def axis(self, name: str) -> int:
        return self.dim(self._packed[name]) if name in self._packed else self._sizes[name]

    def axes(self, names: Iterable[str]) -> int:
        return prod(self.axis(name) for name in names)

    def bytes(self, dims: Iterable[Dim], dtype: Dtype | DtypeVar) -> int:
        return prod(self.dim(dim) for dim in dims) * self.dtype(dtype).bytes


def _state_bytes(state: State, sized: _Sizes) -> int:
    """Read the rows of this call, and write them back when the state is in place."""
    rows = sized.axes(state.type.axes) * sized.dtype(state.dtype).bytes
    return 2 * rows if state.inplace else rows


def _flops(body: Iterable[Statement], sized: _Sizes) -> int:
    """Count the multiply-adds of statements; a scan runs its rule once per element of its axis."""
    total = 0
    for statement in body:
        match statement:
            case Let(value=value):
                total += _contractions((value,), sized)
            case Run(rule=rule, args=args, axis=axis):
                times = 1 if axis is None else sized.axis(axis)
                total += _contractions(args, sized) + times * _flops(rule.body, sized)
    return total


def _contractions(values: Iterable[Expr], sized: _Sizes) -> int:
    """Count products that are summed over an axis, and products that grow axes."""
    total = 0
    for value in values:
        seen: set[Expr] = set()
        summed: set[Expr] = set()
        for node in walk(value):
            if node in seen:
                continue
            seen.add(node)
            match node:
                case Reduce(operator="sum", arg=Apply(operator="mul") as product):
                    summed.add(product)
                    total += 2 * sized.axes(product.type.axes)
                case Apply(operator="mul", args=args) if node not in summed:
                    grows = all(set(arg.type.axes) < set(node.type.axes) for arg in args)
                    total += 2 * sized.axes(node.type.axes) if grows else 0
                case _:
                    pass
    return total
