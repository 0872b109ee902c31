"""Tile program to NKI source text."""
