"""Darkroom: makes the images of one column, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.arrow_types import Arrow
from connectors.tensors import shape_of
from dataflow.errors import InternalError
from dataflow.execute.assemble import HostBatch
from dataflow.graph.block import BadSample, Block, Column, concat_blocks
from dataflow.graph.draw import Draw
from dataflow.ops.images.defer import SIZE_WORDS, DevelopImages
from dataflow.ops.images.pixels.beside import Companions
from dataflow.ops.images.pixels.run import planned, run_steps
from dataflow.ops.images.step import OneImageStep
from loaders.dali.graph import build_pipeline
from loaders.dali.hand_over import HandOver
from loaders.dali.parts import Write
from loaders.dali.recipe import Recipe, recipe_of
from loaders.dali.rows import files_of
from loaders.dali.slot import BatchFailed, Fed, Slot

__all__ = ["Darkroom", "Exposed"]

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]
# Words were drawn before, so that none is drawn of it.
_NO_DRAW = Draw(0, 0, "")


class Exposed(NamedTuple):
    """One column of a batch, of which the rows `by_dali` are in the making in `slot`."""

    batch: HostBatch
    words: Sequence[UInt32s]
    by_dali: Int64s
    fed: Fed
    slot: Slot | None


class Darkroom:
    """Makes the images of one column.

    Args:
        rows: those of a batch, at most.
        threads: for DALI, and as many as `kernel` has for what the CPU kernel does.
        gpu: the number of the GPU; None: CPUs.
    """

    def __init__(
        self, step: DevelopImages, rows: int, threads: int, gpu: int | None, hand_over: HandOver,
        kernel: ThreadPoolExecutor,
    ) -> None:  # fmt: skip
        self.column, self.given = step.column, step.given
        self._step, self._kernel, self._hand_over, self._threads = step, kernel, hand_over, threads
        self._recipe = _recipe(step, mixed=gpu is not None)
        self._build = partial(build_pipeline, self._recipe, rows, threads, gpu)
        self._slots: list[Slot] = []
        self._idle: SimpleQueue[Slot] = SimpleQueue()

    def begin(self, batch: HostBatch) -> Exposed:
        """Give DALI the files of a batch."""
        decided, made = batch.columns[self.given.decided], self._made(batch)
        words = np.split(decided[:, SIZE_WORDS:], np.cumsum([s.words for s in self._steps])[:-1], axis=1)
        rows = np.flatnonzero(made.is_null().to_numpy(zero_copy_only=False))
        fed = self._fed(batch, decided[:, :SIZE_WORDS].astype(np.int64), words, rows)
        slot = None
        if len(rows):
            slot = self._slot()
            slot.begin(fed)
        return Exposed(batch, words, rows, fed, slot)

    def develop(self, exposed: Exposed) -> Column | BadSample:
        """The images of a batch, (rows, *shape); or the first row of it that has none."""
        found: list[tuple[Int64s, Column]] = []
        failed: list[int] = []
        if exposed.slot is not None:
            found, failed = self._taken(exposed, exposed.slot)
            self._idle.put(exposed.slot)
        found = [(rows, self._finished(exposed, rows, images)) for rows, images in found]
        bad = [image for _, image in found if isinstance(image, BadSample)]
        if failed:
            again = self._by_kernel(exposed, np.array(failed, np.int64))
            bad += again.bad[:1]
            found.append((again.origin, again.columns[self.column]))
        if bad:
            return min(bad, key=lambda sample: sample.origin)
        return self._together(exposed, found)

    def close(self) -> None:
        """End DALI's threads; nothing may be in the making on others."""
        for slot in self._slots:
            slot.close()

    @property
    def _steps(self) -> tuple[OneImageStep, ...]:
        return self._step.chain.steps

    def _made(self, batch: HostBatch) -> Arrow:
        """The memory of those images that were made in front of the batch, null for the others."""
        return batch.columns[self.given.made]

    def _slot(self) -> Slot:
        try:
            return self._idle.get_nowait()
        except Empty:
            self._slots.append(Slot(self._build))
            return self._slots[-1]

    def _fed(self, batch: HostBatch, sizes: Int64s, words: Sequence[UInt32s], rows: Int64s) -> Fed:
        files = files_of(batch.columns[self.column])
        plans = planned(self._steps[: self._step.done], sizes, words[: self._step.done])
        values = [
            list(self._recipe.values((int(height), int(width)), [plan.params[row] for plan in plans]))
            for row, (height, width) in zip(rows.tolist(), sizes[rows], strict=True)
        ]
        numbers = [np.stack(each) for each in zip(*values, strict=True)]
        return Fed([files[row] for row in rows.tolist()], numbers)

    def _taken(self, exposed: Exposed, slot: Slot) -> tuple[list[tuple[Int64s, Column]], list[int]]:
        """The images of the run that was begun; where it fails, of smaller ones, and the rows that fail alone."""
        rows = exposed.by_dali
        try:
            return [(rows, self._images(slot))], []
        except BatchFailed:
            if len(rows) == 1:
                return [], rows.tolist()
        found: list[tuple[Int64s, Column]] = []
        failed: list[int] = []
        middle = len(rows) // 2
        for start, stop in ((0, middle), (middle, len(rows))):
            half = exposed._replace(by_dali=rows[start:stop], fed=exposed.fed.some(start, stop))
            slot.begin(half.fed)
            more, alone = self._taken(half, slot)
            found += more
            failed += alone
        return found, failed

    def _images(self, slot: Slot) -> Column:
        images = slot.take(self._hand_over.stream)
        written = any(isinstance(part, Write) for part in self._recipe.effects)
        return self._hand_over.taken(
            images, self._step.image_type, rounds=self._recipe.rounds, written=written
        )

    def _finished(self, exposed: Exposed, rows: Int64s, images: Column) -> Column | BadSample:
        """What DALI has made, behind the steps that it does not do."""
        done = self._step.done
        rest, words = self._steps[done:], [each[rows] for each in exposed.words[done:]]
        if not rest:
            return images
        block = Block({self.column: images}, exposed.batch.ids[rows], rows)
        share = -(-len(rows) // self._threads)
        parts = [(start, min(start + share, len(rows))) for start in range(0, len(rows), share)]
        blocks = self._kernel.map(
            lambda part: self._run(rest, block.slice(*part), [each[slice(*part)] for each in words]), parts
        )
        whole = concat_blocks(list(blocks))
        return whole.bad[0] if whole.bad else whole.columns[self.column]

    def _by_kernel(self, exposed: Exposed, rows: Int64s) -> Block:
        """Rows for which DALI has failed."""
        files = exposed.batch.columns[self.column].take(pa.array(rows))
        block = Block({self.column: files}, exposed.batch.ids[rows], rows)
        return self._run(self._steps, block, [each[rows] for each in exposed.words])

    def _run(self, steps: Sequence[OneImageStep], block: Block, words: Sequence[UInt32s]) -> Block:
        alone = Companions({}, [()] * len(steps))
        title, kind = self._step.chain.title, self._step.image_type
        return run_steps(title, self.column, steps, kind, block, _NO_DRAW, None, alone, words)

    def _together(self, exposed: Exposed, found: Sequence[tuple[Int64s, Any]]) -> Column:
        """The images of all rows, those that were made in front of the batch among them."""
        made = self._made(exposed.batch)
        if len(found) == 1 and len(found[0][0]) == len(made):
            return found[0][1]
        kind = self._step.image_type
        out = self._hand_over.empty(len(made), kind)
        for rows, images in found:
            self._hand_over.put(out, rows.tolist(), images)
        before = [row for row, there in enumerate(made.is_valid().to_pylist()) if there]
        if before:
            self._hand_over.put(out, before, _stacked([made[row].as_buffer() for row in before], kind))
        return out


def _recipe(step: DevelopImages, *, mixed: bool) -> Recipe:
    recipe = recipe_of(step.chain.steps[: step.done], mixed=mixed)
    if recipe is None:
        raise InternalError(f"DALI was asked for {step.label()}.")
    return recipe


def _stacked(memory: Sequence[Any], kind: Any) -> npt.NDArray[Any]:
    """Images of type `kind`, of the memory of each."""
    dense = shape_of(kind)
    if dense is None:
        raise InternalError(f"images of {kind} have no one size.")
    return np.stack([np.frombuffer(image, dense[0]).reshape(dense[1]) for image in memory])
