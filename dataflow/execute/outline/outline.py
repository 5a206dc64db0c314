"""`outline`: the facts about a pipeline that `explain` prints, for one number of ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from connectors.contract import Json
from dataflow.execute.compile import Plan, compile_plan
from dataflow.execute.outline.memory import MemoryFacts, memory_of
from dataflow.execute.outline.ranks import Ranks, ranks_of
from dataflow.execute.outline.shuffling import ShuffleFacts, shuffles_of
from dataflow.execute.outline.sources import SourceFacts, sources_of
from dataflow.execute.outline.windows import WindowFacts, windows_of
from dataflow.graph.explain import explain
from dataflow.graph.node import Node, split_at_batch, walk
from dataflow.optimize.rules import optimize
from dataflow.options import LoaderOptions, World
from dataflow.order.batches import Batching

__all__ = ["Outline", "outline"]

_UNKNOWN = "known when functions have run; schema= says beforehand what columns they give"


@dataclass(frozen=True, kw_only=True)
class Outline:
    """How a pipeline will be read. `steps` are those that were written and those that run, as text.

    `ranks` and `memory` are None without a batch step, `windows` and `memory` where columns are not known before
    functions have run. `images` says what makes images, and why; nothing where there are none.
    """

    steps: str
    sources: tuple[SourceFacts, ...]
    ranks: Ranks | None
    shuffles: tuple[ShuffleFacts, ...]
    windows: WindowFacts | None
    memory: MemoryFacts | None
    images: tuple[str, ...] = ()

    def fields(self) -> dict[str, Json]:
        """All facts as plain data, for JSON."""
        return asdict(self)

    def explained(self) -> str:
        """The steps, and all facts about how they are read."""
        return f"{self.steps}\n{self}"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _section("sources", [line for source in self.sources for line in source.lines()])
        if self.ranks is not None:
            yield from _section("ranks", self.ranks.lines())
        if self.windows is None:
            yield from _section("order", [_UNKNOWN])
        else:
            shuffled = [line for shuffle in self.shuffles for line in shuffle.lines()]
            yield from _section("order", [*(shuffled or ["no shuffle: file order"]), *self.windows.lines()])
        if self.memory is not None:
            yield from _section("memory", self.memory.lines())
        if self.images:
            yield from _section("images", self.images)


def outline(
    node: Node, seed: int, world_size: int, options: LoaderOptions, images: Sequence[str] = ()
) -> Outline:
    """The facts on `world_size` ranks, each with a loader of these options.

    `images` says what makes images, and why. Reads indexes, but no row, and runs no function and no pass of a filter.

    Raises:
        PlanError: the steps do not fit together.
    """
    _, batch_steps = split_at_batch(node)
    sizes = batch_steps[0].batch_sizes if batch_steps else None
    ranks = None if sizes is None else ranks_of(sizes, world_size)
    plan = _plan(node, seed, skips_bad_rows=options.errors.on_error == "skip")
    memory = None
    if plan is not None and sizes is not None and ranks is not None and ranks.lane_reads is not None:
        batching = Batching(batch=ranks.global_batch, lanes=ranks.lanes, remainder=sizes.remainder)
        memory = memory_of(plan, batching, World(size=world_size), options)
    return Outline(
        steps=explain(node, optimize),
        sources=sources_of(node),
        ranks=ranks,
        shuffles=() if plan is None else shuffles_of(node, plan),
        windows=None if plan is None else windows_of(plan, None if ranks is None else ranks.lanes),
        memory=memory,
        images=tuple(images),
    )


def _plan(node: Node, seed: int, *, skips_bad_rows: bool) -> Plan | None:
    """The plan without its filters' passes; None where only running functions tells what columns are joined."""
    if any(step.traits.joins and not step.traits.pairs and step.schema is None for step in walk(node)):
        return None
    return replace(compile_plan(node, seed, evaluate=False), skips_bad_rows=skips_bad_rows)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield title
    yield from (f"  {line}" for line in lines)
