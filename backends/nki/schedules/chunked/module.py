"""A chunked plan as an NKI module: the kernel's tensors and sizes around the stages."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from string import Template
from textwrap import dedent, indent
from types import ModuleType

from backends.nki.contract import Contract
from backends.nki.program.build import Block, Names
from backends.nki.program.nodes import Constant, Function, Program, Verbatim
from backends.nki.program.numbers import Literal, Name
from backends.nki.schedules.chunked import constants, inverse, leaves
from backends.nki.schedules.chunked.addresses import Addresses
from backends.nki.schedules.chunked.scan import Scan, scan_of
from backends.nki.schedules.chunked.schedule import Schedule
from gdsl.algorithm.plan import Plan

PARTITIONS = 128
STAGES: tuple[str | ModuleType, ...] = (
    constants,
    "transfer",
    "gates",
    "load",
    "scores",
    inverse,
    leaves,
    "carry",
    "states",
    "driver",
)
"""Modules of stages in the order a reader meets them; names are files of `text/`."""
PER_CHANNEL = ("gates", "scores")
"""Those that have another version for a decay per channel, `NAME_channel`."""
CONSTANTS_OF_MODULE = (
    Constant("CHUNK", Literal(128), "tokens per chunk: all partitions"),
    Constant("MAX_FREE", Literal(128), "most value columns of a lane"),
    Constant(
        "LANES", Literal(4), "chunks side by side in one instruction: 512 columns, one PSUM bank"
    ),
    Constant("TEAM", Literal(16), "lanes whose states are on chip together"),
    Constant("GATE_COLUMNS", Literal(128), "chunks whose gates are computed together"),
    Constant("MASKED", Literal(-30000.0), "added to what exp must turn into 0"),
    Constant(
        "MASKED_MERGES", Name("(1, 2, 4, 8, 16)"), "merges that select their blocks by a mask"
    ),
    Constant("LEAF", Literal(16), "rows of a leaf that neumann doubles"),
)


def chunked_program(plan: Plan) -> Program:
    """Return the program of a plan in chunked form. Raises CompileError where it has none."""
    scan = scan_of(plan)
    contract = Contract(scan.kernel, exposed={e.argument: e.default for e in plan.exposed})
    parameters = contract.parameters()
    main = Block(Names({p.name for p in parameters}))
    main.banner("Sizes and contract")
    contract.write_sizes(main)
    where = Addresses(scan)
    fills = _fills(scan, plan, where)
    state = scan.state.argument
    if scan.state.optional:
        shape = f"({', '.join(str(size) for size in contract.sizes(scan.state.dims))})"
        main.statements.append(Verbatim(_text("fresh", {"state": state, "shape": shape})))
    else:
        main.statements.append(Verbatim("fresh = False"))
    if scan.valid is not None:
        # An optional tensor has a shape only when it is given.
        tile = contract.tensors.pop(scan.valid.name)
        shape = ", ".join(str(size) for size in tile.shape)
        check = f"assert {tile.name} == None or {tile.name}.shape == ({shape},)"
        main.statements.append(Verbatim(f'{check}, "{tile.name} must have shape ({shape},)"'))
    contract.write_checks(main, ((scan.key_axis, PARTITIONS),))
    for exposed in plan.exposed:
        if exposed.key == "inverse":
            main.statements.append(Verbatim(_inverse_check(exposed.argument)))
    contract.write_outputs(main)
    main.banner("Chunks")
    main.statements.append(Verbatim(_text("entry", fills)))
    functions = [*where.functions(scan)]
    stages = ("alive", *STAGES) if scan.valid else STAGES
    schedule = Schedule(plan, scan, contract, where)
    for name in stages:
        if not isinstance(name, str):
            functions += name.functions(schedule)
            continue
        chosen = f"{name}_channel" if scan.channels and name in PER_CHANNEL else name
        functions += _functions(_text(chosen, fills))
    return Program(
        entry=scan.kernel.name,
        parameters=parameters,
        constants=(*CONSTANTS_OF_MODULE, *_stages(scan)),
        functions=tuple(functions),
        body=tuple(main.statements),
        returns=contract.returns,
    )


def _stages(scan: Scan) -> tuple[Constant, ...]:
    """In how many steps scores are prepared, and the levels of a decay per channel."""
    if not scan.channels:
        return (Constant("STAGES", Literal(4), "steps of preparing scores"),)
    levels = Name("(1, 2, 4, 8, 16, 32, 64)")
    return (
        Constant("LEVELS", levels, "half widths of the blocks that pairs of tokens meet in"),
        Constant("STAGES", Literal(17), "steps of preparing scores, two for each level"),
    )


def _fills(scan: Scan, plan: Plan, where: Addresses) -> dict[str, str]:
    """The kernel's names, strides and offsets for the stages' text."""
    fills = {
        "entry": scan.kernel.name,
        "state": scan.state.argument,
        "state_out": scan.state.argument if scan.state.inplace else scan.state_out.name,
        "out": scan.out.name,
        "log": scan.log.name,
        "beta": scan.beta.name,
        "query": scan.query.name,
        "key": scan.key.name,
        "value": scan.value.name,
        "groups": _groups(plan),
        "algorithm": _algorithm(plan),
        "lanes": " * ".join(scan.mapped),
        "sizes": ", ".join(f'"{axis.name}": {axis.name}' for axis in scan.kernel.axes),
        "names": ", sizes",
        "K": scan.key_axis,
        "V": scan.value_axis,
    }
    for role, item, axis in (
        ("query", scan.query, scan.key_axis),
        ("key", scan.key, scan.key_axis),
        ("value", scan.value, scan.value_axis),
        ("out", scan.out, scan.value_axis),
        ("log", scan.log, scan.key_axis if scan.channels else None),
        ("beta", scan.beta, None),
    ):
        fills[f"{role}_step"] = where.stride(item.dims, scan.axis)
        fills[f"{role}_at"] = f"{item.name}_offset(lane, {_TOKEN[axis is None]}, sizes)"
        if axis is not None:
            fills[f"{role}_inner"] = where.stride(item.dims, axis)
    fills["log_token_at"] = f"{scan.log.name}_offset(lane, token, sizes)"
    fills["channel_log"] = f", {scan.log.name}" if scan.channels else ""
    fills["channel_arguments"] = f", {scan.log.name}, lanes, total, sizes" if scan.channels else ""
    fills["key_stride"] = where.stride(scan.state.dims, scan.key_axis)
    fills["value_stride"] = where.stride(scan.state.dims, scan.value_axis)
    fills["state_at"] = f"{scan.state.argument}_offset(lane, 0, sizes)"
    tensors = ("log", "beta", "query", "key", "value", "out")
    names = ", ".join(dict.fromkeys(fills[role] for role in tensors))
    if scan.valid is not None:
        names += f", {scan.valid.name}"
        fills["valid"] = scan.valid.name
        fills["valid_at"] = f"{scan.valid.name}_offset(lane, 0, sizes)"
    fills |= _live_tokens(scan, fills)
    sizes = "keys, values, total, factor, groups_in_flight"
    fills["parameters"] = f"constants, {names}, states, lanes, {sizes}{fills['names']}"
    given = f"{scan.key_axis}, values, {scan.axis}, {scan.scale}, groups_in_flight"
    fills["call"] = f"constants, {names}, states, lanes, {given}{fills['names']}"
    return fills


def _live_tokens(scan: Scan, fills: Mapping[str, str]) -> dict[str, str]:
    """The lines that only a kernel with a length per row has, empty for others."""
    turn = _text("turn", fills)
    if scan.valid is None:
        names = ("valid_argument", "keep_alive", "select_gates", "select_betas", "select_decays")
        return dict.fromkeys((*names, "alive_entry"), "") | {"turn_loaded": indent(turn, " " * 8)}
    found = f"alive = find_alive({scan.valid.name}, lanes, first_chunk, chunks, total, sizes)\n"
    given = 'if group["gates"]["alive"] != None:\n'
    selected = "alive.ap(pattern=[[columns, CHUNK], [0, 2], [1, columns]], offset=0)"
    return {
        "valid_argument": f", {scan.valid.name}",
        "alive_entry": '        "alive": alive,\n',
        "turn_loaded": indent('if gates["alive"] == None:\n' + indent(turn, "    "), " " * 8),
        "keep_alive": indent(
            f"{given}    q_sb, k_sb = keep_alive(group, q_sb, k_sb, v_sb, keys, values)\n", "    "
        ),
        "select_gates": indent(
            f"{found}if alive != None:\n    log_and_beta = only_alive(log_and_beta, {selected})\n",
            "    ",
        ),
        "select_betas": indent(
            f"{found}if alive != None:\n    betas = only_alive(betas, alive)\n", "    "
        ),
        "select_decays": indent(
            f'{given}    alive = per_slot(group["gates"]["alive"], 0, group, keys)\n'
            "    g_sb = only_alive(g_sb, alive)\n",
            "    ",
        ),
    }


_TOKEN = {False: "token", True: "first_chunk * CHUNK"}


def _text(name: str, fills: Mapping[str, str]) -> str:
    """One file of `text/` with the kernel's names in place."""
    path = resources.files("backends.nki.schedules.chunked") / "text" / f"{name}.nki"
    return Template(path.read_text()).substitute(fills).rstrip("\n")


