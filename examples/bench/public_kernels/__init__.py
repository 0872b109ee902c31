"""Public NKI kernels as a test of the simulator: see `__main__.py`."""
