"""`step` and `scan`: a rule run for one token, or for every token along an axis."""

from __future__ import annotations

from attrs import evolve

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr, Ref
from gdsl.ir.kernel import Rule, Run
from gdsl.ir.types import DtypeVar, Type
from gdsl.semantics import arguments as args
from gdsl.semantics import definitions, expressions, rules, tokens
from gdsl.semantics.frame import Binding, Frame, Kind, StateCell
from gdsl.semantics.scope import Definition, unknown_callable
from gdsl.syntax import ast


def elaborate(node: ast.Step | ast.Scan, frame: Frame) -> bool:
    """Add a run to the body and bind its targets; False when something was reported."""
    definition = _rule(node.call, frame)
    along = tokens.read(node, frame) if isinstance(node, ast.Scan) else tokens.ONE
    if definition is None:
        for argument in node.call.arguments:
            inner = argument.value if isinstance(argument, ast.Keyword) else argument
            expressions.elaborate(inner, frame)
        return _fail(node, frame)
    rule = definition.node
    assert isinstance(rule, ast.Rule)
    given = args.match(node.call, rule, frame)
    if not definitions.is_sound(definition, frame.context.reporter):
        return _fail(node, frame)
    counted = _count_targets(node, rule, frame)
    bound = args.bind_axes(node.call, rule, frame)
    if given is None or bound is None or along is None:
        return _fail(node, frame)
    state = _state(given, rule, frame)
    if state is None:
        given = [args.without_value(item) if item.param.is_state else item for item in given]
    fits = tokens.fit(node, along, given, frame)
    fits = fits and args.check(given, rule, bound, along.axis, frame)
    if not fits or not counted or state is None or not frame.may_expand(node.call.rule.span):
        return _fail(node, frame)
    types = {item.param.name.text: _without(item.value, along.axis) for item in given}
    made = rules.instantiate(definition, bound, types, frame.context, node.call.span, frame.rules)
    if made is None:
        return _fail(node, frame)
    values = tuple(item.value for item in given if not item.param.is_state and item.value)
    _add(node, made, values, state, along, frame)
    return True


def _rule(call: ast.RuleCall, frame: Frame) -> Definition | None:
    name = call.rule.text
    definition = frame.scope.find(name)
    if definition is None:
        unknown_callable(frame.context.reporter, frame.scope, call.rule, ast.Rule)
        return None
    if isinstance(definition.node, ast.Fn):
        frame.error(
            "E0208",
            f"`{name}` is a function; only rules run over tokens",
            call.rule.span,
            labels=(Label(definition.node.name.span, "declared here"),),
            help=f"drop the word before it: `x = {name}(...)`",
        )
        return None
    if definition in frame.rules:
        names = [rule.name for rule in frame.rules[frame.rules.index(definition) :]]
        frame.error(
            "E0206",
            f"rule `{name}` runs itself",
            call.rule.span,
            notes=(f"the chain is {' -> '.join((*names, name))}",),
            help="sub-steps run another rule along an axis of their own",
        )
        return None
    return definition


def _count_targets(node: ast.Step | ast.Scan, rule: ast.Rule, frame: Frame) -> bool:
    state = next(param.name.text for param in rule.params if param.is_state)
    names = [*(result.name.text for result in rule.results), state]
    if isinstance(node, ast.Scan) and node.every is not None:
        names.append("states")
    if len(names) == len(node.targets):
        return _state_behind(node, len(rule.results), frame)
    word = "value" if len(names) == 1 else "values"
    frame.error(
        "E0209",
        f"this run gives {len(names)} {word}, got {len(node.targets)} "
        f"name{'' if len(node.targets) == 1 else 's'}",
        node.targets[0].span,
        label=f"it gives {', '.join(names)}",
        labels=(Label(rule.name.span, "declared here"),),
        help=f"write `{', '.join(names)} = ...` with your own names: results, the new state"
        f"{', the states on the way' if 'states' in names else ''}",
    )
    return False


def _state_behind(node: ast.Step | ast.Scan, results: int, frame: Frame) -> bool:
    """Whether the new state stands behind the results, as far as names tell."""
    for target in node.targets[:results]:
        binding = frame.bindings.get(target.text)
        if binding is not None and binding.kind is Kind.STATE:
            frame.error(
                "E0209",
                f"state `{target.text}` stands in the place of a result",
                target.span,
                labels=(Label(binding.span, "declared here"),),
                help=f"results come first: `{node.targets[-1].text}, {target.text} = ...`",
            )
            return False
    return True


