"""How much of everything the demo makes and does."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.errors import PlanError

__all__ = ["Size"]


@dataclass(frozen=True, kw_only=True)
class Size:
    """The demo's sizes. Batches are global, and multiples of 6 so that one, two and three ranks share them evenly."""

    steps: int = 36
    epochs: int = 2
    image_batch: int = 96
    text_batch: int = 384
    lanes: int = 6
    image_shards: int = 8
    text_files: int = 4
    row_bytes: int = 129
    pixels: int = 48
    save_every: int = 8

    def __post_init__(self) -> None:
        for name in ("image_batch", "text_batch"):
            if getattr(self, name) % self.lanes or self.lanes % 6:
                raise PlanError(
                    f"Size({name}={getattr(self, name)}) with {self.lanes} lanes.",
                    hint="use multiples of 6, the batches also of lanes",
                )
        if self.saved_at < 1 or not self.killed_at <= self.held_at < self.total_steps:
            raise PlanError(
                f"Size(steps={self.steps}, save_every={self.save_every}) has no two steps behind a state.",
                hint="save every 3 steps or more, and once before half-way",
            )

    @property
    def images(self) -> int:
        """Images in all; one is left over, to show that the last rows of an epoch are dropped."""
        return self.steps * self.image_batch + 1

    @property
    def text_rows(self) -> int:
        return self.steps * self.text_batch + 1

    @property
    def total_steps(self) -> int:
        return self.steps * self.epochs

    @property
    def killed_at(self) -> int:
        """The steps after which the first training is killed: half-way, two steps behind a saved state.

        Every rank has then told of the first of the two, since none ends the second without the others.
        """
        return self.saved_at + 2

    @property
    def held_at(self) -> int:
        """The step at which the first training waits if it is not killed before: it must not save another state."""
        return self.saved_at + self.save_every - 1

    @property
    def saved_at(self) -> int:
        """The steps that the last saved state holds."""
        return self.total_steps // 2 // self.save_every * self.save_every
