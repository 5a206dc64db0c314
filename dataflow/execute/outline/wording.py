"""Numbers as they stand in the lines of an outline."""

from __future__ import annotations

__all__ = ["between", "megabytes"]


def between(fewest: int, most: int) -> str:
    """A number, or the two between which it lies."""
    return f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"


def megabytes(count: float) -> str:
    """Bytes, as the errors about memory say them."""
    return f"{count / 1e6:,.0f} MB"
