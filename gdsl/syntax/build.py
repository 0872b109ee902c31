"""lark tree -> syntax tree. One method per rule of the grammar; no checks of meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Token, Tree

from gdsl.source import Source, Span
from gdsl.syntax import ast

LarkTree = Tree[Token]
Child = Any
"""What lark hands a callback: a token, a node, a tuple of nodes, or None for what was left out."""


class Builder:
    """Builds the nodes of one source. `build(tree)` dispatches on the rule's name."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._length = len(source.text)

    def file(self, tree: LarkTree) -> ast.File:
        """Return the node of a whole file, whose span is all of the text."""
        doc, *declarations = [self.build(child) for child in tree.children]
        whole = Span(self.source, 0, self._length)
        return ast.File(doc, tuple(declarations), span=whole)

    def build(self, tree: LarkTree | Token | None) -> Child:
        """Return the node (or tuple of nodes) of a tree; tokens and None pass through."""
        if not isinstance(tree, Tree):
            return tree
        method: Callable[[Span, list[Child]], Child] = getattr(self, f"_{tree.data}")
        return method(self._span_of(tree), [self.build(child) for child in tree.children])

    def _span_of(self, tree: LarkTree) -> Span:
        if tree.meta.empty:
            return self._span(0, 0)
        # A block ends at the line end or dedent behind it; the node ends at its last character.
        start, end = tree.meta.start_pos, tree.meta.end_pos
        text = self.source.text
        end = min(end, self._length)
        while end > start and text[end - 1] in " \r\n":
            end -= 1
        return self._span(start, end)

    def _span(self, start: int, end: int) -> Span:
        return Span(self.source, min(start, self._length), min(end, self._length))

    def _name(self, span: Span, children: list[Child]) -> ast.NameUse:
        return ast.NameUse(str(children[0]), span=span)

    def _word_name(self, token: Token) -> ast.Name:
        start = token.start_pos or 0
        return ast.Name(str(token), span=self._span(start, start + len(token)))

    def _all_names(self, children: list[Child]) -> tuple[ast.Name, ...]:
        return tuple(self._word_name(token) for token in children)

    # -------------------------------------------------------------- declarations

    def _doc(self, span: Span, children: list[Child]) -> ast.Doc:
        text = str(children[0])
        quotes = '"""' if text.startswith('"""') else '"'
        return ast.Doc(text[len(quotes) : -len(quotes)], quotes, span=span)

    def _use(self, span: Span, children: list[Child]) -> ast.Use:
        return ast.Use(tuple(children), span=span)

    def _library(self, span: Span, children: list[Child]) -> ast.Library:
        text = str(children[0])
        return ast.Library(text.strip('"'), text.startswith('"'), span=span)

    def _fn(self, span: Span, children: list[Child]) -> ast.Fn:
        name, axes, params, body = children
        return ast.Fn(self._word_name(name), axes or (), params or (), body, span=span)

    def _fn_params(self, span: Span, children: list[Child]) -> tuple[ast.FnParam, ...]:
        return tuple(children)

    def _fn_param(self, span: Span, children: list[Child]) -> ast.FnParam:
        return ast.FnParam(self._word_name(children[0]), children[1], span=span)

    def _axis_names(self, span: Span, children: list[Child]) -> tuple[ast.Name, ...]:
        return self._all_names(children)

    def _names(self, span: Span, children: list[Child]) -> tuple[ast.Name, ...]:
        return self._all_names(children)

    def _rule(self, span: Span, children: list[Child]) -> ast.Rule:
        name, axes, params, results, doc, *body = children
        return ast.Rule(
            self._word_name(name),
            axes or (),
            params or (),
            results or (),
            doc,
            tuple(body),
            span=span,
        )

    def _rule_params(self, span: Span, children: list[Child]) -> tuple[ast.RuleParam, ...]:
        return tuple(children)

    def _rule_param(self, span: Span, children: list[Child]) -> ast.RuleParam:
        return ast.RuleParam(self._word_name(children[0]), children[1] or (), False, span=span)

    def _rule_state(self, span: Span, children: list[Child]) -> ast.RuleParam:
        return ast.RuleParam(self._word_name(children[0]), children[1] or (), True, span=span)

    def _rule_axes(self, span: Span, children: list[Child]) -> tuple[ast.RuleAxis, ...]:
        return tuple(children)

    def _rule_axis(self, span: Span, children: list[Child]) -> ast.RuleAxis:
        return ast.RuleAxis(str(children[0]), False, span=span)

    def _optional_axis(self, span: Span, children: list[Child]) -> ast.RuleAxis:
        return ast.RuleAxis(str(children[0]), True, span=span)

    def _rule_results(self, span: Span, children: list[Child]) -> tuple[ast.RuleResult, ...]:
        return tuple(children)

    def _rule_result(self, span: Span, children: list[Child]) -> ast.RuleResult:
        return ast.RuleResult(self._word_name(children[0]), children[1] or (), span=span)

    def _kernel(self, span: Span, children: list[Child]) -> ast.Kernel:
        name, doc, *items = children
        return ast.Kernel(self._word_name(name), doc, tuple(items), span=span)

    # -------------------------------------------------------------- axes and tensors

    def _axes(self, span: Span, children: list[Child]) -> ast.Axes:
        return ast.Axes(tuple(children), span=span)

    def _axis(self, span: Span, children: list[Child]) -> ast.Axis:
        return ast.Axis(self._word_name(children[0]), tuple(children[1:]), span=span)

    def _at_most(self, span: Span, children: list[Child]) -> ast.Fact:
        return ast.Fact("at_most", int(children[0]), span=span)

    def _multiple_of(self, span: Span, children: list[Child]) -> ast.Fact:
        return ast.Fact("multiple_of", int(children[0]), int(children[1]), span=span)

    def _composite(self, span: Span, children: list[Child]) -> ast.Composite:
        return ast.Composite(self._word_name(children[0]), children[1], span=span)

    def _packed(self, span: Span, children: list[Child]) -> ast.Packed:
        return ast.Packed(self._word_name(children[0]), tuple(children[1:]), span=span)

    def _packed_field(self, span: Span, children: list[Child]) -> ast.PackedField:
        return ast.PackedField(self._word_name(children[0]), children[1], span=span)

    def _axis_dim(self, span: Span, children: list[Child]) -> ast.AxisDim:
        return ast.AxisDim(str(children[0]), span=span)

    def _number_dim(self, span: Span, children: list[Child]) -> ast.NumberDim:
        return ast.NumberDim(int(children[0]), span=span)

    def _product(self, span: Span, children: list[Child]) -> ast.ProductDim:
        return ast.ProductDim(tuple(children), span=span)

    def _dtypes(self, span: Span, children: list[Child]) -> ast.Dtypes:
        return ast.Dtypes(self._word_name(children[0]), tuple(children[1:]), span=span)

    def _dtype(self, span: Span, children: list[Child]) -> ast.Name:
        return ast.Name(str(children[0]), span=span)

    def _tensor(self, span: Span, children: list[Child]) -> ast.Tensor:
        dtype, dims = children
        if isinstance(dtype, Token):
            dtype = self._word_name(dtype)
        return ast.Tensor(dtype, dims or (), span=span)

    def _dims(self, span: Span, children: list[Child]) -> tuple[ast.Dim, ...]:
        return tuple(child for child in children if child is not None)

    # -------------------------------------------------------------- kernel items

    def _input(self, span: Span, children: list[Child]) -> ast.Input:
        names, tensor, *clauses, doc = children
        return ast.Input(names, tensor, tuple(clauses), doc, span=span)

    def _interval(self, span: Span, children: list[Child]) -> ast.Interval:
        _, opening, lo, _, hi, closing = children
        return ast.Interval(float(lo), float(hi), opening == "(", closing == ")", lo, hi, span=span)

    def _bound(self, span: Span, children: list[Child]) -> str:
        return "".join(children)

    def _default(self, span: Span, children: list[Child]) -> ast.Default:
        (value,) = children
        if isinstance(value, Token):
            value = self._word_name(value)
        return ast.Default(value, span=span)

    def _literal(self, span: Span, children: list[Child]) -> ast.Literal:
        text = "".join(children)
        return ast.Literal(text, _literal_value(text), span=span)

    def _param(self, span: Span, children: list[Child]) -> ast.Param:
        name, kind, default, limits, doc = children
        return ast.Param(self._word_name(name), kind, default, limits, doc, span=span)

    def _kind(self, span: Span, children: list[Child]) -> str:
        return str(children[0])

    def _assume(self, span: Span, children: list[Child]) -> ast.Assume:
        return ast.Assume(children[0], span=span)

    def _state(self, span: Span, children: list[Child]) -> ast.State:
        name, tensor, initial, *clauses, doc = children
        return ast.State(self._word_name(name), tensor, initial, tuple(clauses), doc, span=span)

    def _argument(self, span: Span, children: list[Child]) -> ast.Argument:
        return ast.Argument(self._word_name(children[0]), span=span)

    def _slots(self, span: Span, children: list[Child]) -> ast.Slots:
        return ast.Slots(*self._all_names(children), span=span)

    def _accepted(self, span: Span, children: list[Child]) -> ast.Accepted:
        return ast.Accepted(*self._all_names(children), span=span)

    def _inplace(self, span: Span, children: list[Child]) -> ast.Inplace:
        return ast.Inplace(span=span)

    def _or_zeros(self, span: Span, children: list[Child]) -> ast.OrZeros:
        return ast.OrZeros(span=span)

    def _unless(self, span: Span, children: list[Child]) -> ast.Unless:
        return ast.Unless(self._word_name(children[0]), span=span)

    def _let(self, span: Span, children: list[Child]) -> ast.Let:
        return ast.Let(children[0], children[1], span=span)

    def _step(self, span: Span, children: list[Child]) -> ast.Step:
        return ast.Step(children[0], children[1], span=span)

    def _scan(self, span: Span, children: list[Child]) -> ast.Scan:
        targets, axis, valid_len, every, call = children
        return ast.Scan(
            targets,
            self._word_name(axis),
            None if valid_len is None else self._word_name(valid_len),
            every,
            call,
            span=span,
        )

    def _every(self, span: Span, children: list[Child]) -> ast.Every:
        count, axis = children
        value: ast.Literal | ast.Name = self._word_name(count)
        if count.type == "INT":
            value = ast.Literal(str(count), int(count), span=value.span)
        return ast.Every(value, None if axis is None else self._word_name(axis), span=span)

    def _rule_call(self, span: Span, children: list[Child]) -> ast.RuleCall:
        name, axes, arguments = children
        return ast.RuleCall(self._word_name(name), axes or (), arguments or (), span=span)

    def _output(self, span: Span, children: list[Child]) -> ast.Output:
        name, tensor, value, doc = children
        return ast.Output(self._word_name(name), tensor, value, doc, span=span)

    def _call(self, span: Span, children: list[Child]) -> ast.CallLine:
        arguments, returns = children
        return ast.CallLine(arguments or (), returns, span=span)

    def _call_arguments(self, span: Span, children: list[Child]) -> tuple[ast.CallArgument, ...]:
        return tuple(children)

    def _call_argument(self, span: Span, children: list[Child]) -> ast.CallArgument:
        name, key = children
        ignored = key == "ignored"
        word = self._word_name(key) if isinstance(key, Token) else None
        return ast.CallArgument(self._word_name(name), word, ignored, span=span)

    def _ignored(self, span: Span, children: list[Child]) -> str:
        return "ignored"

    # -------------------------------------------------------------- schedules and shapes

    def _schedule(self, span: Span, children: list[Child]) -> ast.Schedule:
        name, targets, *settings = children
        return ast.Schedule(self._word_name(name), targets or (), tuple(settings), span=span)

    def _setting(self, span: Span, children: list[Child]) -> ast.Setting:
        return ast.Setting(self._word_name(children[0]), children[1], span=span)

    def _word(self, span: Span, children: list[Child]) -> ast.Name:
        return self._word_name(children[0])

    def _shapes(self, span: Span, children: list[Child]) -> ast.Shapes:
        return ast.Shapes(self._word_name(children[0]), tuple(children[1:]), span=span)

    def _shape(self, span: Span, children: list[Child]) -> ast.Shape:
        return ast.Shape(self._word_name(children[0]), tuple(children[1:]), span=span)

    def _size(self, span: Span, children: list[Child]) -> ast.Size:
        return ast.Size(self._word_name(children[0]), int(children[1]), span=span)

    # -------------------------------------------------------------- expressions

    def _number(self, span: Span, children: list[Child]) -> ast.Number:
        (token,) = children
        value = int(token) if token.type == "INT" else float(token)
        return ast.Number(str(token), value, span=span)

    def _binary(self, operator: str, span: Span, children: list[Child]) -> ast.Binary:
        return ast.Binary(operator, children[0], children[1], span=span)

    def _add(self, span: Span, children: list[Child]) -> ast.Binary:
        return self._binary("+", span, children)

    def _subtract(self, span: Span, children: list[Child]) -> ast.Binary:
        return self._binary("-", span, children)

    def _multiply(self, span: Span, children: list[Child]) -> ast.Binary:
        return self._binary("*", span, children)

    def _divide(self, span: Span, children: list[Child]) -> ast.Binary:
        return self._binary("/", span, children)

    def _power(self, span: Span, children: list[Child]) -> ast.Binary:
        return self._binary("**", span, children)

    def _compare(self, span: Span, children: list[Child]) -> ast.Binary:
        left, operator, right = children
        return ast.Binary(operator, left, right, span=span)

    def _comparison(self, span: Span, children: list[Child]) -> str:
        return str(children[0])

    def _negate(self, span: Span, children: list[Child]) -> ast.Negate:
        return ast.Negate(children[0], span=span)

    def _group(self, span: Span, children: list[Child]) -> ast.Group:
        return ast.Group(children[0], span=span)

    def _function_call(self, span: Span, children: list[Child]) -> ast.Call:
        name, axes, arguments = children
        return ast.Call(self._word_name(name), axes or (), arguments or (), span=span)

    def _arguments(self, span: Span, children: list[Child]) -> tuple[ast.Expr | ast.Keyword, ...]:
        return tuple(children)

    def _keyword_argument(self, span: Span, children: list[Child]) -> ast.Keyword:
        return ast.Keyword(self._word_name(children[0]), children[1], span=span)

    def _builtin_call(self, span: Span, children: list[Child]) -> ast.Builtin:
        return ast.Builtin(children[0], children[1] or (), span=span)

    def _function(self, span: Span, children: list[Child]) -> ast.Name:
        return self._word_name(children[0])

    def _reduction(self, span: Span, children: list[Child]) -> ast.Reduction:
        return ast.Reduction(children[0], children[1], children[2], span=span)

    def _reducer(self, span: Span, children: list[Child]) -> ast.Name:
        return self._word_name(children[0])

    def _index(self, span: Span, children: list[Child]) -> ast.Index:
        return ast.Index(children[0], span=span)

    def _shift(self, span: Span, children: list[Child]) -> ast.Shift:
        return ast.Shift(children[0], children[1], children[2], span=span)

    def _unpack(self, span: Span, children: list[Child]) -> ast.Unpack:
        return ast.Unpack(children[0], children[1], span=span)

    def _rename(self, span: Span, children: list[Child]) -> ast.Rename:
        source, target = self._all_names(children[:2])
        return ast.Rename(source, target, children[2], span=span)

    def _cast(self, span: Span, children: list[Child]) -> ast.Cast:
        return ast.Cast(children[0], children[1], span=span)


def _literal_value(text: str) -> float | int | bool:
    match text:
        case "true" | "false":
            return text == "true"
        case _ if text.lstrip("-").isdigit():
            return int(text)
        case _:
            return float(text)
