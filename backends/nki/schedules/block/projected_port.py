"""A port of a projection once it is planned: what its weight is, and where its result goes."""

from __future__ import annotations

from attrs import define

from backends.nki.program.nodes import Function, View
from backends.nki.schedules.block.columns import Columns
from backends.nki.schedules.block.projection_step import PROJECT, PROJECT_HEADS, PROJECT_SCALED
from backends.nki.schedules.block.projection_stream import Stream, Weight
from backends.nki.schedules.block.sections import Port, Projection


@define
class ProjectedPort:
    """A port of a projection: its weight in the stream, and its tile once it is created."""

    port: Port
    projection: Projection
    weight: Weight
    columns: Columns
    """The columns that are used; the weight says which are brought in."""
    stream: Stream
    view: View | None = None

    @property
    def function(self) -> Function:
        """What multiplies the weight with the activation."""
        if self.port.field.wide is None:
            return PROJECT_HEADS
        return PROJECT if self.projection.scale is None else PROJECT_SCALED
