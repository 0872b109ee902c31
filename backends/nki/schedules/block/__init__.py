"""Kernels of several rules for one token or a few: projections, windows, then one delta rule."""
