"""DaliImages: what DALI can make, of a chain of steps and of one image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dataflow.ops.images.step import OneImageStep
from loaders.dali.recipe import recipe_of

__all__ = ["DaliImages"]


@dataclass(frozen=True, kw_only=True)
class DaliImages:
    """An `ImageBackend`. `whole`: what it makes stays on a GPU, so that it does all steps of a chain or none."""

    whole: bool

    def reach(self, steps: Sequence[OneImageStep]) -> int:
        """How many steps, from the first on, DALI does as they are defined."""
        recipe = recipe_of(tuple(steps))
        return 0 if recipe is None else recipe.done

    def does(self, steps: Sequence[OneImageStep]) -> int:
        reach = self.reach(steps)
        return 0 if self.whole and reach < len(steps) else reach

    def fits(self, steps: Sequence[OneImageStep], size: tuple[int, int], params: Sequence[Any]) -> bool:
        recipe = recipe_of(tuple(steps))
        return recipe is not None and recipe.fits(size, params)
