"""The lanes that one rank runs in one epoch: those that it owns, and those of others that its share reaches into."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from dataflow.execute.agree import Offer
from dataflow.execute.outputs import Cursor, LaneOutputs
from dataflow.execute.read_ahead import ReadAhead
from dataflow.execute.segment import Segment
from dataflow.graph.block import BadSample

__all__ = ["OpenLanes"]


class OpenLanes:
    """Lanes that are read ahead together, within the same bounds.

    Args:
        make: the outputs of a lane from a cursor on.
        ahead: starts the lanes' windows.
        own: the lanes that this rank owns, which stay open to the end.
    """

    def __init__(
        self, make: Callable[[int, Cursor], LaneOutputs], ahead: ReadAhead, epoch: int, own: Collection[int]
    ) -> None:
        self._make, self._ahead, self._epoch, self._own = make, ahead, epoch, own
        self._open: dict[int, LaneOutputs] = {}

    def keep(self, foreign: Collection[int], cursors: Sequence[Cursor]) -> None:
        """Have the own lanes and `foreign` ones open, new ones at their cursor, and let go of all others."""
        needed = {*self._own, *foreign}
        for lane in [lane for lane in self._open if lane not in needed]:
            self._open.pop(lane).close()
        new = {lane: self._make(lane, cursors[lane]) for lane in sorted(needed) if lane not in self._open}
        self._open.update(new)
        self._ahead.add(self._epoch, [outputs.feed for outputs in new.values()])
        self._ahead.top_up()

    def offers(self, cap: int, bearable: int | None = None) -> tuple[Offer, ...]:
        """What each own lane can give, up to `cap` rows, and behind `bearable` bad ones nothing; waits for them."""
        self._ahead.top_up()
        return tuple(self._open[lane].offer(cap, bearable) for lane in self._own)

    def unbearable(self, lane: int) -> list[BadSample]:
        """The bad rows of an own lane up to the first that is not borne; none where all are."""
        return self._open[lane].unbearable()

    def error(self, lane: int) -> Exception | None:
        """What ended a lane here, if anything did."""
        outputs = self._open.get(lane)
        return None if outputs is None else outputs.error

    def take(self, counts: Sequence[int]) -> Mapping[int, Sequence[Segment]]:
        """The next `counts[l]` rows of every lane l that is open, in lane order; waits for them.

        Raises:
            DataflowError: what making them raised.
        """
        self._ahead.top_up()
        return {lane: outputs.take(counts[lane]) for lane, outputs in sorted(self._open.items())}

    def passed_bad(self) -> list[BadSample]:
        """The bad rows of own lanes that have been passed and not been reported."""
        passed = {lane: outputs.passed_bad() for lane, outputs in self._open.items()}
        return [bad for lane in self._own for bad in passed[lane]]

    def left_bad(self) -> list[BadSample]:
        """The bad rows of own lanes, which have ended, that no further batch reports."""
        return [bad for lane in self._own for bad in self._open[lane].left_bad()]

    def close(self) -> None:
        """Let go of all lanes; may be called twice."""
        for outputs in self._open.values():
            outputs.close()
        self._open.clear()
