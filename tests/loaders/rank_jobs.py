"""Real ranks: processes of a process group that run jobs and leave what they found as JSON."""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import dataflow as flow
from dataflow.execute.loader import Loader

__all__ = ["JOBS", "launch", "pipeline"]

Found = list[Any]
_TIMEOUT_S = 120


def _several(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"x": int(row["x"])}] * (int(row["x"]) % 4)


def _kept(row: dict[str, Any]) -> bool:
    return int(row["x"]) * 7 % 5 > 1


def _fails_late(row: dict[str, Any]) -> bool:
    # With 4 lanes over 240 rows, row 170 is the 50th of lane 2, which is rank 1's of two.
    if row["x"] == 170:
        raise ValueError("row 170 is bad")
    return True


def pipeline(kind: str) -> flow.Pipeline:
    """Pipelines whose lengths no rank knows beforehand; global batches of 12, mostly from 4 lanes."""
    rows = flow.from_columns({"x": np.arange(228 if kind == "fewer rows" else 240)})
    if kind == "flat_map":
        made = rows.shuffle(9).flat_map(_several, schema={"x": "int64"})
    elif kind == "shuffled outputs":
        made = rows.flat_map(_several, schema={"x": "int64"}).shuffle(9)
    elif kind in ("filter", "one lane", "three lanes"):
        made = rows.shuffle(9).filter(_kept)
    elif kind == "uneven":
        made = rows.filter(_first_lane_only)
    elif kind == "fails":
        made = rows.filter(_fails_late)
    else:
        made = rows.shuffle(9).map(dict, schema={"x": "int64"})
    lanes = {"one lane": 1, "three lanes": 3}.get(kind, 4)
    return made.seed(3).batch(global_size=12, lanes=lanes, remainder="pad" if kind == "flat_map" else "drop")


def _first_lane_only(row: dict[str, Any]) -> bool:
    return bool(row["x"] < 55)


def _batches(loader: Loader[Any], count: int | None = None) -> Found:
    return [[batch["x"].tolist(), loader.state_dict()] for batch in islice(iter(loader), count)]


def whole_epochs(kind: str, rank: int) -> Found:
    """Two epochs, the state behind each batch."""
    with pipeline(kind).loader(output="numpy", threads=2) as loader:
        return _batches(loader) + _batches(loader)


def moves(kind: str, rank: int) -> Found:
    """Break, go on, move and restore: all ranks alike."""
    with pipeline(kind).loader(output="numpy", threads=1 + rank) as loader:
        found = _batches(loader, 2)
        state = loader.state_dict()
        found += _batches(loader, 1)
        loader.set_epoch(5)
        found += _batches(loader, 3)
        loader.load_state_dict(state)
        return found + _batches(loader)


def two_loaders(kind: str, rank: int) -> Found:
    """Two loaders that are iterated in turn, as for training and validation."""
    with pipeline(kind).loader(output="numpy") as one, pipeline("flat_map").loader(output="numpy") as other:
        return [
            [a["x"].tolist(), b["x"].tolist()]
            for a, b in zip(islice(iter(one), 4), iter(other), strict=False)
        ]


def from_state(kind: str, rank: int, state: dict[str, Any] | None, count: int | None) -> Found:
    """The next batches from a state on, None for the start; a whole next epoch behind where `count` is None."""
    with pipeline(kind).loader(output="numpy") as loader:
        if state is not None:
            loader.load_state_dict(state)
        found = _batches(loader, count)
        return found if count is not None else found + _batches(loader)


def until_error(kind: str, rank: int) -> Found:
    """The batches until something is raised, and what."""
    found: Found = []
    with pipeline(kind).loader(output="numpy") as loader:
        try:
            for batch in loader:
                found.append(batch["x"].tolist())
        except Exception as error:
            found.append([type(error).__name__, str(error)])
    return found


def one_leaves(kind: str, rank: int) -> Found:
    """Rank 0 begins the next epoch after two batches, the others do not."""
    found: Found = []
    with pipeline(kind).loader(output="numpy") as loader:
        try:
            for epoch in range(3):
                for number, batch in enumerate(loader):
                    found.append([epoch, batch["x"].tolist()])
                    if rank == 0 and number == 1:
                        break
        except Exception as error:
            found.append([type(error).__name__, str(error)])
    return found


def _tried(make: Callable[[], Found]) -> Found:
    """What comes, or the error instead."""
    try:
        return make()
    except Exception as error:
        return [[type(error).__name__, str(error)]]


def makes(kind: str, rank: int, wishes: Sequence[Sequence[dict[str, Any]]]) -> Found:
    """Two batches, or the error, of each loader that this rank wishes: made one after the other, all open at once."""
    with ExitStack() as open_loaders:
        made = [_tried(partial(_wished, open_loaders, **{"kind": kind, **wish})) for wish in wishes[rank]]
        return [_tried(partial(_batches, one[0], 2)) if isinstance(one[0], Loader) else one for one in made]


def _wished(
    open_loaders: ExitStack, *, kind: str, seed: int = 3, size: int = 12, lanes: int = 4, **options: Any
) -> Found:
    rows = flow.Pipeline(pipeline(kind).node.inputs[0])
    made = rows.seed(seed).batch(global_size=size, lanes=lanes).loader(output="numpy", **options)
    return [open_loaders.enter_context(made)]


