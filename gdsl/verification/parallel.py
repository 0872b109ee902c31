"""The regimes of a verification spread over processes.

A process is started afresh, not forked: the threads of a BLAS do not survive a fork, and each
process is to have one. Every regime builds its inputs from the seed: where it runs cannot matter.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager

from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.errors import GdslError
from gdsl.regimes.trial import Skip
from gdsl.verification.report import Case
from gdsl.verification.request import Request
from gdsl.verification.work import Work

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LONG = ("lengths", "split", "weak-decay")
_work: Work | None = None
"""What this process works on, when it is one of the pool's."""


def run_regimes(
    request: Request, jobs: int, show: Callable[[int, int, str], None]
) -> dict[str, list[Case] | Skip]:
    """Run the regimes in `jobs` processes and return what each found, in the order asked for.

    Raises the first GdslError that one raised; no further regime is begun then.
    """
    names = request.regimes
    # Long ones first, so that no process is left with one at the end.
    order = sorted(names, key=lambda name: name not in _LONG)
    show(0, len(names), order[0])
    context = multiprocessing.get_context("spawn")
    with (
        _one_thread_each(),
        ProcessPoolExecutor(min(jobs, len(names)), context, _start, (request,)) as pool,
    ):
        running = {pool.submit(_run, name): name for name in order}
        found: dict[str, list[Case] | Skip] = {}
        try:
            for future in as_completed(running):
                result = future.result()
                if isinstance(result, _Failure):
                    raise GdslError(result.message, result.diagnostics)
                found[running[future]] = result
                show(len(found), len(names), running[future])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {name: found[name] for name in names}


class _Failure:
    """An error on its way to the parent; exceptions of other signatures do not travel."""

    def __init__(self, error: GdslError) -> None:
        self.message = str(error)
        self.diagnostics: tuple[Diagnostic, ...] = error.diagnostics


def _start(request: Request) -> None:
    global _work
    _work = Work(request)


def _run(regime: str) -> list[Case] | Skip | _Failure:
    assert _work is not None
    try:
        return _work.run(regime)
    except GdslError as error:
        return _Failure(error)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Give the processes that start inside one BLAS thread each; they inherit the environment."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
