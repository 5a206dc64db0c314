"""Says in the log how many rows `remainder="drop"` leaves out of an epoch."""

from __future__ import annotations

import logging

from dataflow.execute.setup import Setup
from dataflow.wording import counted

__all__ = ["say_left_out", "say_left_over"]

logger = logging.getLogger("dataflow.execute")


def say_left_out(setup: Setup) -> None:
    """One line where an epoch has more rows than its whole batches deliver, and the number is known beforehand.

    At INFO, for it is what the default does in almost every run, and below one batch. Rank 0 speaks for all.
    """
    steps, batch = setup.steps, setup.batching.batch
    if steps is None or steps.endless or setup.batching.remainder != "drop" or setup.world.rank:
        return
    left = steps.rows - steps.count * batch
    if left:
        rows = counted(steps.rows, "row")
        logger.info(
            "%s left out of every epoch: too few for a batch of %d; remainder='pad' or 'keep' delivers them",
            counted(left, f"of {rows} is", f"of {rows} are"),
            batch,
        )


def say_left_over(epoch: int, rows: int, batch: int) -> None:
    """The same line where only the end of an epoch has told how many rows its batches leave."""
    logger.info(
        "epoch %d leaves out its last %s, as other epochs do: too few for a batch of %d; "
        "remainder='pad' or 'keep' delivers them",
        epoch,
        counted(rows, "row"),
        batch,
    )
