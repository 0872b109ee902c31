"""lark tree -> syntax tree. One method per rule of the grammar; no checks of meaning."""

from __future__ import annotations

from lark import Token

from gdsl.source import Span
from gdsl.syntax import ast
from gdsl.syntax.build_expressions import Child, ExpressionBuilder, LarkTree


class Builder(ExpressionBuilder):
    """Builds the nodes of one source."""

    def file(self, tree: LarkTree) -> ast.File:
        """Return the node of a whole file, whose span is all of the text."""
        doc, *declarations = [self.build(child) for child in tree.children]
        whole = Span(self.source, 0, self._length)
        return ast.File(doc, tuple(declarations), span=whole)

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
        return ast.Fn(self.word(name), axes or (), params or (), body, span=span)

    def _fn_params(self, span: Span, children: list[Child]) -> tuple[ast.FnParam, ...]:
        return tuple(children)

    def _fn_param(self, span: Span, children: list[Child]) -> ast.FnParam:
        return ast.FnParam(self.word(children[0]), children[1], span=span)

    def _axis_names(self, span: Span, children: list[Child]) -> tuple[ast.Name, ...]:
        return self.all_words(children)

    def _names(self, span: Span, children: list[Child]) -> tuple[ast.Name, ...]:
        return self.all_words(children)

    def _rule(self, span: Span, children: list[Child]) -> ast.Rule:
        name, axes, params, results, doc, *body = children
        return ast.Rule(
            self.word(name),
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
        return ast.RuleParam(self.word(children[0]), children[1] or (), False, span=span)

    def _rule_state(self, span: Span, children: list[Child]) -> ast.RuleParam:
        return ast.RuleParam(self.word(children[0]), children[1] or (), True, span=span)

    def _rule_axes(self, span: Span, children: list[Child]) -> tuple[ast.RuleAxis, ...]:
        return tuple(children)

    def _rule_axis(self, span: Span, children: list[Child]) -> ast.RuleAxis:
        return ast.RuleAxis(str(children[0]), False, span=span)

    def _optional_axis(self, span: Span, children: list[Child]) -> ast.RuleAxis:
        return ast.RuleAxis(str(children[0]), True, span=span)

    def _rule_results(self, span: Span, children: list[Child]) -> tuple[ast.RuleResult, ...]:
        return tuple(children)

    def _rule_result(self, span: Span, children: list[Child]) -> ast.RuleResult:
        return ast.RuleResult(self.word(children[0]), children[1] or (), span=span)

    def _kernel(self, span: Span, children: list[Child]) -> ast.Kernel:
        name, doc, *items = children
        return ast.Kernel(self.word(name), doc, tuple(items), span=span)

    # -------------------------------------------------------------- axes and tensors

    def _axes(self, span: Span, children: list[Child]) -> ast.Axes:
        return ast.Axes(tuple(children), span=span)

    def _axis(self, span: Span, children: list[Child]) -> ast.Axis:
        return ast.Axis(self.word(children[0]), tuple(children[1:]), span=span)

    def _at_most(self, span: Span, children: list[Child]) -> ast.Fact:
        return ast.Fact("at_most", int(children[0]), span=span)

    def _multiple_of(self, span: Span, children: list[Child]) -> ast.Fact:
        return ast.Fact("multiple_of", int(children[0]), int(children[1]), span=span)

    def _composite(self, span: Span, children: list[Child]) -> ast.Composite:
        return ast.Composite(self.word(children[0]), children[1], span=span)

    def _packed(self, span: Span, children: list[Child]) -> ast.Packed:
        return ast.Packed(self.word(children[0]), tuple(children[1:]), span=span)

    def _packed_field(self, span: Span, children: list[Child]) -> ast.PackedField:
        return ast.PackedField(self.word(children[0]), children[1], span=span)

    def _axis_dim(self, span: Span, children: list[Child]) -> ast.AxisDim:
        return ast.AxisDim(str(children[0]), span=span)

    def _number_dim(self, span: Span, children: list[Child]) -> ast.NumberDim:
        return ast.NumberDim(int(children[0]), span=span)

    def _product(self, span: Span, children: list[Child]) -> ast.ProductDim:
        return ast.ProductDim(tuple(children), span=span)

    def _dtypes(self, span: Span, children: list[Child]) -> ast.Dtypes:
        return ast.Dtypes(self.word(children[0]), tuple(children[1:]), span=span)

    def _dtype(self, span: Span, children: list[Child]) -> ast.Name:
        return ast.Name(str(children[0]), span=span)

    def _tensor(self, span: Span, children: list[Child]) -> ast.Tensor:
        dtype, dims = children
        if isinstance(dtype, Token):
            dtype = self.word(dtype)
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
            value = self.word(value)
        return ast.Default(value, span=span)

    def _literal(self, span: Span, children: list[Child]) -> ast.Literal:
        text = "".join(children)
        return ast.Literal(text, _literal_value(text), span=span)

    def _param(self, span: Span, children: list[Child]) -> ast.Param:
        name, kind, default, limits, doc = children
        return ast.Param(self.word(name), kind, default, limits, doc, span=span)

    def _kind(self, span: Span, children: list[Child]) -> str:
        return str(children[0])

    def _assume(self, span: Span, children: list[Child]) -> ast.Assume:
        return ast.Assume(children[0], span=span)

    def _state(self, span: Span, children: list[Child]) -> ast.State:
        name, tensor, initial, *clauses, doc = children
        return ast.State(self.word(name), tensor, initial, tuple(clauses), doc, span=span)

    def _argument(self, span: Span, children: list[Child]) -> ast.Argument:
        return ast.Argument(self.word(children[0]), span=span)

    def _slots(self, span: Span, children: list[Child]) -> ast.Slots:
        return ast.Slots(*self.all_words(children), span=span)

    def _accepted(self, span: Span, children: list[Child]) -> ast.Accepted:
        return ast.Accepted(*self.all_words(children), span=span)

    def _inplace(self, span: Span, children: list[Child]) -> ast.Inplace:
        return ast.Inplace(span=span)

    def _or_zeros(self, span: Span, children: list[Child]) -> ast.OrZeros:
        return ast.OrZeros(span=span)

    def _unless(self, span: Span, children: list[Child]) -> ast.Unless:
        return ast.Unless(self.word(children[0]), span=span)

    def _let(self, span: Span, children: list[Child]) -> ast.Let:
        return ast.Let(children[0], children[1], span=span)

    def _step(self, span: Span, children: list[Child]) -> ast.Step:
        return ast.Step(children[0], children[1], span=span)

    def _scan(self, span: Span, children: list[Child]) -> ast.Scan:
        targets, axis, valid_len, every, call = children
        return ast.Scan(
            targets,
            self.word(axis),
            None if valid_len is None else self.word(valid_len),
            every,
            call,
            span=span,
        )

    def _every(self, span: Span, children: list[Child]) -> ast.Every:
        count, axis = children
        value: ast.Literal | ast.Name = self.word(count)
        if count.type == "INT":
            value = ast.Literal(str(count), int(count), span=value.span)
        return ast.Every(value, None if axis is None else self.word(axis), span=span)

    def _rule_call(self, span: Span, children: list[Child]) -> ast.RuleCall:
        name, axes, arguments = children
        return ast.RuleCall(self.word(name), axes or (), arguments or (), span=span)

    def _output(self, span: Span, children: list[Child]) -> ast.Output:
        name, tensor, value, doc = children
        return ast.Output(self.word(name), tensor, value, doc, span=span)

    def _call(self, span: Span, children: list[Child]) -> ast.CallLine:
        arguments, returns = children
        return ast.CallLine(arguments or (), returns, span=span)

    def _call_arguments(self, span: Span, children: list[Child]) -> tuple[ast.CallArgument, ...]:
        return tuple(children)

    def _call_argument(self, span: Span, children: list[Child]) -> ast.CallArgument:
        name, key = children
        ignored = key == "ignored"
        word = self.word(key) if isinstance(key, Token) else None
        return ast.CallArgument(self.word(name), word, ignored, span=span)

    def _ignored(self, span: Span, children: list[Child]) -> str:
        return "ignored"

    # -------------------------------------------------------------- schedules and shapes

    def _schedule(self, span: Span, children: list[Child]) -> ast.Schedule:
        name, targets, *settings = children
        return ast.Schedule(self.word(name), targets or (), tuple(settings), span=span)

    def _setting(self, span: Span, children: list[Child]) -> ast.Setting:
        return ast.Setting(self.word(children[0]), children[1], span=span)

    def _word(self, span: Span, children: list[Child]) -> ast.Name:
        return self.word(children[0])

    def _shapes(self, span: Span, children: list[Child]) -> ast.Shapes:
        return ast.Shapes(self.word(children[0]), tuple(children[1:]), span=span)

    def _shape(self, span: Span, children: list[Child]) -> ast.Shape:
        return ast.Shape(self.word(children[0]), tuple(children[1:]), span=span)

    def _size(self, span: Span, children: list[Child]) -> ast.Size:
        return ast.Size(self.word(children[0]), int(children[1]), span=span)


def _literal_value(text: str) -> float | int | bool:
    match text:
        case "true" | "false":
            return text == "true"
        case _ if text.lstrip("-").isdigit():
            return int(text)
        case _:
            return float(text)
