"""Sizes in bytes as people write them."""

from __future__ import annotations

import re

from dataflow.errors import PlanError

__all__ = ["in_bytes", "parse_bytes"]

# No machine has more; windows of so many rows still fit 64 bits, times the lanes.
MOST_BYTES = 1 << 50

_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def parse_bytes(text: str, what: str) -> int:
    """A size as "64MB", "1.5 GiB" or "4096B" in bytes; `what` is the argument that has it.

    Raises:
        PlanError: the text is no size over 0 and up to a pebibyte, or has no unit.
    """
    if text.strip().isdecimal():
        raise PlanError(
            f"{what}={text!r} has no unit.", hint=f"use '{text.strip()}B' or {text.strip()} for bytes"
        )
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmMgG]?i?[bB]?)\s*", text)
    if match is None or match[2].lower() not in _UNITS or float(match[1]) <= 0:
        raise PlanError(f"{what}={text!r} is no size.", hint="write it as '64MB' or '1GiB'")
    size = float(match[1]) * _UNITS[match[2].lower()]
    if size > MOST_BYTES:
        raise PlanError(f"{what}={text!r} is more than any memory.", hint="write it as '64MB' or '1GiB'")
    return int(size)


def in_bytes(size: int | str, what: str) -> int:
    """A number of bytes, or a size that people wrote, in bytes.

    Raises:
        PlanError: a text is no size over 0.
    """
    return parse_bytes(size, what) if isinstance(size, str) else size
