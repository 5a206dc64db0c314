"""The shuffles of a pipeline: where each permutes, and in windows of how many rows of what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dataflow.execute.compile import Plan
from dataflow.graph.node import Node, walk
from dataflow.wording import counted

__all__ = ["ShuffleFacts", "shuffles_of"]


@dataclass(frozen=True, kw_only=True)
class ShuffleFacts:
    """One shuffle. `window` is what was asked for, `window_rows` what it will be at the first start (None: "full").

    It is done at the source, in front of the steps that it `moves_past`. With `permutes_outputs` it stays behind an
    operator that makes several rows of one, and permutes what a window gave.
    """

    window: int | str
    window_rows: int | None
    counts_source_rows: bool
    moves_past: tuple[str, ...]
    permutes_outputs: bool

    def lines(self) -> list[str]:
        """One fact a line."""
        if self.window_rows is None:
            lines = ["shuffle('full'): single rows are permuted over all of the source"]
        else:
            lines = [f"shuffle({self.window!r}): windows of {counted(self.window_rows, 'row')} in every lane"]
        if self.permutes_outputs:
            lines.append("  it permutes what the steps in front of it make of each window")
        elif self.moves_past:
            lines.append(f"  it moves to the source, past {', '.join(self.moves_past)}")
        if self.counts_source_rows and self.window_rows is not None:
            lines.append("  its window counts source rows, before any are left out or added")
        return lines


def shuffles_of(written: Node, plan: Plan) -> tuple[ShuffleFacts, ...]:
    """The shuffles among the steps that were written, inputs first."""
    rows = iter(plan.windows)
    return tuple(_facts(step, rows) for step in walk(written) if step.traits.shuffles)


def _facts(step: Node, rows: Iterator[int]) -> ShuffleFacts:
    below = walk(step.input)
    outputs = any(other.traits.many for other in below)
    # Picking and naming columns is no work that a reader of this would look for behind the shuffle.
    works = [t.kind for t in below if t.traits.filters or (t.traits.kernel and not t.traits.keeps_values)]
    return ShuffleFacts(
        window=step.window_size,
        window_rows=None if step.window_size == "full" else next(rows),
        counts_source_rows=any(t.traits.filters or not t.traits.keeps_rows for t in below),
        moves_past=() if outputs else tuple(dict.fromkeys(works)),
        permutes_outputs=outputs,
    )
