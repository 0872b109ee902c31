"""Windows in front of a chunked rule, as the entry sees them: their tensors and sizes."""

from __future__ import annotations

from attrs import define, evolve, field

from backends.nki.contract import Contract
from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import (
    F16,
    F32,
    I32,
    Element,
    Integers,
    Pattern,
    Space,
    Tile,
    Token,
    View,
)
from backends.nki.program.numbers import (
    NONE,
    ONE,
    ZERO,
    Choice,
    Literal,
    Name,
    Number,
    product,
)
from backends.nki.program.structures import Record
from backends.nki.refusal import refuse
from backends.nki.schedules.addresses import Addresses
from backends.nki.schedules.chunked.front import Filtered, Front
from backends.nki.schedules.chunked.lines import Kind
from backends.nki.schedules.chunked.runs import RECORD, Runs, runs_of
from backends.nki.schedules.chunked.sharding import CORE, CORES
from gdsl.ir.dims import Atom, Dim
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Input
from gdsl.ir.types import DtypeVar

ROWS = Name("ROWS")
LENGTHS = {"lengths_sb": I32, "lengths_f32": F32}
"""The tiles of lengths: as places, and to compare with."""


def kind_of(front: Front) -> Kind:
    """Return what the windows of a kernel have in common. Raises CompileError if they differ."""
    filtered = front.filtered
    apart = any(each.part for each in filtered)
    first, *others = (evolve(_kind(each, front), runs=apart) for each in filtered)
    for other, each in zip(others, filtered[1:], strict=True):
        if other != first:
            raise refuse(
                "windows in front of a rule in chunks that differ in where their tokens come from, "
                "in dtypes, in silu, or in whether they lie in a pool",
                each.section.run.span,
            )
    return first


def _kind(filtered: Filtered, front: Front) -> Kind:
    section, token = filtered.section, filtered.token
    given = token if isinstance(token, Input) else None
    axis = Atom(section.run.axis or "")
    mixed = section.state.dtype != filtered.item.dtype
    return Kind(
        projected=given is None,
        by_channel=given is not None and given.dims[-1] == axis,
        silu=filtered.silu,
        mixed=mixed,
        taps=F32 if mixed else _taps(filtered.item.dtype),
        lengths=section.run.valid_len is not None or front.slots is not None,
        runs=bool(filtered.part),
        pooled=section.state.slots is not None,
    )


def _taps(dtype: Dtype | DtypeVar) -> Element | None:
    """The dtype of weights on TensorE beside tokens of a dtype, if that is known."""
    choices = dtype.choices if isinstance(dtype, DtypeVar) else (dtype,)
    wide = {choice.bytes == 4 for choice in choices}
    return None if len(wide) > 1 else F32 if True in wide else F16


