"""Plan -> tile program -> NKI source text."""

from backends.nki.emitter import NkiEmitter

EMITTER = NkiEmitter()

__all__ = ["EMITTER"]
