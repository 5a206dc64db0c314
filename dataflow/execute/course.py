"""Which setup each epoch has: one for all, or from the epoch on in which new files join another."""

from __future__ import annotations

import logging
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from dataflow.errors import DataError, PlanError
from dataflow.execute.setup import Setup, make_setup, say_kept_batch, say_kept_windows
from dataflow.execute.state import State
from dataflow.graph.node import Node, distinct_sources
from dataflow.index.cache import find_files, keep_files
from dataflow.index.identity import Resumed, compare
from dataflow.ops.images.backend import ImageBackend
from dataflow.options import LoaderOptions, World
from dataflow.wording import counted

__all__ = ["Course", "resume"]

logger = logging.getLogger("dataflow.execute")


@dataclass(frozen=True)
class Course:
    """`now` is the setup of the epochs in front of epoch `joins`, `later` that from it on."""

    now: Setup
    later: Setup
    joins: int

    @classmethod
    def steady(cls, setup: Setup) -> Course:
        """One setup for all epochs."""
        return cls(setup, setup, 0)

    def at(self, epoch: int) -> Setup:
        """The setup of an epoch."""
        return self.now if epoch < self.joins else self.later

    def until(self, epoch: int) -> int | None:
        """The first epoch behind this one that has another setup, None where none has."""
        return self.joins if epoch < self.joins else None


def resume(
    node: Node, seed: int, options: LoaderOptions, world: World, state: State, *, new_files: bool,
    images: ImageBackend | None = None,
) -> Course:  # fmt: skip
    """The course of a run that goes on from a state; `new_files` join at the next epoch that begins.

    States of later epochs name the index with these files, so it is kept for the next resume.

    Raises:
        PlanError: the state is of another pipeline, or steps, sizes or memory do not fit, new files included.
        DataError: files are gone or changed, or new ones would change the rows of the old ones.
    """
    say_kept_batch(node, world.size, state)
    sources = _resumed(node, state, new_files=new_files)
    make = partial(make_setup, node, seed, options, world, state, images=images)
    later = {key: source.later for key, source in sources.items()}
    if not state.step or all(source.later is source.now for source in sources.values()):
        course = Course.steady(make(later))
    else:
        now = make({key: source.now for key, source in sources.items()})
        course = Course(now, make(later), state.epoch + 1)
    say_kept_windows(course.now.plan)
    return course


def _resumed(node: Node, state: State, *, new_files: bool) -> dict[int, Resumed]:
    """Each source as the state has it and as later epochs do, by its id()."""
    sources = distinct_sources(node)
    if len(state.sources) != len(sources):
        raise PlanError(
            f"the state has {_named([was.name for was in state.sources])}, and the pipeline "
            f"{_named([source.index.name for source in sources])}.",
            hint="use the pipeline that saved it",
        )
    found = {}
    for source, was in zip(sources, state.sources, strict=True):
        at, options = source.index_url, source.storage_options
        lookup = partial(find_files, index=at, storage_options=options)
        resumed = compare(was, source.index, lookup, new_files=new_files)
        if resumed.later is not resumed.now:
            _refuse_shifted(resumed)
            keep_files(resumed.later, at=at, storage_options=options)
            more = len(resumed.later.files) - len(resumed.now.files)
            new = counted(more, "new file, which joins", "new files, which join")
            logger.info("source %r has %s at the next epoch", resumed.now.name, new)
        found[id(source)] = resumed
    return found


def _named(sources: Sequence[str]) -> str:
    return f"{counted(len(sources), 'source')} ({', '.join(sources)})"


def _refuse_shifted(source: Resumed) -> None:
    """What a connector found in all files together must hold for the old ones still: their rows depend on it."""
    for key, was in source.now.meta.items():
        then = source.later.meta.get(key)
        grown = isinstance(was, list) and isinstance(then, list) and then[: len(was)] == was
        if then != was and not grown:
            raise DataError(
                f"the new files of source {source.now.name!r} change the rows of the old ones: "
                f"{key} would be {reprlib.repr(then)}, and is {reprlib.repr(was)}.",
                hint=f"give {key}= to the format so that it stays, or leave the new files out",
            )