def _state(given: list[args.Argument], rule: ast.Rule, frame: Frame) -> Binding | None:
    """The binding of the state that the run takes and rebinds."""
    item = next(item for item in given if item.param.is_state)
    binding = frame.bindings.get(item.node.name) if isinstance(item.node, ast.NameUse) else None
    if binding is not None and binding.kind is Kind.STATE and binding.value is None:
        return None
    if binding is None or binding.cell is None:
        frame.error(
            "E0410",
            f"argument `{item.param.name.text}` of `{rule.name.text}` must be the name of a state",
            item.node.span,
            label="not a state",
            labels=(Label(item.param.span, "the rule rebinds it"),),
            help="declare it: `state S: f32[...] = state_in`",
        )
        return None
    if isinstance(binding.value, Ref) and binding.value.symbol != binding.cell.latest:
        frame.error(
            "E0410",
            f"`{binding.name}` is not the latest value of its state",
            item.node.span,
            labels=(Label(binding.cell.span, "the state"),),
            help="continue from the name that was assigned last",
        )
        return None
    return binding


def _without(value: Expr | None, axis: str | None) -> Type:
    assert value is not None
    return evolve(value.type, axes=tuple(name for name in value.type.axes if name != axis))


def _fail(node: ast.Step | ast.Scan, frame: Frame) -> bool:
    """Bind results without a value, so that their uses stay silent; the state keeps its type."""
    passed = [arg.name for arg in node.call.arguments if isinstance(arg, ast.NameUse)]
    for name in (*passed, *(target.text for target in node.targets)):
        binding = frame.bindings.get(name)
        if binding is not None and binding.cell is not None:
            binding.cell.written = True
    for target in node.targets:
        existing = frame.bindings.get(target.text)
        if existing is None or existing.kind is not Kind.STATE:
            frame.define(Binding(target.text, Kind.VALUE, target.span, None))
    return False


def _add(
    node: ast.Step | ast.Scan,
    rule: Rule,
    values: tuple[Expr, ...],
    state: Binding,
    along: tokens.Along,
    frame: Frame,
) -> None:
    """Bind results, new state and states on the way, in this order, and add the run."""
    cell = state.cell
    assert cell is not None
    assert frame.statements is not None
    before, stored_as = cell.latest, state.stored_as
    results = [
        _bind(name, Kind.VALUE, rules.with_axis(type_, along.axis, frame.context), frame)
        for name, type_ in zip(node.targets, rule.result_types, strict=False)
    ]
    carried = Type(cell.type.axes, Dtype.F32)
    name, *rest = node.targets[len(results) :]
    existing = frame.bindings.get(name.text)
    if existing is not None and existing.cell is cell:
        new = Ref(frame.context.symbol(name.text), carried, span=name.span)
        existing.value = new
    else:
        new = _bind(name, Kind.STATE, carried, frame, cell=cell, stored_as=stored_as)
    cell.latest, cell.written = new.symbol, True
    states: Ref | None = None
    for name in rest:
        type_ = rules.with_axis(carried, along.states_axis, frame.context)
        nowhere = (
            f"`{name.text}` has no axis to lie along; name one where it is made: `every N -> P`"
        )
        unusable = nowhere if along.states_axis is None else ""
        states = _bind(name, Kind.VALUE, type_, frame, stored_as=stored_as, unusable=unusable)
    frame.statements.append(
        Run(
            rule,
            values,
            before,
            along.axis,
            tuple(result.symbol for result in results),
            new.symbol,
            along.valid_len,
            along.every,
            None if states is None else states.symbol,
            along.states_axis,
            span=node.span,
        )
    )


def _bind(
    name: ast.Name,
    kind: Kind,
    type_: Type,
    frame: Frame,
    *,
    cell: StateCell | None = None,
    stored_as: Dtype | DtypeVar | None = None,
    unusable: str = "",
) -> Ref:
    value = Ref(frame.context.symbol(name.text), type_, span=name.span)
    frame.define(
        Binding(name.text, kind, name.span, value, cell, unusable=unusable, stored_as=stored_as)
    )
    return value
