"""How pixels are averaged where an image is resized."""

from __future__ import annotations

from typing import Final, Literal, get_args

from dataflow.errors import PlanError, near

__all__ = ["SMOOTH", "Filter", "WarpFilter", "check_filter", "check_warp_filter"]

Filter = Literal["bilinear", "bicubic", "area", "nearest"]
# Their result hardly tells whether pixels were averaged before, and their boxes may end between pixels.
SMOOTH: Final = ("bilinear", "bicubic")
# Where an image is turned or sheared.
WarpFilter = Literal["nearest", "bilinear"]


def check_filter(step: str, filter: str) -> None:
    """There is such a filter.

    Raises:
        PlanError: there is none; near matches are named.
    """
    _check(step, filter, get_args(Filter))


def check_warp_filter(step: str, filter: str) -> None:
    """Images can be turned and sheared with such a filter.

    Raises:
        PlanError: they cannot.
    """
    _check(step, filter, get_args(WarpFilter))


def _check(step: str, filter: str, known: tuple[str, ...]) -> None:
    if str(filter) not in known:
        raise PlanError(
            f"{step}: filter {filter!r} is unknown.", hint=near(str(filter), known, what="filter")
        )