def _groups(plan: Plan) -> str:
    """Groups of four chunks per batch: half the schedule's `group`, which may be an argument."""
    for exposed in plan.exposed:
        if exposed.key == "group":
            return f"max(1, {exposed.argument} // 2)"
    return str(max(1, int(plan.settings["group"]) // 2))


def _algorithm(plan: Plan) -> str:
    """The inverse, as the argument that carries it or as a name."""
    for exposed in plan.exposed:
        if exposed.key == "inverse":
            return exposed.argument
    return f'"{plan.settings["inverse"]}"'


def _inverse_check(argument: str) -> str:
    return (
        f'assert {argument} == "schur" or {argument} == "neumann", '
        f'f"{argument} must be schur or neumann, got {{{argument}}}"'
    )


def _functions(text: str) -> tuple[Function, ...]:
    """The functions of a text, one after the other."""
    return tuple(_function(part) for part in text.split("\ndef ") if part.strip())


def _function(text: str) -> Function:
    head, _, rest = text.removeprefix("def ").partition("):\n")
    name, _, parameters = head.partition("(")
    _, doc, body = dedent(rest).split('"""', 2)
    parts = tuple(p.strip() for p in parameters.split(",") if p.strip())
    return Function(name, parts, doc, (Verbatim(body.strip("\n")),))
