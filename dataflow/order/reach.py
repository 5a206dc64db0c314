"""Which lanes a rank reads from, where lanes give rows in turn and a batch does not always begin with the same one."""

from __future__ import annotations

from dataflow.order.deal import share

__all__ = ["reach"]


def reach(lanes: int, rows: int, rank: int, world: int) -> range:
    """The places, among `lanes` lanes that all go on, of those from which `rank` can get rows of a batch of `rows`.

    Each lane gives `rows div lanes` of them, and one more where the turn comes to it again: which lanes these are
    changes from batch to batch, and with them where a rank's contiguous share of the rows sorted by lane begins.
    """
    whole, longer = divmod(rows, lanes)
    start, stop = share(rows, rank, world)

    def earliest(lane: int) -> int:
        """The first row of a lane, where as many as possible of the longer ones come behind it."""
        return lane * whole + max(0, longer - (lanes - lane))

    def latest(lane: int) -> int:
        """The row behind the last of a lane, where as many as possible of the longer ones come before that."""
        return (lane + 1) * whole + min(lane + 1, longer)

    first = next((lane for lane in range(lanes) if latest(lane) > start), lanes)
    behind = next((lane for lane in range(first, lanes) if earliest(lane) >= stop), lanes)
    return range(first, behind)
