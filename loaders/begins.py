"""The begins of a loader, by names that all ranks that run alike give them."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import cast

from connectors.contract import Json
from dataflow.execute.alike import spoken
from dataflow.execute.shape import hashed
from loaders.group_store import group_store
from loaders.notes import Notes

__all__ = ["Begins"]

# The loaders of like steps that this process has begun, by their ranks and a hash of the steps' names.
_BEGUN: defaultdict[tuple[tuple[int, ...], str], Iterator[int]] = defaultdict(itertools.count)


class Begins:
    """Counts the begins of one loader, which is the nth one of like steps: one of other steps does not count.

    Args:
        ranks: those that may have this loader; `rank` is this one of them.
    """

    def __init__(self, ranks: tuple[int, ...], rank: int) -> None:
        self._ranks, self._rank = ranks, rank
        self._loader: str | None = None
        self._begins = itertools.count()

    def note(self, state: Mapping[str, Json]) -> Notes:
        """The notes of a begin at a state."""
        # Its bad rows are a rank's alone.
        told = {name: value for name, value in state.items() if name != "errors"}
        order = hashed(spoken({**told, "epoch": 0, "step": 0}).decode())
        if self._loader is None:
            steps = hashed(sorted(cast(Mapping[str, Json], state["shape"])))
            self._loader = f"{steps}/{next(_BEGUN[self._ranks, steps])}"
        name = f"{self._loader}/{next(self._begins)}"
        return Notes(partial(group_store, self._ranks), name, self._ranks, self._rank, order, spoken(told))
