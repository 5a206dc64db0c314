"""Which data-parallel rank this is: from arguments, a mesh, a group, torch.distributed or the environment."""

from __future__ import annotations

import os
import sys
from typing import Any

from dataflow.errors import PlanError
from dataflow.options import World

__all__ = ["data_group", "find_world"]

# Torch's own types stay out of this file, so that finding the world imports no torch.
Mesh = Any
Group = Any
Worker = Any


def find_world(rank: int | None, world_size: int | None, mesh: Mesh | None, group: Group | None) -> World:
    """The first that is given: rank and world size, a device mesh, a process group; else what is running.

    Of a mesh with several dimensions those count whose names begin with "dp" or "data": ranks that differ
    only in the others (tensor, pipeline, context parallel) get the same rows.

    Raises:
        PlanError: only one of rank and world size is given, more than one source is, a mesh has no such
            dimension, or a worker of a DataLoader asks without rank and world size.
    """
    given = [name for name, value in (("rank", rank), ("mesh", mesh), ("group", group)) if value is not None]
    if (rank is None) != (world_size is None):
        raise PlanError(f"rank={rank} with world_size={world_size}.", hint="give both, or neither")
    if len(given) > 1:
        raise PlanError(f"{' and '.join(given)} all say which rank this is.", hint="give one of them")
    if rank is not None and world_size is not None:
        return World(rank=rank, size=world_size)
    torch = sys.modules.get("torch")
    if torch is not None:
        _refuse_worker(torch.utils.data.get_worker_info())
    if mesh is not None:
        return _of_mesh(mesh)
    running = torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized()
    if running and torch is not None:
        return World(rank=torch.distributed.get_rank(group), size=torch.distributed.get_world_size(group))
    if group is not None:
        raise PlanError(
            "group= without torch.distributed.", hint="call torch.distributed.init_process_group first"
        )
    return _of_environment()


def _refuse_worker(worker: Worker | None) -> None:
    # Each of them would deliver all the rows of the rank that it works for.
    if worker is not None:
        raise PlanError(
            f"a loader is made in a DataLoader's worker {worker.id} of {worker.num_workers}.",
            hint="use num_workers=0: it has threads of its own; or give rank= and world_size= of all workers",
        )


def data_group(mesh: Mesh | None, group: Group | None) -> Group | None:
    """The process group of the ranks that get different rows: `group`, or that of the mesh's data dimension.

    Raises:
        PlanError: the mesh has several such dimensions, and no group for all of them.
    """
    if mesh is None:
        return group
    chosen = _data_dimensions(mesh)
    if len(chosen) > 1:
        raise PlanError(
            f"the mesh has {len(chosen)} dimensions for data, and the ranks must agree over all of them.",
            hint="flatten them to one mesh dimension, or call counted() on the pipeline",
        )
    return mesh.get_group(chosen[0])


def _data_dimensions(mesh: Mesh) -> list[int]:
    names = mesh.mesh_dim_names or ()
    return [0] if mesh.ndim == 1 else [p for p, name in enumerate(names) if name.startswith(("dp", "data"))]


def _of_mesh(mesh: Mesh) -> World:
    names = mesh.mesh_dim_names or ()
    chosen = _data_dimensions(mesh)
    if not chosen:
        raise PlanError(
            f"the mesh has the dimensions {tuple(names)}, none of them for data.",
            hint="name it 'dp' (or 'dp_replicate', 'dp_shard'), or pass mesh['name']",
        )
    rank, size = 0, 1
    for place in chosen:
        rank = rank * mesh.size(place) + mesh.get_local_rank(place)
        size *= mesh.size(place)
    return World(rank=rank, size=size)


def _of_environment() -> World:
    values = {name: os.environ.get(name) for name in ("RANK", "WORLD_SIZE")}
    if None in values.values():
        return World()
    try:
        rank, size = (int(value or 0) for value in values.values())
    except ValueError:
        raise PlanError(
            f"RANK={values['RANK']!r}, WORLD_SIZE={values['WORLD_SIZE']!r} in the environment are no numbers.",
            hint="start with torchrun, or pass rank= and world_size=",
        ) from None
    return World(rank=rank, size=size)
