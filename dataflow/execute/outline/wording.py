"""Numbers as they stand in the lines of an outline."""

from __future__ import annotations

__all__ = ["between", "counted", "megabytes"]


def between(fewest: int, most: int) -> str:
    """A number, or the two between which it lies."""
    return f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"


def counted(number: int, what: str) -> str:
    """So many of a thing whose plural is regular."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def megabytes(count: float) -> str:
    """Bytes, as the errors about memory say them."""
    return f"{count / 1e6:,.0f} MB"
