"""Drop-in modules: our kernels under the names and calls that other code already uses."""

from backends.nki.adapters.adapt import adapted_exports
from backends.nki.adapters.table import ADAPTERS

__all__ = ["ADAPTERS", "adapted_exports"]
