"""Two programs that run in turn and meet: barriers and exchanges between the cores of an LNC pair.

Only one program runs at any time, so a run is repeatable: program 0 runs until it has to wait, then
program 1, and so on.
"""

from __future__ import annotations

import threading
from typing import Any

from attrs import define, field

from backends.simulator.faults import Fault
from backends.simulator.location import Location, here


class OtherProgramFailed(Exception):
    """Unwinds a program whose peer stopped with a fault."""


@define(eq=False)
class _Wait:
    """What a program is waiting for, and what it hands over."""

    key: tuple[object, ...]
    payload: Any
    location: Location
    answer: tuple[Any, int] | None = None


@define(eq=False)
class Pair:
    """The turn and the meetings of two programs."""

    _changed: threading.Condition = field(factory=threading.Condition)
    _turn: int = 0
    _waits: list[_Wait | None] = field(factory=lambda: [None, None])
    _finished: list[bool] = field(factory=lambda: [False, False])
    _failed: bool = False
    _meetings: int = 0

    def begin(self, program: int) -> None:
        """Wait for the program's first turn."""
        with self._changed:
            self._wait_for_turn(program)

    def finish(self, program: int, *, failed: bool = False) -> None:
        """End a program and hand over for good."""
        with self._changed:
            self._finished[program] = True
            self._failed = self._failed or failed
            self._hand_over(program)

    def abort(self) -> None:
        """Make both programs unwind at their next instruction or wait."""
        with self._changed:
            self._failed = True
            self._finished = [True, True]
            self._changed.notify_all()

    def check(self) -> None:
        """Raise OtherProgramFailed when the launch was aborted."""
        if self._failed:
            raise OtherProgramFailed

    def meet(self, program: int, key: tuple[object, ...], payload: Any) -> tuple[Any, int]:
        """Wait until the other program meets with the same key; return its payload and a number.

        Raises Fault S502 when that cannot happen.
        """
        other = 1 - program
        with self._changed:
            theirs = self._waits[other]
            if theirs is not None and theirs.answer is None:
                if theirs.key != key:
                    raise _deadlock(key, f"the other program waits at `{theirs.key[0]}`", theirs)
                self._meetings += 1
                theirs.answer = (payload, self._meetings)
                return theirs.payload, self._meetings
            if self._finished[other]:
                raise _deadlock(key, "the other program has ended", None)
            mine = self._waits[program] = _Wait(key, payload, here())
            self._hand_over(program)
            self._wait_for_turn(program)
            self._waits[program] = None
            if mine.answer is None:
                raise _deadlock(key, "the other program ended without coming", None)
            return mine.answer

    def _hand_over(self, program: int) -> None:
        self._turn = 1 - program
        self._changed.notify_all()

    def _wait_for_turn(self, program: int) -> None:
        while self._turn != program and not self._failed:
            self._changed.wait()
        if self._failed:
            raise OtherProgramFailed


def _deadlock(key: tuple[object, ...], why: str, theirs: _Wait | None) -> Fault:
    values = {} if theirs is None else {"other program at line": theirs.location.line}
    return Fault("S502", f"`{key[0]}` can never complete: {why}", values=values)
