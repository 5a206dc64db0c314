"""Shuffle: another order of the rows in every epoch, as arithmetic."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from connectors.contract import Json
from dataflow.errors import InternalError, PlanError
from dataflow.graph.block import Block
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register
from dataflow.order import stream
from dataflow.order.permute import permutation
from dataflow.order.philox import key_of
from dataflow.order.stream import Stream

__all__ = ["OutputShuffle", "Shuffle", "parse_bytes"]

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def parse_bytes(text: str, what: str) -> int:
    """A size as "64MB", "1.5 GiB" or "4096" in bytes.

    Raises:
        PlanError: the text is no size over 0.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmMgG]?i?[bB]?)\s*", text)
    if match is None or match[2].lower() not in _UNITS or float(match[1]) <= 0:
        raise PlanError(f"{what}={text!r} is no size.", hint="write it as '64MB' or '1GiB'")
    return int(float(match[1]) * _UNITS[match[2].lower()])


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
            if self.window != "full":
                parse_bytes(self.window, "window")
        elif not isinstance(self.window, int) or isinstance(self.window, bool) or self.window < 1:
            raise PlanError(
                f"shuffle(window={self.window!r}) is no window.",
                hint="use rows, as 10_000, bytes, as '64MB', or 'full'",
            )

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
        return Traits(kernel=True, keeps_rows=False, row_wise=False, whole_window=True)

    @property
    def window_size(self) -> int | str:
        return self.window

    def apply(self, block: Block, draw: Draw) -> Block:
        flat = block.ids.reshape(block.rows, -1)
        key = key_of(draw.seed, draw.turn, "shuffle.outputs")
        # The sub-numbers of nested flat_maps make one counter word; 2^20 outputs of one row stay distinct.
        subs = np.zeros(block.rows, np.int64)
        for level in range(1, flat.shape[1]):
            subs = (subs << 20) + flat[:, level]
        shuffled = block.take(permutation(key, flat[:, 0], subs))
        # The cursor of an output is its place among the window's outputs, so that all count from row 0.
        return Block(
            shuffled.columns, shuffled.ids, np.zeros(block.rows, np.int64), owned=True, bad=block.bad
        )
