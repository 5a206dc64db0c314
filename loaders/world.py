"""Which data-parallel rank this is: from arguments, a mesh, a group, torch.distributed or the environment."""

from __future__ import annotations

import os
import sys
from typing import Any

from dataflow.errors import PlanError
from dataflow.options import World

__all__ = ["find_world"]

# Torch's own types stay out of this file, so that finding the world imports no torch.
Mesh = Any
Group = Any


def find_world(rank: int | None, world_size: int | None, mesh: Mesh | None, group: Group | None) -> World:
    """The first that is given: rank and world size, a device mesh, a process group; else what is running.

    Of a mesh with several dimensions those count whose names begin with "dp" or "data": ranks that differ
    only in the others (tensor, pipeline, context parallel) get the same rows.

    Raises:
        PlanError: only one of rank and world size is given, more than one source is, or a mesh has no such
            dimension.
    """
    given = [name for name, value in (("rank", rank), ("mesh", mesh), ("group", group)) if value is not None]
    if (rank is None) != (world_size is None):
        raise PlanError(f"rank={rank} with world_size={world_size}.", hint="give both, or neither")
    if len(given) > 1:
        raise PlanError(f"{' and '.join(given)} all say which rank this is.", hint="give one of them")
    if rank is not None and world_size is not None:
        return World(rank=rank, size=world_size)
    if mesh is not None:
        return _of_mesh(mesh)
    torch = sys.modules.get("torch")
    running = torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized()
    if running and torch is not None:
        return World(rank=torch.distributed.get_rank(group), size=torch.distributed.get_world_size(group))
    if group is not None:
        raise PlanError(
            "group= without torch.distributed.", hint="call torch.distributed.init_process_group first"
        )
    return _of_environment()


def _of_mesh(mesh: Mesh) -> World:
    names = mesh.mesh_dim_names or ()
    if mesh.ndim == 1:
        return World(rank=mesh.get_local_rank(0), size=mesh.size(0))
    chosen = [place for place, name in enumerate(names) if name.startswith(("dp", "data"))]
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
