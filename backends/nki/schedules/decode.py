"""One token per call: the decode schedule.

Rows (batch and heads) lie on partitions for everything that is a vector, up to 128 at once, so that
a norm, a gate or an epilogue is one instruction for all of them. The state of a head is a [K, V]
block with K on partitions. Per head:

    read    S^T [a | q]            TensorE: the state is stationary, the raw columns move, fp32
    spread  delta on K partitions  TensorE: a 0/1 stationary picks the head's row of delta
    decay   D * S                  ScalarE: a scale per partition serves scalar and K-vector decay
    update  k delta + D * S        VectorE: one scalar_tensor_tensor

Both reads see the old state, so one pass over it serves the delta and the output; norms, scales and
a scalar decay are row factors applied to the results of 32 heads at once (`select.delta`).
"""

from __future__ import annotations

from attrs import define, field

from backends.nki.contract import Contract
from backends.nki.program.build import Block, Names, compare, every, part, repeated
from backends.nki.program.nodes import F32, Constant, Operand, Program, Space, Token, View
from backends.nki.program.numbers import (
    ONE,
    Choice,
    Literal,
    Name,
    Number,
    Query,
    product,
    smallest,
)
from backends.nki.refusal import refuse
from backends.nki.select.addressing import strides
from backends.nki.select.algebra import Algebra
from backends.nki.select.constants import Constants
from backends.nki.select.delta import DeltaTerms, delta_terms
from backends.nki.select.inputs import InputSource, RowWindow, rows_of, state_blocks
from backends.nki.select.selector import Layout, Selector
from backends.nki.select.terms import Known, Leaf, Stage, Term
from backends.nki.select.translate import Translator
from gdsl.algorithm.plan import Plan
from gdsl.canonical.form import Delta
from gdsl.ir.expr import Ref
from gdsl.ir.kernel import Kernel, Let, Output, Run, State

ROWS = Name("ROWS")
GROUP = Name("GROUP")
CONSTANTS = (
    Constant("ROWS", Literal(128), "rows whose vectors share an instruction: all partitions"),
    Constant(
        "GROUP", Literal(32), "heads in flight; slices of partitions start at multiples of 32"
    ),
)
VECTOR = Token("nisa.engine.vector")
SCALAR = Token("nisa.engine.scalar")
TENSOR = Token("nisa.engine.tensor")


def decode_program(plan: Plan) -> Program:
    """Return the tile program of a plan in decode form. Raises CompileError where it has none."""
    kernel = plan.kernel.kernel
    run, delta = _only_run(plan)
    state = next(s for s in kernel.states if s.symbol == run.state)
    mapped = tuple(a for a in state.type.axes if a not in (delta.key_axis, delta.value_axis))
    algebra = Algebra()
    contract = Contract(kernel)
    parameters = contract.parameters()
    main = Block(Names({p.name for p in parameters} | {c.name for c in CONSTANTS}))
    main.banner("Sizes and contract")
    contract.write_sizes(main)
    contract.write_checks(main, ((delta.key_axis, 128), (delta.value_axis, 128)))
    contract.write_outputs(main)
    first, last = _rows_of_this_core(main, mapped)
    main.banner("Constants")
    constants = Constants(main.inner())
    tiles = main.inner()
    with tiles.loop("row", first, last, ROWS) as (body, row):
        rows = body.let("rows", smallest(ROWS, last - row))
        window = RowWindow(mapped, row, rows)
        step = _Step(kernel, contract, run, delta, state, algebra, constants, window, body)
        step.write()
    main.extend(constants.block)
    main.extend(tiles)
    return Program(
        entry=kernel.name,
        parameters=parameters,
        constants=CONSTANTS,
        functions=tuple(window.helpers.values()),
        body=tuple(main.statements),
        returns=kernel.call.returns,
    )


def _only_run(plan: Plan) -> tuple[Run, Delta]:
    runs = plan.kernel.runs
    if len(runs) != 1 or not isinstance(delta := runs[0][1], Delta):
        raise refuse(
            f"the decode schedule emits one delta rule per kernel, `{plan.kernel.kernel.name}` has "
            f"{len(runs)} runs",
            plan.kernel.kernel.span,
        )
    run = runs[0][0]
    if run.axis is not None:
        raise refuse("several tokens in one call are not emitted yet", run.span)
    return run, delta


