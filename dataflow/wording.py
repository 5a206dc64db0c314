"""Words for people: counts with the right plural, and what an error says of itself."""

from __future__ import annotations

__all__ = ["counted", "plural", "text_of"]

_HISSING = ("s", "x", "ch", "sh")


def plural(one: str) -> str:
    """The plural of a regular noun: rows, batches."""
    return f"{one}es" if one.endswith(_HISSING) else f"{one}s"


def counted(number: int, one: str, many: str | None = None) -> str:
    """So many of a thing, as "1 row" or "12,000 rows".

    `many` is what stands behind other numbers than 1; by default the regular plural of `one`.
    """
    return f"{number:,} {one if number == 1 else many or plural(one)}"


def text_of(error: BaseException) -> str:
    """What an error says of itself. Those of users' code may fail at that, too: then what a traceback shows."""
    try:
        return str(error)
    except Exception:
        return "<exception str() failed>"
