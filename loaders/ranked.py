"""A loader that stays true to the rank it was made for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import pyarrow as pa

from connectors.contract import Json
from dataflow.execute.agree import Gathers
from dataflow.execute.assemble import HostBatch
from dataflow.execute.loader import Loader
from dataflow.graph.node import Node
from dataflow.options import LoaderOptions
from loaders.membership import Membership

__all__ = ["RankedLoader"]

T = TypeVar("T")


class RankedLoader(Loader[T]):
    """The loader of one rank, which refuses to run where the process has become another one since it was made.

    Args:
        membership: what says which rank this is.
    """

    def __init__(
        self, node: Node, seed: int, options: LoaderOptions, membership: Membership,
        convert: Callable[[HostBatch, pa.Schema | None], T],
        gathers: Callable[[Mapping[str, Json]], Gathers] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(node, seed, options, membership.world(), convert, gathers)
        self._membership = membership

    def __iter__(self) -> Iterator[T]:
        # Ranks that were made before they knew of each other would all deliver the same rows.
        self._membership.check_still(self._world)
        return super().__iter__()
