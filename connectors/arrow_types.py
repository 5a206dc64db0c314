"""Names for Arrow's arrays and types where its stubs do not help, and what many ask of a type."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow.types as pt

__all__ = ["Arrow", "Column", "Kind", "is_list", "is_ragged"]

# The stubs of pyarrow know the members of an array, type or scalar only when its class is known statically.
Arrow: TypeAlias = Any
Column: TypeAlias = Arrow  # an array
Kind: TypeAlias = Arrow  # a type


def is_ragged(kind: Kind) -> bool:
    """Whether a type is that of lists of any length."""
    return bool(pt.is_list(kind) or pt.is_large_list(kind))


def is_list(kind: Kind) -> bool:
    """Whether a type is that of lists, of any length or of a fixed one; tensors and maps have types of their own."""
    return is_ragged(kind) or bool(pt.is_fixed_size_list(kind))
