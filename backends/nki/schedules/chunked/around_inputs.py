"""Where instruction selection finds the inputs of what a chunked kernel computes around its rule.

Vectors and gates of every token lie in the tiles of a group (`load`). What is the same for all
tokens is brought in here, once per kernel or once per team of lanes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import frozen

from backends.nki.contract import Contract
from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import F32, Element, Space, Tile, View
from backends.nki.program.numbers import NONE, ONE, ZERO, Literal, Name, Number
from backends.nki.program.structures import EMPTY, Values
from backends.nki.refusal import refuse
from backends.nki.schedules.chunked.addresses import Addresses
from backends.nki.schedules.chunked.formulas import inputs_in
from backends.nki.schedules.chunked.records import CHUNK, LANES, SLOTS, TEAM, VALUES
from backends.nki.schedules.chunked.scan import Scan
from backends.nki.select.layouts import Layout
from backends.nki.select.terms import Leaf, Stage, Term
from backends.nki.select.tokens import TokenSelector
from gdsl.ir.kernel import Input


@frozen
class Loaded:
    """An input that is brought in with the vectors of a group, besides q, k and v."""

    name: str
    """The tile."""
    item: Input
    axis: str | None
    width: Number
    element: Element
    of_log: bool
    """Whether the log decay per channel, which is selected itself, is all that is made of it."""


@frozen
class AroundInputs:
    """Tells the selector where the inputs of some terms are."""

    scan: Scan
    contract: Contract
    where: Addresses
    selector: TokenSelector
    blocks: Mapping[Stage, Block]

    def hold(self, roots: Collection[Term], log_computed: bool) -> list[Loaded]:
        """Tell of all inputs of the roots, and of the rule's own result.

        Returns what must be brought in besides q, k and v. Raises CompileError for an optional
        input with a value per token.
        """
        f = self.scan.formulas
        named = {"q_sb": f.query, "k_sb": f.key, "v_sb": f.value}
        named |= {"p_sb": f.read} if f.own_read else {}
        vectors = {v.base: name for name, v in named.items() if not v.computed}
        others = (root for root in roots if root != f.log or not log_computed)
        kept = inputs_in(f.tokens, others)
        loaded: list[Loaded] = []
        for leaf, item in inputs_in(f.tokens, iter(roots)).items():
            each = ONE if leaf.wide is None else self.selector.sizes[leaf.wide]
            if leaf.stage is not Stage.INPUTS:
                self._load_shared(leaf, item, each)
                continue
            name = vectors.get(leaf) or _tile_name(item, named)
            element = self.contract.element(item.name, item.dtype)
            self.selector.hold(leaf, token_tile(name, SLOTS * each, element), Layout.TOKENS)
            if leaf not in vectors:
                if item.default is not None:
                    raise refuse(
                        f"`{item.name}` may be missing, which the chunked schedule lacks for "
                        "values of every token",
                        item.span,
                    )
                loaded.append(Loaded(name, item, leaf.wide, each, element, leaf not in kept))
        result = token_tile("output", LANES * VALUES, F32, Space.PSUM)
        self.selector.hold(f.result, result, Layout.TOKENS)
        return loaded

    def _load_shared(self, leaf: Leaf, item: Input, each: Number) -> None:
        """Bring in what is the same for all tokens, on every partition."""
        block = self.blocks[leaf.stage]
        count = LANES if leaf.stage is Stage.TEAM else ONE
        tensor = self.contract.tensors[item.name]
        view = block.tile(f"{item.name}_of_lanes", (CHUNK, count * each), tensor.element)
        given = block.inner()
        at = self.where.offset(item.name, ZERO)
        offsets: Number = Name(f"{item.name}_offsets")
        if leaf.stage is Stage.TEAM:
            given.let_named(str(offsets), EMPTY)
            with given.each(("lane",), TEAM) as body:
                body.append(str(offsets), at)
        else:
            offsets = Values((ZERO,), grows=True)
        inner = self.where.stride(item, leaf.wide) if leaf.wide else ONE
        source = View(tensor, tensor.shape)
        given.call("load_rows", view, source, offsets, ZERO, inner, CHUNK, each)
        if item.default is None:
            block.extend(given)
        else:
            missing = block.inner()
            missing.do("memset", dst=view, value=Literal(float(item.default)))
            block.decide(compare("==", Name(item.name), NONE), missing, given)
        self.selector.hold(leaf, view, Layout.TOKENS)


def token_tile(name: str, columns: Number, element: Element, space: Space = Space.SBUF) -> View:
    """Return a tile with the tokens of a chunk on partitions."""
    shape = (CHUNK, columns)
    return View(Tile(name, shape, element, space), shape)


def _tile_name(item: Input, taken: Collection[str]) -> str:
    """The tile of an input that the rule does not take as it is, unlike those with these names."""
    name = f"{item.name}_sb"
    return f"{item.name}_raw_sb" if name in taken else name
