"""Progress on a terminal and in a log."""

from __future__ import annotations

import io
import time

import pytest

from gdsl.cli import console


class Stream(io.StringIO):
    """What stderr is: a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be set."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_terminal_has_one_line_that_is_rewritten_and_removed(clock: list[float]) -> None:
    stream = Stream(terminal=True)
    progress = console.Progress(stream)
    progress.show(0, 4, "first")
    assert stream.getvalue() == ""
    clock[0] = 2.0
    progress.show(1, 4, "second")
    assert stream.getvalue() == "\r[1/4] second, about 6 s left"
    progress.clear()
    assert stream.getvalue().endswith("\r")


def test_a_log_has_a_line_every_half_minute(clock: list[float]) -> None:
    stream = Stream(terminal=False)
    progress = console.Progress(stream)
    for clock[0] in (2.0, 29.0, 40.0, 41.0, 71.0):
        progress.show(1, 2, f"at {clock[0]:.0f}")
    progress.clear()
    assert stream.getvalue() == "[1/2] at 40, about 40 s left\n[1/2] at 71, about 71 s left\n"
