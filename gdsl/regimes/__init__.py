"""Inputs for a kernel, made from its contract: the regimes in which agreement is judged."""
