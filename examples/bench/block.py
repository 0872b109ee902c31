"""The fused decode block and any NKI kernel given to it, on one cost model, at several sizes.

    python -m examples.bench.block
    python -m examples.bench.block --case b1 --against FILE.py:gdn_block_tkg
    python -m examples.bench.block --against FILE.py:block 'x=bf16[{B},1,{Hid}]' 'w=bf16[{Hid},64]'

Ours is gdn_block_tkg at the sizes of Qwen3-Next and Qwen3.5-35B (hidden 2048, 16 key and 32 value
heads of 128, window 4): one row and 32 rows of a whole layer, one of its four shards with eight
rows. Each `--against` names an NKI kernel, followed by its arguments as `gdsl cost --arg` takes
them, with {B}, {Hid}, {Hk}, ... for sizes; arguments left out are those of our kernel. A kernel
that the machine refuses at some size says so in its row.

Every time is estimated (microseconds, no clock gate), as in `examples.bench.decode`. `at most` is
what the schedule was designed for: a multiple of the time HBM needs for the weights and for the
states in and out. The last line counts the transfers of a core.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping

from attrs import frozen

from examples.bench import table
from gdsl import api
from gdsl.errors import GdslError
from gdsl.estimate import estimate
from gdsl.nki_source import nki_source
from gdsl.profiler import CostReport

KERNEL = "gdn_block_tkg"
LAYER = {"Hid": 2048, "Hk": 16, "G": 2, "K": 128, "V": 128, "W": 4}


@frozen
class Case:
    """A size of the block, a number of cores, and how far from HBM's time it may be."""

    sizes: Mapping[str, int]
    lnc: int
    factor: float

    def base(self, report: CostReport) -> float:
        """Microseconds for the bytes of weights and states, at the rate of the roofline."""
        s = self.sizes
        heads = s["Hk"] * s["G"]
        channels = 2 * s["Hk"] * s["K"] + 2 * heads * s["V"] + 2 * heads
        moved = 2 * s["Hid"] * channels + 2 * 4 * s["B"] * heads * s["K"] * s["V"]
        return report.hbm * moved / report.contract.hbm_bytes

    def __str__(self) -> str:
        return f"{self.sizes['B']} x {self.sizes['Hk']} heads, LNC {self.lnc}"


CASES = {
    "b1": Case({"B": 1, **LAYER}, 1, 1.06),
    "b1_lnc2": Case({"B": 1, **LAYER}, 2, 1.12),
    "b32": Case({"B": 32, **LAYER}, 1, 1.15),
    "tp4_b8": Case({"B": 8, **LAYER, "Hk": 4}, 1, 1.35),
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--case", default=",".join(CASES), metavar="NAME,...")
    parser.add_argument("-t", "--target", default="trn2", choices=("trn2", "trn3"))
    parser.add_argument(
        "--against", nargs="+", action="append", default=[], metavar="FILE.py:KERNEL NAME=SPEC"
    )
    chosen = parser.parse_args()
    unknown = [name for name in chosen.case.split(",") if name not in CASES]
    if unknown:
        parser.error(f"there is no case `{unknown[0]}`; known: {', '.join(CASES)}")
    return chosen


def main() -> int:
    """Print the table; exit 2 for a wrong argument."""
    chosen = _arguments()
    try:
        for words in chosen.against:
            nki_source(words[0])
        for line in _rows(chosen):
            print(line, flush=True)
    except GdslError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _rows(chosen: argparse.Namespace) -> Iterator[str]:
    yield table.head("rows")
    definition = api.load(KERNEL)
    transfers: list[str] = []
    for name in chosen.case.split(","):
        case = CASES[name]
        report = estimate(definition, case.sizes, target=chosen.target, lnc=case.lnc).report
        most = case.factor * case.base(report) if chosen.target == "trn2" else None
        yield table.row(str(case), KERNEL, report, most)
        transfers.append(f"{name} {max(core.dma_count for core in report.cores)}")
        for words in chosen.against:
            given = table.arguments_of(definition, case.sizes)
            if words[0].rpartition(":")[2] != KERNEL:
                given = {}
            yield table.foreign(words, str(case), given, case.sizes, chosen.target, case.lnc)
    yield f"transfers of a core: {', '.join(transfers)}"


if __name__ == "__main__":
    sys.exit(main())
