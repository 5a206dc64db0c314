"""How long the lanes of a mixture are, from where each source's rows lie in the schedule.

Row k of lane l takes the source at index k + l of the schedule, from lane l of that source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from dataflow.order.lanes import below
from dataflow.order.mixture import Schedule

__all__ = ["Occurrences", "Until", "mixture_lengths"]

Until = Literal["first", "all"]


class Occurrences:
    """Where the rows of each source lie: a head that holds all changes of weights, then one period for ever.

    Under whole weights of sum W the schedule has the period W as soon as the sources are owed the same W rows
    apart. Making it works through at least W rows, at about a microsecond each.
    """

    def __init__(self, schedule: Schedule) -> None:
        last = schedule.changes[-1]
        self._period = sum(last.weights)
        head, counts = schedule.run(schedule.zero, last.index)
        cycle, after = schedule.run(counts, self._period)
        while schedule.owed(after) != schedule.owed(counts):
            head, counts = np.concatenate([head, cycle]), after
            cycle, after = schedule.run(counts, self._period)
        sources = range(len(last.weights))
        self._head = [np.flatnonzero(head == source) for source in sources]
        self._cycle = [np.flatnonzero(cycle == source) + len(head) for source in sources]

    def nth(self, source: int, number: int) -> int:
        """The index in the schedule of row `number` (0: the first) of a source."""
        head, cycle = self._head[source], self._cycle[source]
        if number < len(head):
            return int(head[number])
        turns, place = divmod(number - len(head), len(cycle))
        return turns * self._period + int(cycle[place])


def mixture_lengths(schedule: Schedule, sizes: Sequence[int], lanes: int, until: Until) -> tuple[int, ...]:
    """The rows of every lane of an epoch of a mixture of sources of `sizes` rows.

    A lane ends before the first row whose source has none left in it ("first"), or when every source has been
    through once in it ("all").
    """
    where = Occurrences(schedule)
    starts = [schedule.zero]
    for _ in range(1, lanes):
        starts.append(schedule.behind(starts[-1], 1))
    out = []
    for lane, start in enumerate(starts):
        ends = [before + below(size, lane, lanes) for before, size in zip(start, sizes, strict=True)]
        if until == "first":
            end = min(where.nth(source, rows) for source, rows in enumerate(ends))
        else:
            behind = [where.nth(s, rows - 1) + 1 for s, rows in enumerate(ends) if rows > start[s]]
            end = max([lane, *behind])
        out.append(end - lane)
    return tuple(out)
