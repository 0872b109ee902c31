"""Typed recurrence -> canonical form: decay, read, write, emit, found symbolically."""
