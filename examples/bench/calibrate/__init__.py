"""The cost model against published timings: see `__main__.py`."""
