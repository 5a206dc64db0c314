"""A loader that stays true to the rank it was made for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import pyarrow as pa

from connectors.contract import Json
from dataflow.execute.agree import Gathers
from dataflow.execute.assemble import HostBatch
from dataflow.execute.develop import Development
from dataflow.execute.loader import Loader
from dataflow.execute.running import Taken
from dataflow.graph.node import Node
from dataflow.options import LoaderOptions
from loaders.begins import Begins
from loaders.membership import Membership, distributed
from loaders.watch import Watch

__all__ = ["RankedLoader"]

T = TypeVar("T")


class RankedLoader(Loader[T]):
    """The loader of one rank, which refuses to run where the process has become another one since it was made.

    Where ranks exchange nothing, it looks whether the others begin the same epochs of the same order.

    Args:
        membership: what says which rank this is.
    """

    def __init__(
        self, node: Node, seed: int, options: LoaderOptions, membership: Membership,
        convert: Callable[[HostBatch, pa.Schema | None], T],
        gathers: Callable[[Mapping[str, Json]], Gathers] | None, development: Development,
    ) -> None:  # fmt: skip
        self._watch = Watch()
        self._begins: Begins | None = None
        super().__init__(node, seed, options, membership.world(), convert, gathers, development)
        self._membership = membership

    def __iter__(self) -> Iterator[T]:
        # Ranks that were made before they knew of each other would all deliver the same rows.
        self._membership.check_still(self._world)
        iterator = super().__iter__()
        self._begin_watch()
        return iterator

    def _begin_watch(self) -> None:
        """Look from here on at the other ranks, where there are any, and no exchange tells of them."""
        running, ranks = distributed(), self._membership.alike()
        if running is None or len(ranks) < 2:
            return
        state = self.state_dict()
        if "cursors" in state:
            return
        if self._begins is None:
            self._begins = Begins(ranks, running.get_rank())
        self._watch.begin(self._begins.note(state))

    def _deliver(self, taken: Taken) -> T:
        self._watch.pass_batch()
        return super()._deliver(taken)

    def close(self) -> None:
        self._watch.close()
        super().close()
