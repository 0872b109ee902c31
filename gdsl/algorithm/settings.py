"""Resolving schedule keys: default < `schedule` block of the file < `--set` or Python."""

from __future__ import annotations

from collections.abc import Mapping

from gdsl.algorithm.plan import Origin, Resolved
from gdsl.algorithm.schedule_keys import SCHEDULE_KEYS, ScheduleKey, Value
from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.errors import CompileError
from gdsl.ir.kernel import Schedule
from gdsl.source import Span
from gdsl.suggest import did_you_mean

UNKNOWN_KEY = "E0501"
WRONG_VALUE = "E0502"


def resolve(schedule: Schedule | None, overrides: Mapping[str, Value]) -> tuple[Resolved, ...]:
    """Return every key of `SCHEDULE_KEYS` with its value, in the table's order.

    Raises CompileError with one diagnostic per unknown key and per value a key does not take.
    """
    written = [(s.key, s.value, "file", s.span) for s in schedule.settings] if schedule else []
    written += [(key, value, "override", None) for key, value in overrides.items()]
    found: list[Diagnostic] = []
    final: dict[str, Resolved] = {
        key.name: Resolved(key.name, key.default, "default") for key in SCHEDULE_KEYS.values()
    }
    for name, value, origin, span in written:
        setting = _setting(name, value, "file" if origin == "file" else "override", span)
        if isinstance(setting, Diagnostic):
            found.append(setting)
        else:
            final[name] = setting
    if found:
        raise CompileError("; ".join(d.message for d in found), found)
    return tuple(final.values())


def _setting(name: str, value: Value, origin: Origin, span: Span | None) -> Resolved | Diagnostic:
    key = SCHEDULE_KEYS.get(name)
    if key is None:
        known = ", ".join(f"`{known}`" for known in SCHEDULE_KEYS)
        return Diagnostic(
            UNKNOWN_KEY,
            f"unknown schedule key `{name}`{did_you_mean(name, SCHEDULE_KEYS)}",
            span,
            label="no such key",
            notes=(f"known keys: {known}",),
            help="remove it, or use one of the known keys",
        )
    typed = _typed(key, value)
    if typed is None:
        return Diagnostic(
            WRONG_VALUE,
            f"schedule key `{name}` cannot be `{value}`",
            span,
            label=f"expected {key.accepts}",
            notes=(f"`{name}`: {key.doc}",),
            help=f"use {key.accepts}",
        )
    return Resolved(name, typed, origin, span=span)


def _typed(key: ScheduleKey, value: Value) -> Value | None:
    """The value in the key's type (text from a command line is parsed), or None."""
    if key.type is int and isinstance(value, str):
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
            return None
        value = int(value)
    if type(value) is not key.type:
        return None
    if key.choices is not None:
        return value if value in key.choices else None
    if key.bounds is not None and isinstance(value, int):
        return value if key.bounds[0] <= value <= key.bounds[1] else None
    return value
