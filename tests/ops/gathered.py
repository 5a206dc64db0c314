"""All rows that a pipeline gives in one epoch, for comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import dataflow as flow

__all__ = ["numbers", "rows", "values"]


def numbers(count: int = 20, first: int = 0, column: str = "x") -> flow.Pipeline:
    """A source with one column that counts."""
    return flow.from_columns({column: np.arange(first, first + count)})


def rows(pipe: flow.Pipeline, epoch: int = 0, **options: Any) -> list[dict[str, Any]]:
    """The rows of one epoch as plain Python values, in the order of one lane."""
    with pipe.batch(1, lanes=1).loader(output="arrow", **options) as loader:
        loader.set_epoch(epoch)
        whole = pa.Table.from_batches(list(loader))
    found: list[dict[str, Any]] = whole.to_pylist()
    return found


def values(pipe: flow.Pipeline, column: str = "x", epoch: int = 0, **options: Any) -> list[Any]:
    """One column of one epoch."""
    return [row[column] for row in rows(pipe, epoch, **options)]
