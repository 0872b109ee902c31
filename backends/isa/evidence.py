"""What a number of a machine table carries: its value, how it is known, and from where.

Grades of evidence: D stated in AWS documentation or AWS source; M read off a profile or benchmark
that AWS published; T measured by a third party, with provenance; X arithmetic on D, M, T numbers;
A assumed: nobody published it, the source says why this value. A fact of grade A has a range, and
the cost model's sensitivity runs over those ranges.
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

Grade = Literal["D", "M", "T", "X", "A"]

SOURCES: dict[str, str] = {
    "ARCH": "nki/guides/architecture/{trainium_inferentia2,trainium2,trainium3}_arch.rst",
    "PERF": "nki/deep-dives/nki_perf_guide.rst",
    "DMABW": "nki/deep-dives/nki-dma-bandwidth-guide.rst",
    "DMAOV": "nki/get-started/about/nki-dma-overview.rst and its profile images (trn2)",
    "KOPT": "nki/guides/tutorials/kernel-optimization.rst and its profile images (trn2)",
    "RMSQ": "nki/library/specs/design-rmsnorm-quant.rst and its profile images (trn2)",
    "OLDISA": "general/nki/api/nki/isa/__init__.py at commit 49ee15c5 (SDK 2.26)",
    "ISA": "nki/api/nki/isa/__init__.py",
    "GLOSS": "tools/neuron-explorer/glossary.rst and overview-summary-page.rst",
    "LNC": "nki/get-started/about/lnc.rst",
    "COLL": "neuron-runtime/explore/compute-comm-overlap.rst",
    "CHIP": "about-neuron/arch/neuron-hardware/{neuron-core-v2,trainium2,trainium3}.rst",
    "MAMBA": "nki/guides/tutorials/fused_mamba.rst (trn1)",
    "KDA": "Jerry2423/kda-for-trainium (trn2; device time taken as 2 x its p50)",
    "CS149": "stanford-cs149/asst4-trainium2, timed in xaviergonzalez/asst4-trainium2 (trn2)",
}
"""What the short names in `Fact.source` stand for: files of aws-neuron/aws-neuron-sdk (SDK 2.32
where no commit is named), then other public repositories."""


@frozen
class Fact:
    """One number. `low` and `high` bound an assumed one, in the unit of the value."""

    value: float
    grade: Grade
    source: str
    low: float | None = None
    high: float | None = None


@frozen
class Row:
    """One line of a table: a fact for each generation (None: the generation has no such thing)."""

    key: str
    unit: str
    meaning: str
    trn1: Fact | None
    trn2: Fact | None
    trn3: Fact | None

    def fact(self, target: str) -> Fact | None:
        """Return the fact of a target, by its name."""
        return {"trn1": self.trn1, "trn2": self.trn2, "trn3": self.trn3}[target]


def doc(value: float, source: str) -> Fact:
    """Return a documented fact (D)."""
    return Fact(value, "D", source)


def aws(value: float, source: str) -> Fact:
    """Return a fact that AWS measured and published (M)."""
    return Fact(value, "M", source)


def third(value: float, source: str) -> Fact:
    """Return a fact that a third party measured (T)."""
    return Fact(value, "T", source)


def calc(value: float, source: str) -> Fact:
    """Return arithmetic on published numbers (X)."""
    return Fact(value, "X", source)


def assume(value: float, reason: str, low: float, high: float) -> Fact:
    """Return an assumption (A) with the range it may lie in."""
    return Fact(value, "A", reason, low, high)
