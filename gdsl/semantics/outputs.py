"""`output` lines: what a kernel returns, and what storing it costs."""

from __future__ import annotations

from attrs import define, field

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.dims import Dim
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr, Ref
from gdsl.ir.kernel import Output, State
from gdsl.ir.types import DtypeVar
from gdsl.semantics import expressions
from gdsl.semantics.axes import dimensions, show, value_axes
from gdsl.semantics.dtypes import element_type
from gdsl.semantics.frame import Binding, Frame
from gdsl.source import Span
from gdsl.syntax import ast

_Element = Dtype | DtypeVar
_MANTISSA = {Dtype.F32: 24, Dtype.F16: 11, Dtype.BF16: 8, Dtype.F8E4M3: 4}
_EXPONENT = {Dtype.F32: 8, Dtype.F16: 5, Dtype.BF16: 8, Dtype.F8E4M3: 4}


@define
class OutputReader:
    """Reads the outputs of one kernel."""

    frame: Frame
    variables: dict[str, DtypeVar]
    states: dict[str, State]
    names: dict[str, Span] = field(factory=dict)

    def read(self, node: ast.Output) -> Output | None:
        """Return the output; None when something was reported."""
        value = expressions.elaborate_whole(node.value, self.frame)
        tensor = self._tensor(node)
        binding = self._binding(node.value)
        state = self.states.get(binding.cell.name) if binding and binding.cell else None
        fits = self._new_name(node)
        if value is None:
            return None
        if node.tensor is None:
            tensor = self._tensor_of_state(node, state)
        if tensor is None:
            return None
        dtype, dims = tensor
        doc = "" if node.doc is None else node.doc.text
        if state is not None and self._returns(state, value, binding, dtype, dims):
            name = state.name
            return Output(node.name.text, dtype, dims, value, name, doc, span=node.span)
        fits &= self._axes_fit(node, value, dims)
        fits &= self._keeps_digits(node, value, binding, dtype)
        return (
            Output(node.name.text, dtype, dims, value, None, doc, span=node.span) if fits else None
        )

    def _binding(self, node: ast.Expr) -> Binding | None:
        """The name an output copies, if it is nothing but a name."""
        match node:
            case ast.NameUse(name=name):
                return self.frame.bindings.get(name)
            case ast.Group(inner=inner):
                return self._binding(inner)
            case _:
                return None

    def _new_name(self, node: ast.Output) -> bool:
        name, reporter = node.name, self.frame.context.reporter
        message = f"there are two outputs `{name.text}`"
        return reporter.is_first(self.names, name.text, name.span, message)

    def _tensor(self, node: ast.Output) -> tuple[_Element, tuple[Dim, ...]] | None:
        if node.tensor is None:
            return None
        dtype = element_type(node.tensor, self.variables, self.frame, written=True)
        dims = dimensions(node.tensor, self.frame.context.axes, self.frame.context.reporter)
        return None if dtype is None or dims is None else (dtype, dims)

    def _tensor_of_state(
        self, node: ast.Output, state: State | None
    ) -> tuple[_Element, tuple[Dim, ...]] | None:
        """The tensor of an output without a type: that of the state it returns."""
        if state is None:
            self.frame.error(
                "E0306",
                f"output `{node.name.text}` needs a type",
                node.name.span,
                label="no type",
                notes=("only an output that returns a state takes its type from there",),
                help=f"write `output {node.name.text}: f32[...] = ...`",
            )
            return None
        kept = state.accepted.axis if state.accepted is not None else None
        return state.dtype, tuple(dim for dim in state.dims if value_axes(dim) != (kept,))

    def _returns(
        self,
        state: State,
        value: Expr,
        binding: Binding | None,
        dtype: _Element,
        dims: tuple[Dim, ...],
    ) -> bool:
        """Whether the output is the tensor that an in-place state was written to."""
        latest = binding.cell.latest if binding is not None and binding.cell is not None else None
        same = state.inplace and dtype == state.dtype and dims == state.dims
        return same and isinstance(value, Ref) and value.symbol == latest

    def _axes_fit(self, node: ast.Output, value: Expr, dims: tuple[Dim, ...]) -> bool:
        declared = {axis for dim in dims for axis in value_axes(dim)}
        carried = set(value.type.axes)
        left, lacking = carried - declared, declared - carried
        table = self.frame.context.axes
        target = node.tensor.span if node.tensor is not None else node.name.span
        if left:
            shown = show(table.ordered(left))
            self.frame.error(
                "E0304",
                f"output `{node.name.text}` leaves {shown} over",
                node.value.span,
                label=f"carries {show(value.type.axes)}",
                labels=(Label(target, f"has the axes {show(table.ordered(declared))}"),),
                help=f"reduce them, for example `sum{shown}(...)`, or add them to the output",
            )
        if lacking:
            self.frame.error(
                "E0306",
                f"the value of output `{node.name.text}` lacks {show(table.ordered(lacking))}",
                node.value.span,
                label=f"carries {show(value.type.axes)}",
                labels=(Label(target, f"has the axes {show(table.ordered(declared))}"),),
                help="outputs are not filled by repetition; remove the axis from the output",
            )
        return not left and not lacking

    def _keeps_digits(
        self, node: ast.Output, value: Expr, binding: Binding | None, dtype: _Element
    ) -> bool:
        is_bool = value.type.dtype is Dtype.BOOL
        if is_bool != (dtype is Dtype.BOOL):
            what = "a condition" if is_bool else "a number"
            self.frame.error(
                "E0308",
                f"output `{node.name.text}` is {_name(dtype)}, its value is {what}",
                node.value.span,
                help="`where(condition, 1, 0)` makes a number, a comparison makes a condition",
            )
            return False
        if dtype is Dtype.I32 and value.type.dtype is not Dtype.I32:
            self.frame.error(
                "E0307",
                f"output `{node.name.text}` is i32, its value is a real number",
                node.value.span,
                help="round it where you mean it: `i32(...)`",
            )
            return False
        stored = binding.stored_as if binding is not None else None
        if stored is None or not _loses(stored, dtype):
            return True
        assert binding is not None
        self.frame.error(
            "E0307",
            f"output `{node.name.text}` is {_name(dtype)}, but `{binding.name}` is {_name(stored)}",
            node.value.span,
            label=f"stored as {_name(stored)}",
            labels=(Label(binding.span, "declared here"),),
            help=f"declare the output {_name(stored)}, or round on purpose: "
            f"`{_example(dtype)}({binding.name})`",
        )
        return False


def _choices(dtype: _Element) -> tuple[Dtype, ...]:
    return dtype.choices if isinstance(dtype, DtypeVar) else (dtype,)


def _loses(stored: _Element, target: _Element) -> bool:
    """Whether some value of `stored` is not one of `target`."""
    if stored == target:
        return False
    return any(
        s.is_float and t.is_float and (_MANTISSA[s] > _MANTISSA[t] or _EXPONENT[s] > _EXPONENT[t])
        for s in _choices(stored)
        for t in _choices(target)
    )


def _name(dtype: _Element) -> str:
    return dtype.name if isinstance(dtype, DtypeVar) else dtype.value


def _example(dtype: _Element) -> str:
    return min(_choices(dtype), key=lambda choice: _MANTISSA.get(choice, 0)).value