@define
class Filtering:
    """Writes what the entry knows of one window: tensors, then a record for the functions."""

    contract: Contract
    filtered: Filtered
    front: Front
    entry: str
    """The batch axis."""
    record: str = field(init=False)
    """The name of the record."""

    def __attrs_post_init__(self) -> None:
        self._check()
        contract, item = self.contract, self.filtered.item
        self.record = f"filter_{self.filtered.section.symbol.name}"
        element = contract.new_element(item.dtype)
        tile = Tile(item.name, contract.sizes(item.dims), element, Space.SHARED_HBM)
        contract.tensors[item.name] = tile

    def _check(self) -> None:
        """Refuse what the functions do not know."""
        section, token = self.filtered.section, self.filtered.token
        state, run = section.state, section.run
        flagged = state.unless is not None and state.slots is None
        if section.token_windows or state.accepted or flagged:
            raise refuse(
                "a window with a flag and in no pool, or one after each token is not emitted in "
                "front of a rule in chunks",
                state.span,
            )
        self._check_pool()
        if len(section.windows) > 1:
            raise refuse("a window that is returned twice", section.windows[1].span)
        (*around, channel) = self.filtered.item.dims
        batch, tokens = around[0], around[1]
        rows = batch if state.slots is None else Atom(state.slots.axis)
        laid: list[tuple[tuple[Dim, ...], tuple[Dim, ...]]] = [
            (state.dims, (rows, channel, Atom(section.axis))),
            (section.weight.dims[:1], (channel,)),
            *((w.dims, state.dims) for w in section.windows),
        ]
        if len(around) != 2 or any(found != wanted for found, wanted in laid):
            raise refuse(
                "a window in front of a rule in chunks needs its state as [batch, channels, "
                "columns], its weights as [channels, taps], and channels in one dimension",
                state.span,
            )
        own = self._source_channels()
        if isinstance(token, Input) and (
            len(own) != 1 or token.dims not in ((batch, tokens, *own), (batch, *own, tokens))
        ):
            raise refuse(
                "tokens of a window that are neither [batch, tokens, channels] nor [batch, "
                "channels, tokens]",
                token.span or run.span,
            )

    def _check_pool(self) -> None:
        """Refuse rows that are others than those of the rule's own pool."""
        section, front = self.filtered.section, self.front
        own, rule = section.state.slots, front.slots
        if own is not None and (rule is None or (own.read, own.write) != (rule.read, rule.write)):
            raise refuse(
                "a window in a pool whose slots are not those of the rule's state",
                section.state.span,
                help="give both the same slots to read and to write",
            )
        if rule is not None and section.run.valid_len != front.valid_len:
            raise refuse(
                "a window whose rows have other lengths than those of a rule with a pool",
                section.run.span,
                help="write `scan` alike for both",
            )

    def _source_channels(self) -> tuple[Dim, ...]:
        """The channels of the tensor that the tokens come from, or of the weight."""
        token = self.filtered.token
        if isinstance(token, Input):
            return tuple(dim for dim in token.dims if dim not in self.filtered.item.dims[:2])
        return token.section.weight.dims[1:]

    def _runs(self) -> Runs:
        """Where the channels lie among them."""
        dims, token = self._source_channels(), self.filtered.token
        span = token.span if isinstance(token, Input) else token.section.weight.span
        return runs_of(dims, self.filtered.part, product(self.contract.sizes(dims)), span)

    def write(self, main: Block, kind: Kind, addresses: Addresses | None) -> None:
        """Create the tensors, and bind the record for windows of a kind."""
        contract, section, item = self.contract, self.filtered.section, self.filtered.item
        main.create(contract.tensors[item.name])
        window = self._window(main)
        columns = Name(section.axis)
        taps = contract.sizes(section.weight.dims)[1]
        batch, total, channels = contract.sizes(item.dims)
        tail = self._tail(main)
        raw: Number = NONE
        if kind.lengths:
            raw = self._raw(main, (batch, channels, columns + total))
        token = self.filtered.token
        fields: dict[str, Number] = {
            "window": window,
            "tail": Name(tail),
            "raw": raw,
            "weights": Name(section.weight.name),
            "result": Name(item.name),
            "identity_sb": Name("identity_sb"),
            "lengths_sb": Name("lengths_sb") if kind.lengths else NONE,
            "columns": columns,
            "taps": taps,
            "channels": channels,
            "total": total,
            "begin": channels * CORE // CORES,
            "end": channels * (CORE + 1) // CORES,
        }
        if isinstance(token, Input):
            fields["source"] = Name(token.name)
        else:
            fields["source"] = Name(token.section.weight.name)
            fields["hidden"] = Name(token.section.axis)
        if kind.pooled:
            assert addresses is not None
            slots = {"read": addresses.read(section.state), "write": addresses.write(section.state)}
            for name, numbers in slots.items():
                assert numbers is not None
                fields[f"{name}_slots"] = Name(numbers.tile.name)
        if kind.runs:
            fields[RECORD] = main.let_named(f"{self.record}_runs", self._runs().record)
        main.let_named(self.record, Record(tuple(fields.items())))

    def _window(self, main: Block) -> Number:
        """The old window, None where the caller brings none; makes the one that is returned."""
        contract, state = self.contract, self.filtered.section.state
        if state.argument not in contract.optional or not state.inplace:
            return Name(state.argument)
        fresh = main.let(f"fresh_{state.argument}", compare("==", Name(state.argument), NONE))
        tile = contract.tensors[state.argument]
        with main.when(fresh) as body:
            element = contract.new_element(state.dtype)
            body.create(Tile(tile.name, tile.shape, element, Space.SHARED_HBM))
        return Choice(fresh, NONE, Name(state.argument))

    def _tail(self, main: Block) -> str:
        """The tensor of new windows, one of the kernel's own where they are not returned."""
        contract, section = self.contract, self.filtered.section
        for output in section.windows:
            return contract.outputs[output.name].name
        shape = contract.sizes(section.state.dims)
        element = contract.new_element(section.state.dtype)
        return main.tile(f"{section.symbol.name}_end", shape, element, Space.PRIVATE_HBM).tile.name

    def _raw(self, main: Block, shape: tuple[Number, ...]) -> Number:
        """Whole lines in HBM, where rows have lengths."""
        contract, section = self.contract, self.filtered.section
        length = next(
            (i for i in contract.kernel.inputs if i.symbol == section.run.valid_len), None
        )
        mixed = section.state.dtype != self.filtered.item.dtype
        element = F32 if mixed else contract.new_element(self.filtered.item.dtype)
        name = main.names.fresh(f"{section.symbol.name}_lines")
        lines = Tile(name, shape, element, Space.PRIVATE_HBM)
        if self.front.slots is not None or (length and length.name not in contract.optional):
            main.create(lines)
            return Name(name)
        assert length is not None
        main.let_named(name, NONE)
        with main.when(compare("!=", Name(length.name), NONE)) as given:
            given.create(lines)
        return Name(name)


def write_constants(main: Block) -> None:
    """Make what the taps are spread with."""
    ones_sb = main.tile("ones_sb", (ROWS, ROWS), F32)
    main.do("memset", dst=ones_sb, value=Literal(1.0))
    identity_sb = main.create(Tile("identity_sb", (ROWS, ROWS), F32, Space.SBUF))
    main.do(
        "affine_select",
        dst=identity_sb,
        pattern=Integers(((Literal(-1), ROWS),)),
        channel_multiplier=ONE,
        on_true_tile=ones_sb,
        on_false_value=Literal(0.0),
        cmp_op=Token("nl.equal"),
    )


def write_lengths(main: Block, contract: Contract, length: Input, total: Number) -> None:
    """Bring in lengths, at most all tokens: [partitions, batch], as places and to compare with."""
    tensor = contract.tensors[length.name]
    shape = (ROWS, tensor.shape[0])

    def load(body: Block) -> None:
        raw_sb = body.tile("raw_lengths_sb", shape, tensor.element)
        source = Pattern(tensor, ((ZERO, ROWS), (ONE, shape[1])), ZERO)
        body.do("dma_copy", dst=raw_sb, src=source)
        bind_lengths(body, raw_sb, total)

    if length.name not in contract.optional:
        load(main)
        return
    for name in LENGTHS:
        main.let_named(name, NONE)
    with main.when(compare("!=", Name(length.name), NONE)) as given:
        load(given)


def bind_lengths(block: Block, numbers: View, total: Number) -> None:
    """Make of lengths those of at most all tokens, as places and to compare with."""
    for name, element in LENGTHS.items():
        view = block.create(Tile(name, numbers.shape, element, Space.SBUF))
        block.do("tensor_scalar", dst=view, data=numbers, op0=Token("nl.minimum"), operand0=total)
