"""Resolving schedule keys: default < `schedule` block of the file < `--set` or Python.

A key set from outside that has no effect is refused: silence would be taken for success. The keys
of a file may serve several forms (`--set form=...` changes the form), so there one is warned of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from gdsl.algorithm.plan import Origin, Resolved
from gdsl.algorithm.schedule_keys import SCHEDULE_KEYS, ScheduleKey, Value
from gdsl.diagnostics.diagnostic import Diagnostic, Severity
from gdsl.errors import CompileError
from gdsl.ir.kernel import Kernel, Schedule
from gdsl.ir.types import DtypeVar
from gdsl.source import Span
from gdsl.suggest import did_you_mean

UNKNOWN_KEY = "E0501"
WRONG_VALUE = "E0502"
WITHOUT_EFFECT = "E0503"
IDLE = "W0501"


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


def refuse_without_effect(
    settings: Mapping[str, Resolved], forms: frozenset[str], kernel: str, why: Sequence[str]
) -> None:
    """Raise CompileError with one diagnostic per key set from outside that has no effect.

    `why` says how the kernel came to its form.
    """
    found = [
        _without_effect(setting, forms, kernel, why)
        for setting in settings.values()
        if setting.origin == "override" and not forms & set(SCHEDULE_KEYS[setting.key].forms)
    ]
    if found:
        raise CompileError("; ".join(d.message for d in found), found)


def idle_keys(
    resolved: Sequence[Resolved], forms: frozenset[str], kernel: str
) -> tuple[Diagnostic, ...]:
    """Return a warning for each key of the file that has no effect on a kernel of these forms."""
    found = (
        _without_effect(setting, forms, kernel, ())
        for setting in resolved
        if setting.origin == "file" and not forms & set(SCHEDULE_KEYS[setting.key].forms)
    )
    return tuple(evolve(d, code=IDLE, severity=Severity.WARNING) for d in found)


def refuse_reads_of_two_bytes(reads: Resolved, kernel: Kernel) -> None:
    """Raise CompileError if `reads=bf16` is asked for states that are stored in two bytes."""
    choices = (
        s.dtype.choices if isinstance(s.dtype, DtypeVar) else (s.dtype,) for s in kernel.states
    )
    if reads.value != "bf16" or any(dtype.bytes > 2 for found in choices for dtype in found):
        return
    message = f"`reads=bf16` has no effect on `{kernel.name}`, whose states are stored in two bytes"
    diagnostic = Diagnostic(
        WITHOUT_EFFECT,
        message,
        reads.span,
        label="a state of two bytes is read as it is",
        help="leave out `reads`",
    )
    raise CompileError(message, [diagnostic])


def _without_effect(
    setting: Resolved, forms: frozenset[str], kernel: str, why: Sequence[str]
) -> Diagnostic:
    key = SCHEDULE_KEYS[setting.key]
    useful = [k.name for k in SCHEDULE_KEYS.values() if forms & set(k.forms)]
    form = " and ".join(sorted(forms))
    return Diagnostic(
        WITHOUT_EFFECT,
        f"schedule key `{key.name}` has no effect on `{kernel}`, whose form is {form}",
        setting.span,
        label=f"belongs to the form {' or '.join(key.forms)}",
        notes=(f"`{key.name}`: {key.doc}", *why),
        help=f"leave out `{key.name}`; what counts here: "
        + ", ".join(f"`{name}`" for name in useful),
    )


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
