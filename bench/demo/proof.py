"""Whether the ids before the kill and after the resume are those of the uninterrupted run, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connectors.contract import Json

__all__ = ["Proof", "prove"]

Record = Mapping[str, Any]
FORMATS = ("images", "text")


@dataclass(frozen=True)
class Proof:
    """How many ids were compared, and the first step that differs: None where the proof holds."""

    steps_before: int
    steps_after: int
    ids: int
    differs: str | None

    @property
    def holds(self) -> bool:
        return self.differs is None

    def to_json(self) -> dict[str, Json]:
        """The proof as plain data."""
        return {
            "holds": self.holds, "steps_before": self.steps_before, "steps_after": self.steps_after,
            "ids_compared": self.ids, "differs": self.differs,
        }  # fmt: skip


def prove(
    uninterrupted: Sequence[Record], before: Sequence[Sequence[Record]], after: Sequence[Sequence[Record]], *,
    saved_at: int,
) -> Proof:  # fmt: skip
    """Compare the ids of every step, those of the ranks put one behind the other, with the uninterrupted run.

    `before` and `after` have the records of each rank; of `before` count the `saved_at` steps that the state holds.
    Steps that were done again after the kill must be the same both times.
    """
    wanted = {record["step"]: record for record in uninterrupted}
    first, again = _by_step(before), _by_step(after)
    joined = {step: ranks for step, ranks in first.items() if step < saved_at} | again
    ids = 0
    problem = None
    if sorted(joined) != sorted(wanted):
        missing = sorted(wanted.keys() ^ joined.keys())
        problem = f"step {missing[0]} is not in both runs"
    for step, ranks in [*sorted(joined.items()), *((s, r) for s, r in first.items() if s >= saved_at)]:
        for kind in FORMATS:
            delivered = [id_ for record in ranks for id_ in record[kind]]
            ids += len(delivered)
            # Of a step at which it was killed, some ranks may have said nothing any more.
            whole = step < saved_at or len(ranks) == len(before) or ranks is again.get(step)
            if whole and step in wanted and delivered != wanted[step][kind]:
                problem = problem or f"step {step}: other {kind} than without the interruption"
    return Proof(sum(step < saved_at for step in first), len(again), ids, problem)


def _by_step(ranks: Sequence[Sequence[Record]]) -> dict[int, list[Record]]:
    """By step, the records of the ranks in their order."""
    steps: dict[int, list[Record]] = {}
    for records in ranks:
        for record in records:
            steps.setdefault(record["step"], []).append(record)
    return steps