def in_step(kind: str, rank: int, wishes: Sequence[dict[str, Any]]) -> Found:
    """The batches of two epochs, or the error behind some, of ranks that train together.

    A wish may have the `epoch` to begin with, or the number of batches `behind` which to go on from a state.
    """
    wish = dict(wishes[rank])
    epoch, behind = wish.pop("epoch", None), wish.pop("behind", 0)
    with ExitStack() as open_loaders:
        (loader,) = _wished(open_loaders, **{"kind": kind, **wish})
        if epoch is not None:
            loader.set_epoch(epoch)
        if behind:
            loader.load_state_dict({**loader.state_dict(), "step": behind})
        return _taken_together(chain.from_iterable(repeat(loader, 2)))


def _taken_together(batches: Iterator[Any]) -> Found:
    """What comes of batches, of which all ranks take the next one together; one that has ended waits for the others."""
    found: Found = []
    ended = torch.zeros(1)
    while not _least(ended):
        if ended:
            continue
        try:
            found.append(next(batches)["x"].tolist())
        except StopIteration:
            ended += 1
        except flow.RankError as error:
            found.append([type(error).__name__, str(error)])
            ended += 1
        _let_look()
    return found


def _let_look() -> None:
    """Let a loader's look at the other ranks, which is under way, come to its end."""
    for thread in threading.enumerate():
        if thread.name == "dataflow-watch":
            thread.join()


def _least(value: torch.Tensor) -> float:
    """The least of what all ranks have."""
    least = value.clone()
    dist.all_reduce(least, dist.ReduceOp.MIN)
    return float(least)


def one_behind_the_other(kind: str, rank: int, wishes: Sequence[dict[str, Any]]) -> Found:
    """Two epochs of each rank, or its error: the last rank begins when the others have ended theirs."""
    last = rank == dist.get_world_size() - 1
    with ExitStack() as open_loaders:
        (loader,) = _wished(open_loaders, **{"kind": kind, **wishes[rank]})
        found = [] if last else _two_epochs(loader)
        dist.barrier()
        return _tried(partial(_two_epochs, loader)) if last else found


def _two_epochs(loader: Loader[Any]) -> Found:
    """Their rows, with a pause between them in which a look at the other ranks comes to its end."""
    found = [rows for rows, _ in _batches(loader)]
    _let_look()
    return found + [rows for rows, _ in _batches(loader)]


def only_the_first(kind: str, rank: int) -> Found:
    """Two epochs of a loader that the other ranks do not make."""
    return whole_epochs(kind, rank) if rank == 0 else []


def breaks_at_its_own_step(kind: str, rank: int) -> Found:
    """The rows of the second epoch, behind a first one that each rank leaves at another step."""
    with pipeline(kind).loader(output="numpy") as loader:
        _batches(loader, 2 + 3 * rank)
        return _taken_together(iter(loader))


def destroyed(kind: str, rank: int) -> Found:
    """An epoch in which the process group is destroyed."""
    with pipeline(kind).loader(output="numpy") as loader:
        batches = iter(loader)
        found = [next(batches)["x"].tolist()]
        dist.destroy_process_group()
        return found + [batch["x"].tolist() for batch in batches]


def restored_on_one(kind: str, rank: int) -> Found:
    """The error of ranks of which only the last begins behind two batches."""
    with pipeline(kind).loader(output="numpy") as loader:
        _batches(loader, 2)
        state = loader.state_dict()
    with pipeline(kind).loader(output="numpy") as loader:
        if rank == dist.get_world_size() - 1:
            loader.load_state_dict(state)
        return _tried(partial(_batches, loader))


def made_again(kind: str, rank: int) -> Found:
    """Loaders that are closed, and made again; the last ones are open side by side."""
    for _ in range(2):
        whole_epochs(kind, rank)
    return two_loaders(kind, rank)


def of_a_mesh(kind: str, rank: int) -> Found:
    """The data-parallel rank and all batches on a mesh of 2 x 2, where two ranks get the same rows."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    with pipeline(kind).loader(output="numpy", mesh=mesh) as loader:
        return [mesh.get_local_rank("dp"), *_batches(loader)]


def of_a_group(kind: str, rank: int) -> Found:
    """All batches on the last two ranks; what the others are told, which are in no such group."""
    group = dist.new_group([dist.get_world_size() - 2, dist.get_world_size() - 1])
    return _tried(lambda: _batches(pipeline(kind).loader(output="numpy", group=group)))


JOBS: dict[str, Callable[..., Found]] = {
    job.__name__: job
    for job in (
        whole_epochs, moves, two_loaders, from_state, until_error, one_leaves, makes, restored_on_one, made_again,
        of_a_mesh, of_a_group, in_step, one_behind_the_other, only_the_first, breaks_at_its_own_step, destroyed,
    )
}  # fmt: skip


def launch(folder: Path, world: int, jobs: Sequence[tuple[Any, ...]]) -> list[list[Found]]:
    """Run jobs, as (name, kind, *arguments), one after the other on `world` ranks; what each rank found, by job.

    Every rank ends within two minutes.
    """
    context = multiprocessing.get_context("spawn")
    folder.mkdir(parents=True, exist_ok=True)
    ranks = [
        context.Process(target=_rank, args=(rank, world, str(folder), list(jobs))) for rank in range(world)
    ]
    for process in ranks:
        process.start()
    try:
        for process in ranks:
            process.join(_TIMEOUT_S)
        assert [process.exitcode for process in ranks] == [0] * world, "a rank hangs or failed"
    finally:
        for process in ranks:
            process.kill()
            process.join()
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(world)]


def _rank(rank: int, world: int, folder: str, jobs: Sequence[tuple[Any, ...]]) -> None:
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=world,
        timeout=timedelta(seconds=60),
    )  # fmt: skip
    found = [JOBS[name](kind, rank, *more) for name, kind, *more in jobs]
    Path(folder, f"{rank}.json").write_text(json.dumps(found))
    if dist.is_initialized():
        dist.destroy_process_group()
