"""Batches of files become batches of images: most by DALI, and the rest by the CPU kernel."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

from dataflow.execute.assemble import HostBatch
from dataflow.execute.compile import Plan
from dataflow.execute.develop import DEVELOPING, Developer, Developing
from dataflow.execute.metrics import Meters
from dataflow.graph.block import BadSample, Column, own_arrays
from loaders.dali.backend import DaliImages
from loaders.dali.darkroom import Darkroom, Exposed
from loaders.dali.hand_over import HandOver, ToGpu, ToHost

__all__ = ["DaliDevelopment"]


@dataclass(frozen=True, kw_only=True)
class DaliDevelopment:
    """A `Development`: DALI on GPU number `gpu`, or on CPUs."""

    backend: DaliImages
    gpu: int | None
    says: Sequence[str]

    def open(self, plan: Plan, rows: int, threads: int, meters: Meters) -> Developer:
        """What makes the images of batches of at most `rows` rows, on so many threads."""
        hand_over: HandOver = ToHost() if self.gpu is None else ToGpu(self.gpu)
        kernel = ThreadPoolExecutor(threads, thread_name_prefix="dataflow-images")
        rooms = [Darkroom(step, rows, threads, self.gpu, hand_over, kernel) for step in plan.develops]
        return _Developer(rooms, kernel, meters, waits=hand_over.waits)


class _Developer:
    """All columns of images of a batch, one behind the other."""

    depth = DEVELOPING

    def __init__(
        self, rooms: Sequence[Darkroom], kernel: ThreadPoolExecutor, meters: Meters, *, waits: bool
    ) -> None:
        self._rooms, self._kernel, self._meters = rooms, kernel, meters
        self._waiting = ThreadPoolExecutor(DEVELOPING, thread_name_prefix="dataflow-dali") if waits else None

    def begin(self, batch: HostBatch) -> Developing:
        begun = _Begun(batch, self._rooms, [room.begin(batch) for room in self._rooms], self._meters)
        return begun if self._waiting is None else _Waited(self._waiting.submit(begun.result))

    def close(self) -> None:
        if self._waiting is not None:
            self._waiting.shutdown(cancel_futures=True)
        self._kernel.shutdown(cancel_futures=True)
        for room in self._rooms:
            room.close()


class _Waited(NamedTuple):
    made: Future[HostBatch | BadSample]

    def result(self) -> HostBatch | BadSample:
        return self.made.result()


@dataclass(frozen=True, slots=True)
class _Begun:
    batch: HostBatch
    rooms: Sequence[Darkroom]
    exposed: Sequence[Exposed]
    meters: Meters

    def result(self) -> HostBatch | BadSample:
        with self.meters.busy("develop") as stage:
            found = self._developed()
            if isinstance(found, HostBatch):
                stage.rows = found.rows
                stage.bytes = sum(found.columns[room.column].nbytes for room in self.rooms)
            return found

    def _developed(self) -> HostBatch | BadSample:
        columns: dict[str, Column] = dict(self.batch.columns)
        bad: list[BadSample] = []
        for room, exposed in zip(self.rooms, self.exposed, strict=True):
            found = room.develop(exposed)
            if isinstance(found, BadSample):
                bad.append(found)
                continue
            for name in room.given:
                del columns[name]
            columns[room.column] = found
        if bad:
            return min(bad, key=lambda sample: sample.origin)
        # The images are the user's alone, and what stands beside them shall be as well.
        images = {room.column for room in self.rooms}
        others = own_arrays(columns, owned=self.batch.owned, but=images)
        return replace(
            self.batch, columns={name: others.get(name, columns[name]) for name in columns}, owned=True
        )
