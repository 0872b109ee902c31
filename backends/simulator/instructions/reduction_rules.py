"""Rules of reductions, statistics, searches and counts: shapes of results, reduction commands."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from backends.simulator.faults import Fault
from backends.simulator.instructions.call import BoundCall
from backends.simulator.instructions.extents import equal_partitions, expect_free
from backends.simulator.tensor import NkiTensor

_TOPK_GROUP = 16
_TOPK_ELEMENTS = (8, 65536)
_TOPK_RESULTS = 32767
_MAX8_RANK = 3

# ---- shapes


def reduced_axes(call: BoundCall) -> int:
    """How many trailing axes of `data` a `tensor_reduce` folds.

    Raises Fault S321 unless `axis` names the last axes and not the partition axis.
    """
    data: NkiTensor = call["data"]
    axes = sorted(axis + data.ndim if axis < 0 else axis for axis in call["axis"])
    expected = list(range(data.ndim - len(axes), data.ndim))
    if not axes or axes != expected or axes[0] < 1:
        raise Fault(
            "S321",
            f"`axis` {call['axis']} of data {tuple(data.shape)} must name the last free axes",
            help="permute the view so that the reduced axes come last",
        )
    return len(axes)


def free_axes(call: BoundCall) -> None:
    """`dst` has one element for each kept index of the free axes (S309, S312, S321)."""
    dst, data = call["dst"], call["data"]
    equal_partitions(call, ("data", "dst"))
    kept = prod(data.shape[1 : data.ndim - reduced_axes(call)])
    if dst.free_size != kept:
        raise Fault(
            "S312",
            f"`dst` must have {kept} elements per partition, it has {dst.free_size}",
            values={"dst": tuple(dst.shape), "data": tuple(data.shape), "axis": call["axis"]},
        )


def partition_axis(call: BoundCall) -> None:
    """`dst` is one partition with the free size of `data` (S309, S312)."""
    dst, data = call["dst"], call["data"]
    if dst.partitions != 1:
        raise Fault("S309", f"`dst` must cover one partition, it covers {dst.partitions}")
    expect_free(call, "dst", data.free_size)


def statistics(call: BoundCall) -> None:
    """`dst` has two triples of (count, mean, count * variance) per partition (S309, S312)."""
    equal_partitions(call, ("data", "dst"))
    expect_free(call, "dst", 6)


def aggregate(call: BoundCall) -> None:
    """`dst` has a mean and a variance per partition (S309, S312)."""
    equal_partitions(call, ("data", "dst"))
    expect_free(call, "dst", 2)


def eight(call: BoundCall) -> None:
    """Values and places come eight at a time; replaced data keep their size (S309, S312)."""
    names = [
        name
        for name in ("data", "src", "vals", "dst", "dst_idx")
        if call.values.get(name) is not None
    ]
    equal_partitions(call, names)
    data = "data" if "data" in names else "src"
    sizes = {"vals": 8, "dst_idx": 8, "dst": 8}
    if call.row.name == "nc_match_replace8":
        sizes["dst"] = call.values[data].free_size
    for name, size in sizes.items():
        if name in names:
            expect_free(call, name, size)


def places_and_count(call: BoundCall) -> None:
    """`dst` has one element more per partition than `src` (S309, S312)."""
    equal_partitions(call, ("src", "dst"))
    expect_free(call, "dst", call["src"].free_size + 1)


def topk(call: BoundCall) -> None:
    """k results out of n elements of each group of 16 partitions (S309, S312, S314)."""
    equal_partitions(call, ("src", "val_dst", "idx_dst"))
    count, n = call["val_dst"].free_size, call["n"]
    expect_free(call, "idx_dst", count)
    if not _TOPK_ELEMENTS[0] <= n < _TOPK_ELEMENTS[1] or not count <= min(n, _TOPK_RESULTS):
        raise Fault(
            "S314",
            f"`topk` of {count} out of {n} elements; n is 8 to 65535 and k at most n and 32767",
        )
    if call["src"].free_size * _TOPK_GROUP < n:
        raise Fault(
            "S312",
            f"`src` holds {call['src'].free_size * _TOPK_GROUP} elements per group of 16 "
            f"partitions, `n` is {n}",
        )


def sequence_bounds(call: BoundCall) -> None:
    """One partition of segment ids gives a first and a last place for each (S309, S312)."""
    dst, ids = call["dst"], call["segment_ids"]
    if ids.partitions != 1 or dst.partitions != 1:
        raise Fault("S309", "`segment_ids` and `dst` of `sequence_bounds` cover one partition")
    expect_free(call, "dst", 2 * ids.free_size)


# ---- arguments


def commands(*allowed: str) -> Callable[[BoundCall], None]:
    """Return the rule that `reduce_cmd` is one of `allowed` (S322)."""

    def rule(call: BoundCall) -> None:
        command = call["reduce_cmd"]
        if command not in allowed:
            raise Fault(
                "S322",
                f"`{call.row.name}` does not take `reduce_cmd.{command}`",
                help=f"it takes {', '.join(allowed)}",
            )

    return rule


def initial_value(name: str, unset: object) -> Callable[[BoundCall], None]:
    """Return the rule that `load_reduce` alone takes, and needs, its start value `name` (S322)."""

    def rule(call: BoundCall) -> None:
        loads = call["reduce_cmd"] == "load_reduce"
        value = call[name]
        given = isinstance(value, NkiTensor) or value != unset
        if given and not loads:
            raise Fault("S322", f"`{name}` is read only with `reduce_cmd.load_reduce`")
        if loads and value is None:
            raise Fault("S322", f"`reduce_cmd.load_reduce` needs `{name}`")

    return rule


def needs_operator(call: BoundCall) -> None:
    """A result that is asked for has an operator (S322)."""
    if call["reduce_op"] is None and (
        call["reduce_res"] is not None or call["reduce_cmd"] in ("reduce", "reset_reduce")
    ):
        raise Fault("S322", f"a reduction in `{call.row.name}` needs `reduce_op`")


def no_reverse(call: BoundCall) -> None:
    """`reverse0` is in the signature, not in the hardware (S322)."""
    if call["reverse0"]:
        raise Fault("S322", f"`reverse0` of `{call.row.name}` is not supported by the hardware yet")


def rank_of_maxima(call: BoundCall) -> None:
    """`max8` reads at most three axes (S314)."""
    src: NkiTensor = call["src"]
    if src.ndim > _MAX8_RANK:
        raise Fault("S314", f"`src` of `max8` has rank {src.ndim}; at most {_MAX8_RANK} is allowed")
