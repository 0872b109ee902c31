"""Canonical recurrence -> plan: which algorithm computes each run, safe by range analysis."""
