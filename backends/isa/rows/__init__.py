"""Instruction rows by family; `backends.isa.instructions` puts them together.

Signatures and limits are those of the `nki.isa` reference of NKI 0.6 unless a comment says
otherwise.
"""
