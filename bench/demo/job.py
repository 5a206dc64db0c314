"""What one process of the demo has to do, as it is handed to it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

from bench.demo.size import Size

__all__ = ["RankJob"]


@dataclass(frozen=True, kw_only=True)
class RankJob:
    """One rank of the training `name`, up to step `steps`, fed by `input` with `threads` threads or workers.

    With `hold` it then waits to be killed.
    """

    name: str
    folder: str
    size: Size
    steps: int
    rank: int = 0
    world: int = 1
    resume: bool = False
    hold: bool = False
    input: Literal["dataflow", "dataloader"] = "dataflow"
    threads: int = 2

    def to_json(self) -> str:
        """The job as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RankJob:
        """The job that `to_json` wrote."""
        values = json.loads(text)
        return cls(**{**values, "size": Size(**values["size"])})
