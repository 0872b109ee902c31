"""Instruction selection: from mathematics on named axes to instructions on tiles."""
