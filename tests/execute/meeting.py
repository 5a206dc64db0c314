"""Ranks of one process that agree as real ones do: their all-gathers meet in memory."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

import dataflow as flow
from dataflow.errors import LoaderClosed, RankError
from dataflow.execute.loader import Loader
from dataflow.options import ErrorPolicy, LoaderOptions, World
from loaders.plain import to_numpy_batch

__all__ = ["meeting_loaders"]

_TIMEOUT_S = 60


class _Meeting:
    """Rounds by run and number; a round is over when every rank has come."""

    def __init__(self, world: int) -> None:
        self.world = world
        self.changed = threading.Condition()
        self.rounds: defaultdict[tuple[int, int], dict[int, list[int]]] = defaultdict(dict)


class _Gathers:
    """One rank's way to the meeting."""

    def __init__(self, meeting: _Meeting, rank: int) -> None:
        self._meeting, self._rank = meeting, rank
        self._run = self._round = 0
        self._closed = self._abandoned = False

    def begin(self) -> None:
        self._run, self._round, self._closed = self._run + 1, 0, False
        self._abandoned = False

    def all_gather(self, numbers: Sequence[int]) -> list[list[int]]:
        meeting = self._meeting
        with meeting.changed:
            present = meeting.rounds[self._run, self._round]
            present[self._rank] = list(numbers)
            self._round += 1
            meeting.changed.notify_all()
            for _ in range(_TIMEOUT_S):
                over = meeting.changed.wait_for(lambda: self._closed or len(present) == meeting.world, 1)
                if self._closed or self._abandoned:
                    raise LoaderClosed("the loader is closed.")
                if over:
                    break
            else:
                raise RankError("not all ranks came.")
            return [present[rank] for rank in range(meeting.world)]

    def abandon(self) -> None:
        self._abandoned = True

    def close(self) -> None:
        with self._meeting.changed:
            self._closed = True
            self._meeting.changed.notify_all()

    def shutdown(self) -> None:
        self.close()


def meeting_loaders(
    pipe: flow.Pipeline,
    world: int,
    state: dict[str, Any] | None = None,
    errors: Sequence[ErrorPolicy] | None = None,
) -> list[Loader[Any]]:
    """A loader for each rank of a process group; batches are dicts of NumPy arrays with ids."""
    meeting = _Meeting(world)
    made = []
    for rank in range(world):
        options = LoaderOptions(
            memory_limit=10**9, threads=1 + rank % 2, ids=True,
            errors=errors[rank] if errors is not None else ErrorPolicy(),
        )  # fmt: skip
        loader: Loader[Any] = Loader(
            pipe.node, pipe.seed_value or 0, options, World(rank=rank, size=world),
            partial(to_numpy_batch, ids=True), partial(_Gathers, meeting, rank),
        )  # fmt: skip
        if state is not None:
            loader.load_state_dict(state)
        made.append(loader)
    return made
