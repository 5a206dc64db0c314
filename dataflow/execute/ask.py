"""Questions to a pipeline that run it: how many rows, which row, how well mixed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import numpy as np
import numpy.typing as npt

from dataflow.errors import PlanError
from dataflow.execute.compile import Plan, compile_plan
from dataflow.execute.row_names import located, place_finder
from dataflow.execute.sample import FileOrder
from dataflow.given import as_whole
from dataflow.graph.block import Block
from dataflow.graph.node import Node, distinct_sources, split_at_batch, walk
from dataflow.graph.rows import Row, listed
from dataflow.index.index import Index
from dataflow.order.epoch import EpochOrder
from dataflow.order.quality import Quality, shuffle_quality
from dataflow.order.windows import Window

__all__ = ["classes", "count", "counted", "quality", "row"]

# An even sample of a long order has the quality of all of it.
_QUALITY_ROWS = 1_000_000
_QUALITY_WINDOWS = 256


def count(node: Node, seed: int) -> int:
    """Rows of one epoch in front of batch."""
    plan = _plan(node, seed)
    if plan.lengths_known:
        return plan.stream.total
    passes = plan.stream.passes
    # Random operators give another number of rows in every pass.
    random = any(step.traits.random for step in walk(plan.root))
    rows = 0
    with closing(FileOrder(plan.root, plan.stream, seed)) as order:
        for turn in range(passes if random else 1):
            for _, _, block in order.blocks(turn=turn):
                _refuse_bad(block, plan)
                rows += block.rows
    return rows if random else rows * passes


def counted(node: Node) -> Node:
    """The same steps, filters by function found out beforehand.

    A step stays what it is where nothing below it changes, so that what its pass has found stays too.

    Raises:
        PlanError: a filter stands behind a random operator, or one that makes several rows of one.
    """
    feeds = [counted(feed) for feed in node.inputs]
    same = all(made is feed for made, feed in zip(feeds, node.inputs, strict=True))
    made = node if same else node.over(*feeds)
    return made.counted_before() if made.traits.filters and not made.traits.selects else made


def _no_classes(indexes: Sequence[Index]) -> PlanError:
    for index in indexes:
        reason = index.meta.get("no_classes")
        if reason is not None:
            return PlanError(
                f"there are no class names: {reason}",
                hint="images in folders/of/their/class/name.jpg have classes, and a column `label`",
            )
    formats = ", ".join(sorted({index.connector.name for index in indexes}))
    return PlanError(
        f"there are no class names: the data has none in the format {formats}.",
        hint="keep the names beside the labels, in a list of your own",
    )


def classes(node: Node) -> tuple[str, ...]:
    """The class names in the order of their labels, as the sources' indexes have them.

    Raises:
        PlanError: no source has any, or they differ.
    """
    indexes = [source.index for source in distinct_sources(node)]
    metas = [index.meta.get("classes") for index in indexes]
    found = {tuple(map(str, names)) for names in metas if isinstance(names, list)}
    if not found:
        raise _no_classes(indexes)
    if len(found) > 1:
        one, other = sorted(found)[:2]
        raise PlanError(
            f"the sources have different classes: {one!r} and {other!r}.",
            hint="give all of them the same with format=Folder(classes=(...))",
        )
    return found.pop()


def row(node: Node, number: int, seed: int) -> Row:
    """Row `number` in file order at epoch 0."""
    plan = _plan(node, seed)
    if not plan.lengths_known:
        raise PlanError(
            "pipe[i]: which row is number i is known only when all in front of it have run.",
            hint="use counted() for filters; flat_map has no row numbers",
        )
    asked = as_whole(number, f"pipe[{number!r}] is no row number.", hint="give a whole number")
    place = asked + plan.stream.n if asked < 0 else asked
    if not 0 <= place < plan.stream.n:
        raise IndexError(f"row {asked} of {plan.stream.n}")
    with closing(FileOrder(plan.root, plan.stream, seed)) as order:
        block = order.read(place, place + 1)
    _refuse_bad(block, plan)
    return listed(block.columns, block.rows)[0]


def _refuse_bad(block: Block, plan: Plan) -> None:
    if block.bad:
        raise located(block.bad[0], place_finder(plan.indexes))


def quality(node: Node, seed: int) -> Quality:
    """The shuffle quality of epoch 0 with one lane: of all source rows, or of an even sample of many.

    Raises:
        PlanError: one source row may become several, so that the order of source rows says little.
    """
    for step in walk(node):
        if step.traits.many:
            raise PlanError(
                f"shuffle_quality() behind {step.label()}.", hint="ask the pipeline in front of it"
            )
    plan = _plan(node, seed)
    order = EpochOrder(plan.stream, seed=seed, lanes=1, turn=0, chunk_rows=1 << 16)
    windows = list(order.windows(0))
    chosen = windows[:: max(1, len(windows) // _QUALITY_WINDOWS)]
    rows = sum(window.rows for window in chosen)
    every = max(1, rows // _QUALITY_ROWS)
    positions = [_positions(window.resolve())[::every] for window in chosen]
    return shuffle_quality(np.concatenate(positions) if positions else np.zeros(0, np.int64))


def _plan(node: Node, seed: int) -> Plan:
    """The plan of the steps in front of batch."""
    return compile_plan(split_at_batch(node)[0], seed)


def _positions(window: Window) -> npt.NDArray[np.int64]:
    """Numbers in file order, one for each row of a window as it is delivered: leaf, then source row."""
    spans = [np.arange(s.lo, s.hi) if s.rows is None else s.rows for s in window.spans]
    numbers = np.concatenate(
        [(span.leaf << 40) + rows for span, rows in zip(window.spans, spans, strict=True)]
    )
    return numbers if window.order is None else numbers[window.order]
