"""Rows of data as short text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from connectors.contract import Json
from dataflow.wording import counted

__all__ = ["as_json_value", "as_short_text"]

_MOST_LETTERS = 60
_MOST_BYTES = 12


def as_json_value(value: object) -> Json:
    """A value of a row as JSON: bytes as their number and their first ones, what JSON lacks as text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": len(value), "first": bytes(value[:_MOST_BYTES]).hex(" ")}
    if isinstance(value, Mapping):
        return {str(key): as_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json_value(item) for item in value]
    return str(value)


def as_short_text(value: object) -> str:
    """A value of a row on part of a line."""
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{counted(len(value), 'byte')}: {bytes(value[:_MOST_BYTES]).hex(' ')}>"
    if isinstance(value, np.ndarray):
        first = ", ".join(str(item) for item in value.reshape(-1)[:4].tolist())
        more = ", ..." if value.size > 4 else ""
        return f"{value.dtype}{list(value.shape)} [{first}{more}]"
    text = repr(value.tolist() if isinstance(value, np.generic) else value)
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 3] + "..."
