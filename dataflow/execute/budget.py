"""How much memory what is for: what a rank holds at once, and how far it works ahead within `memory_limit`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dataflow.errors import PlanError
from dataflow.execute.ahead import DEPTH
from dataflow.execute.compile import Plan
from dataflow.execute.develop import DEVELOPING
from dataflow.options import LoaderOptions, World
from dataflow.order.batches import Batching
from dataflow.order.deal import first_cap
from dataflow.wording import counted

__all__ = ["Budget", "Pace"]

# Decoded bytes that one reader holds at a time, and of an unshuffled lane that are read at once.
_SLICE_BYTES = 32 << 20
_CHUNK_BYTES = 8 << 20
# What decoders, threads and the interpreter keep for themselves, measured with two threads.
_KEPT_BYTES = 32 << 20
# Of the limit: what Arrow's allocator may keep of freed memory, where all columns stay Arrow. A text whose windows take
# half of the limit then costs a tenth to a fifth more processor time, for that memory is given back and cleared
# again; others, nothing.
_SPARE_SHARE = 1 / 8
# Enough for a few hundred decoded images.
_OUTPUT_BYTES = 64 << 20
# Assembled together: enough that a task's cost is small beside it, little enough for the first batch to come soon.
_RUN_BYTES = 4 << 20
# The same where batches only show a window: nothing is copied, and what is waited for has been read. But windows stay
# in use for longer: at a limit of 128 MB the peak was 167 MB in the place of 133, so that it is a share of the limit.
_SHOWN_BYTES = 16 << 20
_SHOWN_SHARE = 1 / 64
_MOST_STEPS = 64
_AHEAD_BYTES, _REMOTE_AHEAD_BYTES = 32 << 20, 256 << 20


@dataclass(frozen=True, slots=True)
class Pace:
    """How far to work ahead: steps and bytes assembled together, memory for windows, and bytes read ahead."""

    run_steps: int
    run_bytes: int
    row_bytes: float
    limit_bytes: int
    ahead_bytes: int


@dataclass(frozen=True)
class Budget:
    """What one rank holds in memory, all of it in bytes and within `options.memory_limit` when `check` passes."""

    plan: Plan
    batching: Batching
    world: World
    options: LoaderOptions

    # ---- windows

    @cached_property
    def chunk_rows(self) -> int:
        """Rows that are read together where the order has no windows; a multiple of what batched functions want."""
        plan, options = self.plan, self.options
        if plan.output_window is not None:
            return plan.output_window
        chunk = plan.program.chunk or 1
        most: float = _CHUNK_BYTES
        if not self._draws_from_windows:
            most = min(most, options.memory_limit / 8)
        return max(1, int(most / plan.row_bytes) // chunk) * chunk

    @property
    def cut_bytes(self) -> float:
        """What a window of `chunk_rows` may hold when it has been read, before it is cut into smaller ones; infinite
        where its rows are fixed."""
        plan = self.plan
        if isinstance(plan.stream.window, int) or plan.output_window is not None or self._draws_from_windows:
            return math.inf
        share = self.options.memory_limit / (4 * (self.lanes_here + 1))
        return max(1 << 20, min(2 * _CHUNK_BYTES, share))

    @property
    def _draws_from_windows(self) -> bool:
        """A replaced row is drawn from its window, which must then be the same whatever memory there is."""
        return self.options.errors.on_error == "replace"

    @property
    def window_rows(self) -> int:
        """Rows of a window, at most."""
        window = self.plan.stream.window
        rows = window if isinstance(window, int) else self.chunk_rows
        return min(rows, -(-self.plan.stream.n // self.batching.lanes) or 1)

    @property
    def lanes_here(self) -> int:
        """Lanes whose windows a rank has open at once, at most; the same number on every rank.

        A share reaches from one lane into the next. Where it is not known how many rows lanes give, a rank runs its
        own besides; those of its share move away from them as lanes in front end.
        """
        lanes, world = self.batching.lanes, self.world.size
        if world <= 2 or self.plan.lengths_known:
            return min(lanes, -(-lanes // world) + (lanes % world > 0))
        return min(lanes, 2 * -(-lanes // world) + 1)

    # ---- beside windows

    @cached_property
    def beside(self) -> Mapping[str, int]:
        """Memory beside windows and batches by what takes it, which is named as in "MB for"."""
        kept = min(_KEPT_BYTES, self.options.memory_limit // 4)
        return {
            "readers": self.reader_bytes,
            "bringing a window into order": self.arranging_bytes,
            "what operators made": self.output_bytes,
            "images that are made of batches": self.developing_bytes,
            "rows offered to the deal": self.offered_bytes,
            "decoders and allocators": kept + self.spare_bytes,
        }

    @property
    def beside_bytes(self) -> int:
        """All of that."""
        return sum(self.beside.values())

    @cached_property
    def slice_bytes(self) -> int:
        """Decoded bytes that one reader yields at a time: a quarter of the memory is for all of them, if that is
        not less than a megabyte each."""
        readers = 2 * self.options.threads + self.lanes_here * len(self._paused)
        return max(1 << 20, min(_SLICE_BYTES, self.options.memory_limit // (4 * readers)))

    @property
    def reader_bytes(self) -> int:
        """What readers decode at a time, and what those hold that wait for the next window of their fragment."""
        waiting = sum(min(self.slice_bytes, reader.fragment) + reader.kept for reader in self._paused)
        return 2 * self.options.threads * self.slice_bytes + self.lanes_here * waiting

    @cached_property
    def _paused(self) -> tuple[_Paused, ...]:
        """The readers that wait in one lane: of each part of a window that is read through larger fragments."""
        found = []
        for group in self.plan.program.groups:
            forward = [index for index in group.indexes.values() if not index.traits.row_ranges]
            rows = max((int(np.diff(index.starts).max(initial=0)) for index in forward), default=0)
            if rows > self.window_rows:
                fragment = int(rows * group.row_bytes)
                kept = len(group.schema) * max(index.traits.kept_bytes for index in forward)
                found.append(_Paused(fragment, min(kept, fragment)))
        return tuple(found)

    @property
    def arranging_bytes(self) -> int:
        """One more copy of one window's columns that stay Arrow."""
        return int(self.window_rows * self.plan.program.arrow_row_bytes)

    @property
    def offered_bytes(self) -> int:
        """What the lanes of this rank have made for the deal of batches, which looks ahead; more where a batch is not
        settled by that, because lanes give very unequal numbers of rows."""
        if self.plan.lengths_known:
            return 0
        own = -(-self.batching.lanes // self.world.size)
        rows = own * first_cap(self.batching.batch, self.batching.lanes)
        return int(rows * max(self.plan.row_bytes, self.plan.delivered_bytes))

    @property
    def output_bytes(self) -> int:
        """What operators may have made that no batch has taken."""
        return 0 if self.plan.program.bare else min(_OUTPUT_BYTES, self.options.memory_limit // 16)

    @property
    def developing_bytes(self) -> int:
        """The images of the batches that are in the making behind `batch`, and of the one handed out."""
        share = -(-self.batching.batch // self.world.size)
        return int((DEVELOPING + 1) * share * self.plan.developed_bytes)

    @property
    def spare_bytes(self) -> int:
        """What Arrow's allocator may keep of memory that was freed."""
        program = self.plan.program
        return int(_SPARE_SHARE * self.options.memory_limit * program.arrow_row_bytes / program.row_bytes)

    @property
    def room_bytes(self) -> int:
        """How far this process may grow before that memory is given back; what follows may take it to the limit."""
        return self.options.memory_limit - self.spare_bytes

    # ---- all of it

    @property
    def resident_bytes(self) -> float:
        """What must be in memory at once: a window of each lane and one ahead, and what is beside them."""
        return (self.lanes_here + 1) * self.window_rows * self.plan.row_bytes + self.beside_bytes

    def check(self) -> None:
        """Refuse what does not fit.

        Raises:
            PlanError: more must be in memory at once than `memory_limit`; has the figures.
        """
        need, limit = self.resident_bytes, self.options.memory_limit
        if need <= limit:
            return
        lanes, rows = counted(self.lanes_here, "lane"), counted(self.window_rows, "row")
        beside = [f"{size / 1e6:.0f} MB for {what}" for what, size in self.beside.items() if size >= 5e5]
        raise PlanError(
            f"{lanes} and one window ahead x {rows} x {self.plan.row_bytes:.0f} bytes, {', '.join(beside)}, "
            f"need {need / 1e6:.0f} MB; memory_limit is {limit / 1e6:.0f} MB.",
            hint="use a smaller shuffle(window=...), fewer lanes, or a larger memory_limit",
        )

    @property
    def pace(self) -> Pace:
        """How far to work ahead."""
        options, plan = self.options, self.plan
        share = -(-self.batching.batch // self.world.size)
        batch_bytes = share * max(plan.row_bytes, plan.delivered_bytes)
        run_bytes = _RUN_BYTES
        if plan.program.bare and self.lanes_here == 1:
            run_bytes = max(run_bytes, min(_SHOWN_BYTES, int(_SHOWN_SHARE * options.memory_limit)))
        # All but one batch of the run that is being delivered are ahead too.
        within = (options.prefetch + 1) // (DEPTH + 1)
        steps = min(_MOST_STEPS, max(1, within), max(1, int(run_bytes / batch_bytes)))
        limit = max(1, options.memory_limit - self.beside_bytes)
        remote = any(not source.index.store.is_local for source in plan.sources)
        ahead = min(limit, _REMOTE_AHEAD_BYTES if remote else _AHEAD_BYTES)
        return Pace(steps, run_bytes, plan.row_bytes, limit, ahead)


@dataclass(frozen=True, slots=True)
class _Paused:
    """A reader that waits: decoded bytes of its fragment, and what it keeps beside the slice that it has decoded."""

    fragment: int
    kept: int
