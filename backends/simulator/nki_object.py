"""`nl.NKIObject`, the base of classes in kernels, and the `dataclass` that goes with it.

Fields are the annotated and the plain class attributes, in order; an annotated field without a
default is None. `__init__` is made when the class has none. `@dataclass` on such a class changes
nothing else, which plain `dataclasses` would.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

_KEPT = (FunctionType, property, classmethod, staticmethod, type)


class NKIObject:
    """Base of kernel classes: fields from class attributes, structural equality."""

    _fields: dict[str, Any] = {}  # noqa: RUF012  (replaced, never changed, by every subclass)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fields = dict(cls._fields)
        own = vars(cls)
        for name in own.get("__annotations__", {}):
            fields[name] = own.get(name)
        for name, value in own.items():
            if not name.startswith("__") and name != "_fields" and not isinstance(value, _KEPT):
                fields.setdefault(name, value)
        cls._fields = fields
        if "__init__" not in own and cls.__init__ is object.__init__:
            cls.__init__ = _initialise  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = object.__hash__


def _initialise(self: NKIObject, *args: Any, **kwargs: Any) -> None:
    """Set every field from the arguments or its default, then run `__post_init__`."""
    fields = type(self)._fields
    if len(args) > len(fields):
        raise TypeError(f"{type(self).__name__} takes {len(fields)} values, got {len(args)}")
    given = dict(zip(fields, args, strict=False))
    for name, value in kwargs.items():
        if name not in fields or name in given:
            raise TypeError(f"{type(self).__name__} got an unexpected or repeated `{name}`")
        given[name] = value
    for name, default in fields.items():
        object.__setattr__(self, name, given[name] if name in given else _default(default))
    post_init = getattr(self, "__post_init__", None)
    if post_init is not None:
        post_init()


def _default(value: Any) -> Any:
    """Return the value of a default, which may be a `dataclasses.field`."""
    if isinstance(value, dataclasses.Field):
        if value.default_factory is not dataclasses.MISSING:
            return value.default_factory()
        return None if value.default is dataclasses.MISSING else value.default
    return value


def dataclass(cls: type | None = None, /, **options: Any) -> Any:
    """`dataclasses.dataclass`, which leaves NKIObject classes to themselves."""

    def decorate(target: type) -> type:
        if issubclass(target, NKIObject):
            if options.get("frozen"):
                target.__setattr__ = _frozen  # type: ignore[assignment]
            return target
        return _with_module(target, lambda: dataclasses.dataclass(**options)(target))

    return decorate if cls is None else decorate(cls)


def _frozen(self: NKIObject, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field `{name}`")


def _with_module(target: type, action: Callable[[], type]) -> type:
    """Run `action` with the class's module in `sys.modules`, where dataclasses looks it up."""
    name = target.__module__
    if name in sys.modules:
        return action()
    sys.modules[name] = ModuleType(name)
    try:
        return action()
    finally:
        del sys.modules[name]


def dataclasses_module() -> ModuleType:
    """Return what `import dataclasses` means in a kernel file."""
    module = ModuleType("dataclasses")
    vars(module).update({name: getattr(dataclasses, name) for name in dataclasses.__all__})
    module.__dict__["dataclass"] = dataclass
    return module
