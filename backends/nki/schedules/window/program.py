"""The entry of an emitted convolution: the channels of this core, in blocks."""

from __future__ import annotations

from backends.nki.contract import Contract
from backends.nki.program.build import Block, Names, compare, part
from backends.nki.program.nodes import F32, Constant, Function, Integers, Program, Token
from backends.nki.program.numbers import (
    ONE,
    ZERO,
    Literal,
    Name,
    Number,
)
from backends.nki.program.outline import outline
from backends.nki.refusal import refuse
from backends.nki.schedules.addresses import Addresses
from backends.nki.schedules.sharing import share_of
from backends.nki.schedules.window.filter import Filter, filter_of
from backends.nki.schedules.window.scan import Scan
from backends.nki.schedules.window.step import STEP_DOC, write_step
from backends.nki.schedules.window.tensors import Tensors
from gdsl.algorithm.plan import Plan

PARTITIONS = Name("PARTITIONS")
CONSTANTS = (
    Constant("PARTITIONS", Literal(128), "channels side by side: all partitions"),
    Constant("BLOCK", Literal(2048), "weights of a partition that are on chip at once"),
)
SCAN_CONSTANTS = (
    Constant("TOKENS", Literal(2048), "tokens of an instruction: half of PSUM in fp32"),
    Constant("LINES", Literal(2), "channels of a partition per transfer"),
    Constant("BANK", Literal(512), "fp32 columns of a matmul: one PSUM bank"),
)
RESERVED = {
    *("first", "lanes", "per", "row", "rows", "slot", "many", "most", "most_rows", "token"),
    *("tokens", "group", "held", "member", "channel", "begin", "width", "tap_dtype"),
    *("line_sb", "new_sb", "cores", "core"),
}
"""Names that the functions share."""


def window_program(plan: Plan) -> Program:
    """Return the tile program of a kernel that is one window rule. Raises CompileError."""
    filter = filter_of(plan)
    contract = Contract(filter.kernel)
    parameters = contract.parameters()
    if filter.state.inplace and filter.state.argument in contract.optional:
        raise refuse("a window in place that may be left out is not emitted", filter.state.span)
    constants = _constants_of(filter)
    names = Names({p.name for p in parameters} | {c.name for c in constants} | RESERVED)
    main = Block(names)
    main.banner("Sizes and contract")
    contract.write_sizes(main)
    contract.write_checks(main, (), contract.optional)
    taps = _taps_of(main, filter, contract)
    contract.write_outputs(main)
    functions = _write_filter(main, filter, contract, taps, shard=plan.settings["shard"])
    return Program(
        entry=filter.kernel.name,
        parameters=parameters,
        constants=constants,
        functions=functions,
        body=tuple(main.statements),
        returns=contract.returns,
    )


def _constants_of(filter: Filter) -> tuple[Constant, ...]:
    """Return the constants of the module that `_write_filter` uses."""
    return CONSTANTS if filter.run.axis is None else (*CONSTANTS, *SCAN_CONSTANTS)


def _taps_of(main: Block, filter: Filter, contract: Contract) -> Number:
    """Bind and check the columns of the weights."""
    taps = main.let("taps", contract.sizes(filter.weight.dims)[1])
    if filter.run.axis is not None:
        limits = f"{filter.kernel.name} needs 1 to 2048 taps, got {{{taps}}}"
        main.require(compare("<=", taps, 2048), limits)
    return taps


def _write_filter(
    main: Block,
    filter: Filter,
    contract: Contract,
    taps: Number,
    shard: object = "heads",
) -> tuple[Function, ...]:
    """Filter this core's channels, where sizes and tensors have names; returns the functions.

    `shard` says which channels are this core's.
    """
    module = {constant.name for constant in _constants_of(filter)}
    loads = Block(main.names)
    addresses = Addresses(filter.kernel, contract.tensors, loads)
    tensors = Tensors(filter, contract, taps, addresses)
    _constants(main, filter)
    main.banner("Channels of this core")
    mine = share_of(main, Name(filter.channel), ("first_channel", "own_channels"), shard)
    if filter.run.axis is None:
        body = Block(main.names)
        write_step(body, tensors)
        function = outline("filter_step", STEP_DOC, body.statements, known=module)
        functions: tuple[Function, ...] = (function,)
    else:
        scan = Scan(tensors, main.names, module)
        function = scan.write()
        functions = tuple(scan.functions.values())
    main.extend(loads)
    _blocks(main, function, mine.first, mine.count)
    return functions


def _constants(block: Block, filter: Filter) -> None:
    """What is made on chip before the first transfer arrives."""
    block.banner("Constants")
    ones_sb = block.tile("ones_sb", (PARTITIONS, PARTITIONS), F32)
    block.do("memset", dst=ones_sb, value=Literal(1.0))
    if filter.silu and filter.run.axis is None:
        block.comment("Loads ScalarE's function table while the first transfers are under way.")
        warm_sb = block.tile("warm_sb", (PARTITIONS, ONE), F32)
        warm = part(ones_sb, None, (ZERO, ONE))
        block.do("activation", dst=warm_sb, op=Token("nl.silu"), data=warm)
    if filter.run.axis is None:
        return
    block.comment("A column of weights times the identity is the stationary of a tap.")
    identity_sb = block.tile("identity_sb", (PARTITIONS, PARTITIONS), F32)
    block.do(
        "affine_select",
        dst=identity_sb,
        pattern=Integers(((Literal(-1), PARTITIONS),)),
        channel_multiplier=ONE,
        on_true_tile=ones_sb,
        on_false_value=Literal(0.0),
        cmp_op=Token("nl.equal"),
    )


def _blocks(main: Block, function: Function, begin: Number, count: Number) -> None:
    """Call the function for channels that fill the partitions, then for the rest."""
    main.banner("Channels that fill the partitions, then the rest, one per partition")
    whole = main.let("whole", count // PARTITIONS * PARTITIONS)
    rest = main.let("rest", count - whole)

    def call(block: Block, first: Number, lanes: Number, per: Number) -> None:
        place = {"first": first, "lanes": lanes, "per": per}
        block.call(function.name, *(place.get(p, Name(p)) for p in function.parameters))

    with main.when(compare(">", whole, 0)) as block:
        call(block, begin, PARTITIONS, whole // PARTITIONS)
    with main.when(compare(">", rest, 0)) as block:
        call(block, begin + whole, rest, ONE)
