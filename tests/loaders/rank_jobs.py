"""Real ranks: processes of a process group that run jobs and leave what they found as JSON."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
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
    rows = flow.from_columns({"x": np.arange(240)})
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
        of_a_mesh, of_a_group,
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
    dist.destroy_process_group()
