"""Where a loader stands: the place of the next batch, and the places of the batches delivered last."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from connectors.contract import Json
from dataflow.errors import PlanError
from dataflow.given import as_whole
from dataflow.wording import counted

__all__ = ["Place", "Position"]

# Delivered batches whose state can still be asked for.
_KEPT = 64


@dataclass(frozen=True, slots=True)
class Place:
    """What the next batch will be, and what a state keeps beside that: cursors (`after`) and bad rows so far."""

    epoch: int
    step: int
    after: Mapping[str, Json] | None
    errors: int


class Position:
    """The place of the next batch. `settled`: the next `for` begins there, not behind an epoch broken off."""

    def __init__(self, place: Place) -> None:
        self._places: deque[Place] = deque([place], maxlen=_KEPT + 1)
        self.settled = True

    @property
    def place(self) -> Place:
        """Of the next batch."""
        return self._places[-1]

    def start(self, epoch: int, errors: int) -> None:
        """Go to the start of an epoch, without a delivery."""
        self._places[-1] = Place(epoch, 0, None, errors)
        self.settled = True

    def pass_batch(self, behind: Place) -> None:
        """Go to the place behind a batch that was delivered."""
        self._places.append(behind)
        self.settled = behind.step == 0  # it was the last of its epoch

    def before(self, lag: int) -> Place:
        """The place as it was `lag` delivered batches ago.

        Raises:
            PlanError: `lag` is negative, or more batches than are kept or were delivered.
        """
        back = as_whole(
            lag,
            f"state_dict(lag={lag!r}) is no number of batches.",
            hint=f"give a whole number from 0, for the batch delivered last, to {_KEPT}",
            least=0,
        )
        if back < len(self._places):
            return self._places[-1 - back]
        kept = len(self._places) - 1
        if not kept:
            raise PlanError(
                f"state_dict(lag={lag!r}): no batch was delivered yet.",
                hint="lag=0 is the place of the first",
            )
        raise PlanError(
            f"state_dict(lag={lag!r}): the places of the last {counted(kept, 'batch')} are kept.",
            hint=f"save within {_KEPT} batches",
        )
