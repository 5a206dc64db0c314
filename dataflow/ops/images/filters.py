"""How pixels are averaged where an image is resized."""

from __future__ import annotations

from typing import Literal, get_args

from dataflow.errors import PlanError, near

__all__ = ["Filter", "check_filter"]

Filter = Literal["bilinear", "bicubic", "area", "nearest"]


def check_filter(step: str, filter: str) -> None:
    """There is such a filter.

    Raises:
        PlanError: there is none; near matches are named.
    """
    if filter not in get_args(Filter):
        raise PlanError(
            f"{step}: filter {filter!r} is unknown.", hint=near(str(filter), get_args(Filter), what="filter")
        )
