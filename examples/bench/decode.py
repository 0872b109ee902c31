"""The decode kernels and any NKI kernel given to it, on one cost model, at several head counts.

    python -m examples.bench.decode
    python -m examples.bench.decode --heads 8,32 --against FILE.py:gdn_tkg
    python -m examples.bench.decode --against FILE.py:step 'q=bf16[{H},128]' 's=f32[{H},128,128]'

Ours are gdn_tkg and kda_tkg at K = V = 128, with the state stored in fp32 and in bf16. Each
`--against` names an NKI kernel, followed by its arguments as `gdsl cost --arg` takes them, with {H}
for the number of heads; arguments left out are those of our kernel of the same name. A kernel that
the machine refuses at some size says so in its row.

Every time is estimated (microseconds, no clock gate): in program order, list-scheduled (what the
compiler may make of it), the range of program order when the assumed numbers of the machine move to
either end of theirs, and program order over the time HBM needs for the bytes of the contract. `at
most` is what the schedule was designed for.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from examples.bench import table
from gdsl import api
from gdsl.errors import GdslError
from gdsl.estimate import estimate
from gdsl.nki_source import nki_source
from gdsl.pipeline import Definition

HEADS = (8, 32, 128, 1024)
HEAD = 128
"""K and V."""


@frozen
class Ours:
    """A decode kernel of the library; `edits` turn its text into the variant that is measured."""

    label: str
    kernel: str
    heads: str
    """Name of its axis of heads."""
    edits: tuple[tuple[str, str], ...] = ()

    def define(self) -> Definition:
        """Return the kernel."""
        definition = api.load(self.kernel)
        text = definition.file.source.text
        for old, new in self.edits:
            assert old in text, old
            text = text.replace(old, new)
        return api.loads(text, self.kernel) if self.edits else definition

    def sizes(self, heads: int) -> dict[str, int]:
        """Return the sizes of its axes: one batch row."""
        return {"B": 1, self.heads: heads, "K": HEAD, "V": HEAD}


KERNELS = (
    Ours("gdn_tkg, fp32 state", "gdn_tkg", "Hv"),
    Ours("kda_tkg, fp32 state", "kda_tkg", "H"),
    Ours("gdn_tkg, bf16 state", "gdn_tkg_bf16_state", "Hv"),
    Ours(
        "kda_tkg, bf16 state",
        "kda_tkg",
        "H",
        (
            ("state S: f32[B, H, K, V] = S inplace", "state S: bf16[B, H, K, V] = S inplace"),
            ("output S: f32[B, H, K, V] = S", "output S: bf16[B, H, K, V] = S"),
        ),
    ),
)

Limit = Callable[[float, float], float]
"""From the HBM time and the time of gdn_tkg with an fp32 state at as many heads."""
LIMITS: Mapping[tuple[str, int], Limit] = {
    ("gdn_tkg, fp32 state", 8): lambda hbm, gdn: 15.0,
    ("gdn_tkg, fp32 state", 32): lambda hbm, gdn: 23.0,
    ("gdn_tkg, fp32 state", 128): lambda hbm, gdn: 1.2 * hbm,
    ("gdn_tkg, fp32 state", 1024): lambda hbm, gdn: 1.15 * hbm,
    **{("kda_tkg, fp32 state", heads): lambda hbm, gdn: 1.1 * gdn for heads in HEADS},
    ("gdn_tkg, bf16 state", 128): lambda hbm, gdn: 0.85 * gdn,
    ("gdn_tkg, bf16 state", 1024): lambda hbm, gdn: 0.75 * gdn,
}
"""What the decode schedule was designed for, on trn2 and one core."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--heads", default=",".join(map(str, HEADS)), metavar="N,...")
    parser.add_argument("-t", "--target", default="trn2", choices=("trn2", "trn3"))
    parser.add_argument("--lnc", type=int, default=1, choices=(1, 2))
    parser.add_argument(
        "--against", nargs="+", action="append", default=[], metavar="FILE.py:KERNEL NAME=SPEC"
    )
    return parser.parse_args()


def main() -> int:
    """Print the table; exit 2 for a wrong argument."""
    chosen = _arguments()
    try:
        counts = [int(text) for text in chosen.heads.split(",")]
    except ValueError:
        print(f"error: `--heads {chosen.heads}`: expected numbers, as 8,32", file=sys.stderr)
        return 2
    try:
        for words in chosen.against:
            nki_source(words[0])
        for row in _rows(chosen, counts):
            print(row, flush=True)
    except GdslError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _rows(chosen: argparse.Namespace, counts: Sequence[int]) -> Iterator[str]:
    yield table.head("heads")
    for heads in counts:
        first: float | None = None
        for ours in KERNELS:
            definition, sizes = ours.define(), ours.sizes(heads)
            report = estimate(definition, sizes, target=chosen.target, lnc=chosen.lnc).report
            first = report.estimate.program_order if first is None else first
            limit = LIMITS.get((ours.label, heads))
            designed = (chosen.target, chosen.lnc) == ("trn2", 1)
            most = limit(report.hbm, first) if limit is not None and designed else None
            yield table.row(str(heads), ours.label, report, most)
        for words in chosen.against:
            given = _like_ours(words[0].rpartition(":")[2], heads)
            sizes = {"H": heads}
            yield table.foreign(words, str(heads), given, sizes, chosen.target, chosen.lnc)


def _like_ours(entry: str, heads: int) -> dict[str, Any]:
    """Return the arguments of our kernel of that name; none where there is none."""
    for ours in KERNELS:
        if ours.label.startswith(f"{entry},"):
            return table.arguments_of(ours.define(), ours.sizes(heads))
    return {}


if __name__ == "__main__":
    sys.exit(main())
