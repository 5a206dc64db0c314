"""Shuffle: another order of the rows in every epoch, as arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from connectors.contract import Json
from dataflow.byte_sizes import parse_bytes
from dataflow.errors import InternalError, PlanError
from dataflow.given import as_whole
from dataflow.graph.block import Block
from dataflow.graph.draw import Draw, Turn
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register
from dataflow.index.assemble import MOST_ROWS
from dataflow.order import stream
from dataflow.order.permute import permutation
from dataflow.order.philox import key_of
from dataflow.order.stream import Stream

__all__ = ["OutputShuffle", "Shuffle", "output_order"]


@register("shuffle")
@dataclass(frozen=True, kw_only=True, eq=False)
class Shuffle(Node):
    """Permute the fragments, then the rows inside windows of `window` rows or bytes.

    "full" permutes single rows. A window in bytes becomes a number of rows when training starts for the first
    time, and stays that in the loader's state.
    """

    window: int | str = "64MB"

    def __post_init__(self) -> None:
        if isinstance(self.window, str):
            if self.window.strip().isdecimal():
                number = self.window.strip()
                raise PlanError(
                    f"shuffle(window={self.window!r}) is a text without a unit.",
                    hint=f"use shuffle({number}) for rows, shuffle('{number}B') for bytes",
                )
            if self.window != "full":
                parse_bytes(self.window, "window")
        else:
            said = f"shuffle(window={self.window!r}) is no window."
            hint = f"use rows (up to {MOST_ROWS:,}), as 10_000, bytes, as '64MB', or 'full'"
            rows = as_whole(self.window, said, hint=hint, least=1, below=MOST_ROWS + 1)
            object.__setattr__(self, "window", rows)

    @property
    def traits(self) -> Traits:
        return Traits(changes_order=True, shuffles=True)

    @property
    def window_size(self) -> int | str:
        return self.window

    def with_window(self, window: int | str) -> Node:
        return replace(self, window=window)

    def for_outputs(self) -> Node:
        if self.window == "full":
            raise PlanError("shuffle('full') behind flat_map.", hint="give a window, as shuffle('64MB')")
        return OutputShuffle(inputs=self.inputs, window=self.window)

    def order_fact(self) -> Json:
        return "full" if self.window == "full" else "window"

    def arrange(self, streams: Sequence[Stream]) -> Stream:
        if isinstance(self.window, str) and self.window != "full":
            raise InternalError(f"the window {self.window!r} has not become rows yet.")
        return stream.shuffle(streams[0], self.window)  # type: ignore[arg-type]


@register("output_shuffle")
@dataclass(frozen=True, kw_only=True, eq=False)
class OutputShuffle(Node):
    """Permute what one window of source rows gave.

    A rule puts it in the place of `shuffle` behind an operator that makes several rows of one.
    """

    in_specs: ClassVar[bool] = False

    window: int | str

    @property
    def traits(self) -> Traits:
        return Traits(kernel=True, keeps_rows=False, whole_window=True)

    @property
    def window_size(self) -> int | str:
        return self.window

    def apply(self, block: Block, draw: Draw) -> Block:
        ids = block.ids.reshape(block.rows, -1)
        shuffled = block.take(output_order(ids, draw.seed, draw.turn))
        # The cursor of an output is its place among the window's outputs, so that all count from row 0.
        return replace(shuffled, origin=np.zeros_like(block.origin), permuted_by=ids.shape[1])


def output_order(ids: npt.NDArray[np.int64], seed: int, turn: Turn) -> npt.NDArray[np.int64]:
    """The permutation (int64, (rows,)) of what the rows of one window gave.

    `ids` are the sample ids and sub-numbers, int64 (rows, k), in the order of the rows and of the outputs of each.
    """
    # The sub-numbers of nested flat_maps make one counter word; 2^20 outputs of one row stay distinct.
    subs = np.zeros(len(ids), np.int64)
    for level in range(1, ids.shape[1]):
        subs = (subs << 20) + ids[:, level]
    return permutation(key_of(seed, turn, "shuffle.outputs"), ids[:, 0], subs)
