"""The version; `pyproject.toml` has the same, and a test says so."""

__version__ = "0.1.0"
