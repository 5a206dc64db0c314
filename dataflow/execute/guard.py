"""`guarded`: a step run on a block so that a row for which it fails costs that row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from dataflow.errors import InternalError, PlanError
from dataflow.graph.block import BadSample, Block, concat_blocks
from dataflow.graph.calls import check_wanted, fail, first_id, stage_error
from dataflow.graph.node import Node

__all__ = ["emptied", "guarded"]


def guarded(node: Node, kernel: Callable[[Block], Block], block: Block, isolate: bool) -> Block:
    """Run what `node` does to a block; where it fails, halve the block until the bad rows stand alone.

    Raises:
        PlanError, InternalError: the fault is not that of a row.
    """
    check_wanted()
    try:
        return kernel(block)
    except (InternalError, PlanError):
        raise
    except Exception as error:
        if not isolate and node.traits.holds_gil:
            # A user's function is not run again to find the row: the error is due with the first of them.
            wrapped = stage_error(node.title, error)
            samples = zip(
                block.origin.tolist(), block.ids.reshape(block.rows, -1)[:, 0].tolist(), strict=True
            )
            bad_rows = tuple(
                BadSample(origin, sample, node.title, wrapped, block.rows) for origin, sample in samples
            )
            empty = emptied(block.slice(0, 0), node)
            return Block(empty.columns, empty.ids, empty.origin, bad=bad_rows)
        if node.traits.whole_window or block.rows == 0:
            fail(node.title, error, sample_id=first_id(block, 0) if block.rows == 1 else None)
        if block.rows == 1:
            sample = first_id(block, 0)
            bad = BadSample(
                int(block.origin[0]), sample, node.title, stage_error(node.title, error, sample_id=sample)
            )
            empty = emptied(block.slice(0, 0), node)
            return Block(empty.columns, empty.ids, empty.origin, bad=(bad,))
        middle = block.rows // 2
        halves = [block.slice(0, middle), block.slice(middle, block.rows)]
        return concat_blocks([guarded(node, kernel, half, isolate) for half in halves])


def emptied(block: Block, node: Node) -> Block:
    """No rows, with the columns that `node` gives: user functions are never called for nothing."""
    if node.schema is None:
        raise InternalError(f"the columns of {node.label()} are not known.")
    columns = {field.name: pa.nulls(0, field.type) for field in node.schema}
    ids = block.ids
    if node.traits.many:
        axes = 1 if ids.ndim == 1 else ids.shape[1]
        ids = np.zeros((0, axes + 1), np.int64)
    return Block(columns, ids, block.origin, bad=block.bad)
