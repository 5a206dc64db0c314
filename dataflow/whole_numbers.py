"""Whole numbers among the values that users give: True, which Python takes for 1, is none."""

from __future__ import annotations

from typing import TypeGuard

__all__ = ["is_whole"]


def is_whole(value: object, least: int) -> TypeGuard[int]:
    """Whether a value is a whole number from `least` up."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
