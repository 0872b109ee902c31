"""`state` declarations: where a state starts from, and how rows find their slot."""

from __future__ import annotations

from attrs import define, field

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.dims import Atom, Dim
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Ref
from gdsl.ir.kernel import Accepted, Slots, State
from gdsl.ir.node import Symbol
from gdsl.ir.types import DtypeVar, Type
from gdsl.semantics import tokens
from gdsl.semantics.axes import dimensions, show, unknown_axis
from gdsl.semantics.dtypes import element_type, tensor_type
from gdsl.semantics.frame import Binding, Frame, Kind, StateCell
from gdsl.syntax import ast


@define
class StateReader:
    """Reads the states of one kernel; argument names of states must not clash."""

    frame: Frame
    variables: dict[str, DtypeVar]
    arguments: dict[str, ast.Name] = field(factory=dict)

    def read(self, node: ast.State) -> State | None:
        """Return the state and bind its name; None when something was reported."""
        frame = self.frame
        dtype = element_type(node.tensor, self.variables, frame, written=True)
        dims = dimensions(node.tensor, frame.context.axes, frame.context.reporter)
        fits = self._argument(node)
        unless = self._unless(node)
        fits &= self._clauses_fit(node)
        slots, accepted, start_fits = self._start(node, dims)
        if dtype is Dtype.BOOL or dtype is Dtype.I32:
            frame.error(
                "E0308",
                f"a state holds real numbers, not {dtype.value}",
                node.tensor.dtype.span,
                help="store it as f32, or as bf16 with its rounding",
            )
            fits = False
        if dims is None or dtype is None or not start_fits:
            frame.define(Binding(node.name.text, Kind.STATE, node.name.span, None))
            return None
        type_ = self._type(dims, dtype, slots, accepted)
        symbol = frame.context.symbol(node.name.text)
        cell = StateCell(node.name.text, type_, symbol, node.name.span)
        reference = Ref(symbol, type_, span=node.name.span)
        binding = Binding(
            node.name.text, Kind.STATE, node.name.span, reference, cell, stored_as=dtype
        )
        if not frame.define(binding) or not fits:
            return None
        return State(
            symbol,
            node.name.text,
            node.initial.name.text,
            dtype,
            dims,
            type_,
            inplace=_has(node, ast.Inplace),
            optional=_has(node, ast.OrZeros),
            slots=slots,
            accepted=accepted,
            unless=unless,
            doc="" if node.doc is None else node.doc.text,
            span=node.span,
        )

    def _argument(self, node: ast.State) -> bool:
        name = node.initial.name
        other = self.arguments.get(name.text)
        taken = self.frame.bindings.get(name.text)
        if name.text == node.name.text:
            taken = None
        clash = other.span if other is not None else taken.span if taken is not None else None
        self.arguments.setdefault(name.text, name)
        self.frame.context.state_arguments.setdefault(name.text, node.name.text)
        if clash is None:
            return True
        self.frame.error(
            "E0202",
            f"there are two arguments `{name.text}`",
            name.span,
            label="an argument of the kernel",
            labels=(Label(clash, "the other one"),),
            help="each state starts from an argument of its own",
        )
        return False

    def _clauses_fit(self, node: ast.State) -> bool:
        kinds = [type(clause) for clause in node.clauses]
        for position, clause in enumerate(node.clauses):
            if type(clause) in kinds[:position]:
                first = node.clauses[kinds.index(type(clause))]
                self.frame.error(
                    "E0210",
                    "this stands twice",
                    clause.span,
                    labels=(Label(first.span, "first here"),),
                )
                return False
        return True

    def _unless(self, node: ast.State) -> Symbol | None:
        for clause in node.clauses:
            if isinstance(clause, ast.Unless):
                flag = self._flag(clause.flag, "the flag of `unless`", Dtype.BOOL)
                return None if flag is None else flag.symbol
        return None

    def _flag(self, name: ast.Name, role: str, dtype: Dtype) -> Ref | None:
        """Return an input of one axis (the rows) and a given dtype."""
        reference = tokens.named(name, self.frame, "E0410", role)
        if reference is None:
            return None
        if reference.type.dtype is dtype and len(reference.type.axes) == 1:
            return reference
        self.frame.error(
            "E0410",
            f"{role} must be {dtype.value} over one axis, the rows",
            name.span,
            labels=(Label(self.frame.bindings[name.text].span, "declared here"),),
            help=f"declare it: `input {name.text}: {dtype.value}[B]`",
        )
        return None

    def _start(
        self, node: ast.State, dims: tuple[Dim, ...] | None
    ) -> tuple[Slots | None, Accepted | None, bool]:
        """Slots or accepted axis of a state, and whether they fit."""
        initial = node.initial
        match initial:
            case ast.Argument():
                return None, None, True
            case ast.Slots():
                slots = self._slots(initial, dims)
                if slots is not None and not _has(node, ast.Inplace):
                    self.frame.error(
                        "E0410",
                        "a pool of slots is written in place",
                        initial.span,
                        label="`inplace` is missing",
                        help=f"write `{initial.span.text} inplace`",
                    )
                    slots = None
                return slots, None, slots is not None
            case ast.Accepted():
                accepted = self._accepted(initial, dims)
                wrong = next((c for c in node.clauses if isinstance(c, ast.Inplace)), None)
                if wrong is not None:
                    self.frame.error(
                        "E0410",
                        "states of an earlier call are only read",
                        wrong.span,
                        label="cannot be `inplace`",
                        help="return the new states by an `output`",
                    )
                    accepted = None
                return None, accepted, accepted is not None

    def _slots(self, node: ast.Slots, dims: tuple[Dim, ...] | None) -> Slots | None:
        axis = self._own_dim(node.axis, dims, "slots")
        read = self._flag(node.read, "the slots to read", Dtype.I32)
        write = self._flag(node.write, "the slots to write", Dtype.I32)
        if axis is None or read is None or write is None:
            return None
        if read.type.axes != write.type.axes:
            self.frame.error(
                "E0410",
                f"`{node.read.text}` is over {show(read.type.axes)}, `{node.write.text}` over "
                f"{show(write.type.axes)}",
                node.write.span,
                help="both count the same rows",
            )
            return None
        (batch,) = read.type.axes
        if any(dim == Atom(batch) for dim in dims or ()):
            self.frame.error(
                "E0410",
                f"the pool has the slots `{axis}` and the rows `{batch}`",
                node.axis.span,
                help=f"`{axis}` stands where `{batch}` stood: remove `{batch}` from the state",
            )
            return None
        return Slots(axis, batch, read.symbol, write.symbol, span=node.span)

    def _accepted(self, node: ast.Accepted, dims: tuple[Dim, ...] | None) -> Accepted | None:
        axis = self._own_dim(node.axis, dims, "states")
        count = self._flag(node.accepted, "the number of accepted tokens", Dtype.I32)
        if axis is None or count is None:
            return None
        (batch,) = count.type.axes
        held = [
            name
            for dim in dims or ()
            for name in tensor_type((dim,), Dtype.F32, None, self.frame).axes
        ]
        if batch not in held:
            self.frame.error(
                "E0410",
                f"`{node.accepted.text}` counts for each of {show((batch,))}, which the state "
                "does not carry",
                node.accepted.span,
                label=f"the tensor carries {show(held)}",
            )
            return None
        return Accepted(axis, count.symbol, span=node.span)

    def _own_dim(self, name: ast.Name, dims: tuple[Dim, ...] | None, what: str) -> str | None:
        """Return the axis before `at`, which must be a dimension of the tensor by itself."""
        table = self.frame.context.axes
        if name.text not in table.spans:
            unknown_axis(name.text, name.span, table.names(), self.frame.context.reporter)
            return None
        if dims is None or any(dim == Atom(name.text) for dim in dims):
            return name.text if dims is not None else None
        self.frame.error(
            "E0410",
            f"the {what} lie along `{name.text}`, which is no dimension of the tensor",
            name.span,
            help=f"add `{name.text}` to the dimensions of the state",
        )
        return None

    def _type(
        self,
        dims: tuple[Dim, ...],
        dtype: Dtype | DtypeVar,
        slots: Slots | None,
        accepted: Accepted | None,
    ) -> Type:
        held = tensor_type(dims, dtype, None, self.frame)
        axes = set(held.axes)
        if slots is not None:
            axes = axes - {slots.axis} | {slots.batch}
        if accepted is not None:
            axes -= {accepted.axis}
        return Type(self.frame.context.axes.ordered(axes), held.dtype, held.range)


def _has(node: ast.State, kind: type[ast.Inplace] | type[ast.OrZeros]) -> bool:
    return any(isinstance(clause, kind) for clause in node.clauses)
