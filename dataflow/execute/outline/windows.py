"""The fragments of a pass, and the windows and slices that they make in epoch 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dataflow.execute.compile import Plan
from dataflow.execute.outline.wording import between
from dataflow.graph.node import walk
from dataflow.order.epoch import EpochOrder
from dataflow.order.slices import units_of
from dataflow.order.stream import Stream
from dataflow.wording import counted

__all__ = ["LongFragments", "WindowFacts", "windows_of"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class LongFragments:
    """Fragments longer than the window, and the slices into which they are cut."""

    fragments: int
    slices: int

    def line(self, fate: str) -> str:
        """Both, and what becomes of the slices."""
        return f"{counted(self.fragments, 'fragment')} longer than the window: {counted(self.slices, 'slice')}, {fate}"


@dataclass(frozen=True, kw_only=True)
class WindowFacts:
    """What one pass is cut into; an epoch has `passes` of them.

    `windows` counts those of all lanes in the first pass, and one lane has `fewest_windows` to `most_windows`; None
    where rows come in no windows, or lanes are not known. `before_filters`: all counts are as if no condition on
    columns left rows out.
    """

    passes: int
    fragments: int
    lanes: int | None
    windows: int | None
    fewest_windows: int | None
    most_windows: int | None
    permuted: LongFragments
    streamed: LongFragments
    before_filters: bool

    def lines(self) -> list[str]:
        """One fact a line."""
        many = self.lanes is not None and self.lanes > 1
        lines = [f"fragments: {self.fragments:,}" + (f", about {self._in_a_lane():,} a lane" if many else "")]
        if self.windows is not None and self.fewest_windows is not None and self.most_windows is not None:
            where = "epoch 0" if self.passes == 1 else f"the first of {self.passes:,} passes"
            each = f", {between(self.fewest_windows, self.most_windows)} a lane" if many else ""
            lines.append(f"windows: {self.windows:,} in {where}{each}")
        if self.permuted.fragments:
            lines.append(self.permuted.line("permuted like fragments"))
        if self.streamed.fragments:
            lines.append(self.streamed.line("read one behind the other as a stream"))
        if self.before_filters:
            lines.append("all source rows count here: what a filter keeps is found when a loader is made")
        return lines

    def _in_a_lane(self) -> int:
        # Lanes are cut by rows: one that has a part of a fragment reads it too.
        return max(min(1, self.fragments), round(self.fragments / (self.lanes or 1)))


def windows_of(plan: Plan, lanes: int | None) -> WindowFacts:
    """Fragments and windows; works out the order of the first pass."""
    stream = plan.stream
    windows = _counted(plan, lanes)
    permuted, streamed = _long_fragments(stream)
    return WindowFacts(
        passes=stream.passes,
        fragments=len(stream.lo),
        lanes=lanes,
        windows=sum(windows) if windows else None,
        fewest_windows=min(windows, default=None),
        most_windows=max(windows, default=None),
        permuted=permuted,
        streamed=streamed,
        before_filters=any(step.traits.selects for step in walk(plan.root)),
    )


def _counted(plan: Plan, lanes: int | None) -> list[int]:
    """The windows of each lane in the first pass of epoch 0; none where there are no windows or lanes."""
    window = plan.output_window if plan.stream.window is None else plan.stream.window
    if lanes is None or not isinstance(window, int):
        return []
    order = EpochOrder(plan.stream, seed=plan.seed, lanes=lanes, turn=0, chunk_rows=window)
    first = order.in_pass(0)
    return [first.borders(lane).count for lane in range(lanes)]


def _long_fragments(stream: Stream) -> tuple[LongFragments, LongFragments]:
    """Those whose slices are permuted, and those whose slices stay together."""
    if not isinstance(stream.window, int):
        return LongFragments(fragments=0, slices=0), LongFragments(fragments=0, slices=0)
    longer = stream.hi - stream.lo > stream.window
    ranges = np.array([leaf.row_ranges for leaf in stream.leaves])[stream.leaf]
    # Without a piece for each, every unit is a whole piece.
    piece = units_of(stream, stream.window).piece

    def some(chosen: Bools) -> LongFragments:
        slices = 0 if piece is None else int(chosen[piece].sum())
        return LongFragments(fragments=int(chosen.sum()), slices=slices)

    return some(longer & ranges), some(longer & ~ranges)
