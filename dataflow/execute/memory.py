"""`Memory`: what the windows and batches of a run are made of, and how much of it is in use."""

from __future__ import annotations

from dataclasses import dataclass, field

from dataflow.execute.arrow_use import ArrowUse
from dataflow.execute.buffers import BufferPool
from dataflow.execute.room import Room

__all__ = ["Memory"]


@dataclass(frozen=True, slots=True)
class Memory:
    """Buffers for dense columns, the use of Arrow for all others, and the room that windows share."""

    buffers: BufferPool
    arrow: ArrowUse
    room: Room = field(default_factory=Room)
