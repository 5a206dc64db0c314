"""`RowWork`: what is to be done to rows, whoever does it."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.execute.program import Program
from dataflow.order.stream import Stream

__all__ = ["RowWork"]


@dataclass(frozen=True, slots=True)
class RowWork:
    """The program for the rows of a stream, under one seed.

    `tolerant` says that bad rows are not the end (on_error is "skip" or "replace").
    """

    program: Program
    stream: Stream
    seed: int
    tolerant: bool