def _rows_of_this_core(block: Block, mapped: tuple[str, ...]) -> tuple[Number, Number]:
    """[first, last): contiguous shares, the remainder on the last core."""
    block.banner("Rows of this core")
    total = block.let("total", product(tuple(Name(axis) for axis in mapped)))
    cores = block.let_named("cores", Query("nl.num_programs(0)"))
    core = block.let_named("core", Query("nl.program_id(0)"))
    share = block.let("share", total // cores)
    first = block.let("first", core * share)
    end = Choice(compare("==", core, cores - 1), total, first + share)
    return first, block.let("last", end)


@define
class _Step:
    """Writes the body of the loop over tiles of rows."""

    kernel: Kernel
    contract: Contract
    run: Run
    delta: Delta
    state: State
    algebra: Algebra
    constants: Constants
    window: RowWindow
    body: Block
    selector: Selector = field(init=False)
    terms: DeltaTerms = field(init=False)
    results: tuple[tuple[Leaf, Term], ...] = field(init=False)
    """Each output of the rule: the leaf that later terms use, and its value."""
    values: tuple[tuple[Output, Term], ...] = field(init=False)
    """Each output tensor that is not the state, and its value."""

    def write(self) -> None:
        """Add everything that happens to one tile of rows."""
        self._translate()
        body, rows = self.body, self.window.count
        after = body.inner()
        after.banner("Output")
        body.banner("Vectors of the rows")
        with body.loop("group", 0, rows, GROUP) as (groups, group):
            heads = groups.let("heads", smallest(GROUP, rows - group))
            self.selector.group = (group, heads)
            self.selector.blocks = {
                Stage.INPUTS: body,
                Stage.READS: groups,
                Stage.OUTPUTS: after,
            }
            self._group(groups, group, heads)
        self._outputs(after)
        body.extend(after)

    # ---- mathematics

    def _translate(self) -> None:
        """Fill `terms`, `results`, `values` and the selector."""
        kernel, delta = self.kernel, self.delta
        translator = Translator(self.algebra, self.window.axes)
        sources: dict[Leaf, InputSource] = {}
        for item in kernel.inputs:
            leaf = translator.leaf(item.symbol, item.type.axes, Stage.INPUTS, item.name)
            tile = self.contract.tensors[item.name]
            sources[leaf] = InputSource(
                tile, strides(item.dims), leaf.wide, self.window, delta.key_axis
            )
        for param in kernel.params:
            translator.terms[param.symbol] = self.algebra.known(Name(param.name))
        results: list[tuple[Leaf, Term]] = []
        for statement in kernel.body:
            match statement:
                case Let(target=target, value=value):
                    translator.define(target, value)
                case Run():
                    self.terms = delta_terms(translator, statement, delta)
                    for symbol, result in self.terms.outputs:
                        axes = (*self.window.axes, delta.value_axis)
                        leaf = translator.leaf(symbol, axes, Stage.OUTPUTS, symbol.name)
                        results.append((leaf, result))
        self.results = tuple(results)
        self.values = tuple(
            (output, translator.term(output.value))
            for output in kernel.outputs
            if not self._is_state(output)
        )
        self.selector = Selector(
            algebra=self.algebra,
            sizes={axis: Name(axis) for axis in (delta.key_axis, delta.value_axis)},
            key_axis=delta.key_axis,
            rows=self.window.count,
            sources=sources,
            constants=self.constants,
            blocks={},
        )
        self.selector.count_uses(self._roots())

    def _is_state(self, output: Output) -> bool:
        return isinstance(output.value, Ref) and output.value.symbol == self.run.state_out

    def _roots(self) -> list[Term]:
        terms = self.terms
        roots = [*terms.reads, *(update.key for update in terms.updates)]
        roots += [update.delta for update in terms.updates]
        roots += [value for _, value in self.results]
        roots += [value for _, value in self.values]
        return roots if terms.decay is None else [*roots, terms.decay]

    # ---- the groups

    def _group(self, block: Block, group: Number, heads: Number) -> None:
        """Read the states of a group, form its deltas and outputs, update and store the states."""
        K, V = Name(self.delta.key_axis), Name(self.delta.value_axis)
        rows = self.window.count
        block.banner("States of a group: one head after the other along the free axis")
        state = block.tile("state_sb", (K, heads * V), F32)
        source = self.contract.whole(self.state.argument)
        at = state_blocks(self.state.dims, self.window, (group, heads), (K, V), self.delta)
        block.do("dma_copy", dst=state, src=at(source.tile))

        keys = self._keys()
        block.banner("Both reads of the old states")
        count = len(self.terms.reads)
        raw = block.tile("raw_psum", (V, heads * count), F32, Space.PSUM)
        with block.loop("head", 0, heads) as (each, head):
            each.do(
                "nc_matmul",
                dst=every(raw, head, heads, count),
                stationary=part(state, None, (head * V, V)),
                moving=every(keys, group + head, rows, count),
                accumulate=False,
            )
        self._reads_to_rows(block, raw, group, heads)

        block.banner("What each head adds, and its output")
        deltas = [
            self._row_tile(u.delta, f"delta_{self.algebra.stem(u.key)}" if i else "delta")
            for i, u in enumerate(self.terms.updates)
        ]
        for leaf, value in self.results:
            self._result(leaf, value)

        block.banner("New states")
        with block.loop("head", 0, heads) as (each, head):
            self._update(each, state, keys, deltas, group, heads, head)
        for output in self.kernel.outputs:
            if self._is_state(output):
                target = self.contract.tensors[output.name]
                block.do("dma_copy", dst=at(target), src=state)

    def _columns(self) -> list[Term]:
        """The vectors along K that are needed with K on partitions; those that move come first."""
        found = list(self.terms.reads)
        found += [u.key for u in self.terms.updates if u.key not in found]
        return found

    def _keys(self) -> View:
        """[K, columns * rows]: the vectors along K, transposed, one after the other."""
        columns, rows = self._columns(), self.window.count
        name = "_".join(dict.fromkeys(self.algebra.stem(c) for c in columns))
        K = Name(self.delta.key_axis)
        keys = self.body.tile(f"{name}_T_sb", (K, rows * len(columns)), F32)
        for i, column in enumerate(columns):
            target = part(keys, None, (rows * i, rows))
            self.selector.keys_into(column, target)
        return keys

    def _reads_to_rows(self, block: Block, raw: View, group: Number, heads: Number) -> None:
        """[V, heads] per read -> [rows, V]: heads back onto the partitions of their rows."""
        rows, count = self.window.count, len(self.terms.reads)
        V = Name(self.delta.value_axis)
        reads = self.body.tile("reads_T_sb", (V, rows * count), F32)
        for i, leaf in enumerate(self.terms.read_results):
            block.do(
                "tensor_copy",
                dst=part(reads, None, (rows * i + group, heads)),
                src=part(raw, None, (heads * i, heads)),
                engine=SCALAR,
            )
            # Transposing from column 0 puts the group's heads on the partitions of their rows.
            turned = block.tile(f"{self.algebra.stem(leaf)}_psum", (rows, V), F32, Space.PSUM)
            block.do(
                "nc_transpose",
                dst=part(turned, (0, group + heads), None),
                data=part(reads, None, (rows * i, group + heads)),
                engine=TENSOR,
            )
            self.selector.hold(leaf, turned)

    def _row_tile(self, term: Term, name: str) -> View:
        """Compute a term of the group into a tile that keeps all groups of the rows."""
        view = self.body.tile(f"{name}_sb", (self.window.count, Name(self.delta.value_axis)), F32)
        self.selector.into_held(term, view)
        return view

    def _result(self, leaf: Leaf, value: Term) -> None:
        only = [output for output, term in self.values if term == leaf]
        element = self.contract.element(only[0].dtype) if self._used_once(leaf) and only else F32
        shape = (self.window.count, Name(self.delta.value_axis))
        view = self.body.tile(f"{leaf.name}_sb", shape, element)
        self.selector.into_held(value, view)
        self.selector.hold(leaf, view)

    def _used_once(self, leaf: Leaf) -> bool:
        return self.selector.uses[leaf] <= 1

    def _update(
        self,
        block: Block,
        state: View,
        keys: View,
        deltas: list[View],
        group: Number,
        heads: Number,
        head: Number,
    ) -> None:
        """S <- D * S + sum of key (x) delta for one head, in place."""
        K, V = Name(self.delta.key_axis), Name(self.delta.value_axis)
        columns, rows = self._columns(), self.window.count
        old = part(state, None, (head * V, V))
        current = self._decayed(block, old, group + head)
        for update, delta in zip(self.terms.updates, deltas, strict=True):
            spread = block.tile("delta_psum", (K, V), F32, Space.PSUM)
            block.do(
                "nc_matmul",
                dst=spread,
                stationary=repeated(self.constants.identity(), group + head, group + heads, K),
                moving=part(delta, (0, group + heads), None),
                is_stationary_onezero=True,
                accumulate=False,
            )
            column = rows * columns.index(update.key) + group + head
            block.do(
                "scalar_tensor_tensor",
                dst=old,
                data=spread,
                op0=Token("nl.multiply"),
                operand0=part(keys, None, (column, 1)),
                op1=Token("nl.add"),
                operand1=current,
            )
            current = old

    def _decayed(self, block: Block, old: View, row: Number) -> View:
        decay = self.terms.decay
        if decay is None:
            return old
        scale: Operand
        if isinstance(decay, Known):
            scale = decay.value
        else:
            if decay.wide is None:
                # The deltas use it as a row factor anyway.
                self.selector.value(decay, Layout.ROWS, Stage.INPUTS)
            by_key = self.selector.value(decay, Layout.KEYS, Stage.INPUTS)
            assert isinstance(by_key, View)
            scale = (
                part(by_key, None, (row, 1))
                if self.selector.is_tile(decay, Layout.KEYS)
                else by_key
            )
        decayed = block.tile("decayed_sb", old.shape, F32)
        block.do("activation", dst=decayed, op=Token("nl.copy"), data=old, scale=scale)
        return decayed

    # ---- the rest

    def _outputs(self, block: Block) -> None:
        for output, value in self.values:
            source = self._output_tile(output, value)
            view = rows_of(self.contract.tensors[output.name], output.dims, self.window, value.wide)
            block.do("dma_copy", dst=view, src=source)

    def _output_tile(self, output: Output, value: Term) -> View:
        element = self.contract.element(output.dtype)
        held = self.selector.held.get((value, Layout.ROWS))
        if isinstance(held, View) and held.tile.element == element:
            return held
        width = ONE if value.wide is None else Name(value.wide)
        block = self.selector.blocks[value.stage]
        view = block.tile(f"{output.name}_sb", (self.window.count, width), element)
        self.selector.into(value, view)
        return view
