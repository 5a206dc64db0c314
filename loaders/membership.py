"""Which data-parallel rank this is: from arguments, a mesh, a group, torch.distributed or the environment."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from dataflow.errors import PlanError
from dataflow.given import as_whole
from dataflow.options import World

__all__ = ["Membership", "distributed"]

# Torch's own types stay out of this file, so that finding the world imports no torch.
Mesh = Any
Group = Any
Module = Any
WorkerInfo = Any

# What launchers say of the rank and the number of ranks, those first that others may have started. Slurm's step and
# not its job: a batch script and its shell are one process, whatever the number of tasks of their job.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),  # torchrun
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # mpirun of Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # mpiexec of MPICH and Intel MPI
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # srun
)

_NO_WORKERS = (
    "give loader.as_iterable_dataset() to the DataLoader, with num_workers=0: it has threads of its own"
)


@dataclass(frozen=True, kw_only=True)
class Membership:
    """What says which data-parallel rank this process is: one of these, or else what is running.

    Of a mesh with several dimensions those count whose names begin with "dp" or "data": ranks that differ
    only in the others (tensor, pipeline, context parallel) get the same rows.

    Raises:
        PlanError: only one of rank and world size is given, or more than one source is.
    """

    rank: int | None = None
    world_size: int | None = None
    mesh: Mesh | None = None
    group: Group | None = None

    def __post_init__(self) -> None:
        if (self.rank is None) != (self.world_size is None):
            raise PlanError(
                f"rank={self.rank} with world_size={self.world_size}.", hint="give both, or neither"
            )
        for name, value in (("rank", self.rank), ("world_size", self.world_size)):
            if value is not None:
                said = f"{name}={value!r} is no whole number."
                object.__setattr__(
                    self, name, as_whole(value, said, hint="ranks go from 0 to world_size - 1")
                )
        if len(self._given) > 1:
            raise PlanError(
                f"{' and '.join(self._given)} all say which rank this is.", hint="give one of them"
            )

    @property
    def _given(self) -> list[str]:
        return [name for name in ("rank", "mesh", "group") if getattr(self, name) is not None]

    def world(self) -> World:
        """This process among the ranks that get different rows.

        Raises:
            PlanError: the process is in no such world, what says so is wrong, or a worker of a DataLoader asks
                without rank and world size, or with those of all workers.
        """
        if self.rank is not None and self.world_size is not None:
            world = World(rank=self.rank, size=self.world_size)
            _refuse_shared(world)
            return world
        _refuse_worker()
        if self.mesh is not None:
            return _of_mesh(self.mesh)
        running = distributed()
        if self.group is not None:
            return _of_group(self.group, running)
        if running is not None:
            return World(rank=running.get_rank(), size=running.get_world_size())
        return _of_environment()

    def check_still(self, world: World) -> None:
        """`world` is still that of this process: what is running where nothing was given, else a rank of its own.

        Raises:
            PlanError: torch.distributed was initialised meanwhile, and has this process as another rank; or this is a
                worker of a DataLoader by now, and others have the same rows.
        """
        if self.rank is None:
            _refuse_worker()
        else:
            _refuse_shared(world)
        running = None if self._given else distributed()
        if running is None:
            return
        now = World(rank=running.get_rank(), size=running.get_world_size())
        if now != world:
            raise PlanError(
                f"the loader was made for rank {world.rank} of {world.size}, and torch.distributed, initialised since, "
                f"has this process as rank {now.rank} of {now.size}.",
                hint="make the loader behind init_process_group; where it is to stay as it is, "
                f"pass rank={world.rank}, world_size={world.size}",
            )

    def alike(self) -> tuple[int, ...]:
        """The processes that run one loader alike, this one among them, by their ranks in torch.distributed.

        Those of a mesh are all of its processes. None are where rank and world size were given, or torch.distributed
        is not initialised.
        """
        running = distributed()
        if running is None or self.rank is not None:
            return ()
        if self.mesh is not None:
            return tuple(self.mesh.mesh.flatten().tolist())
        if self.group is not None:
            return tuple(running.get_process_group_ranks(self.group))
        return tuple(range(running.get_world_size()))

    def data_group(self) -> Group | None:
        """The process group of the ranks that get different rows: the one given, or that of the mesh's data dimension.

        Raises:
            PlanError: the mesh has several such dimensions, and no group for all of them.
        """
        if self.mesh is None:
            return self.group
        chosen = _data_dimensions(self.mesh)
        if len(chosen) > 1:
            raise PlanError(
                f"the mesh has {len(chosen)} dimensions for data, and the ranks must agree over all of them.",
                hint="flatten them to one mesh dimension, or call counted() on the pipeline",
            )
        return self.mesh.get_group(chosen[0])


def distributed() -> Module | None:
    """`torch.distributed` where its default group is initialised."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    return torch.distributed


def _worker() -> WorkerInfo | None:
    """Which worker of a DataLoader this process is."""
    torch = sys.modules.get("torch")
    return None if torch is None else torch.utils.data.get_worker_info()


def _refuse_worker() -> None:
    # Each of them would deliver all the rows of the rank that it works for.
    worker = _worker()
    if worker is not None:
        raise PlanError(
            f"the loader is in a DataLoader's worker {worker.id} of {worker.num_workers}.",
            hint=f"{_NO_WORKERS}; or make it there, with rank= and world_size= that count all workers of all ranks",
        )


def _refuse_shared(world: World) -> None:
    """Refuse a rank that more than one worker of a DataLoader has.

    A rank with w workers has the places r*w to r*w + w-1 of all, or r, r + ranks, r + 2*ranks and so on.
    """
    worker = _worker()
    if worker is None:
        return
    ranks, rest = divmod(world.size, worker.num_workers)
    if rest or worker.id not in (world.rank % worker.num_workers, world.rank // ranks):
        raise PlanError(
            f"rank={world.rank} of world_size={world.size} is not that of a DataLoader's worker {worker.id} of "
            f"{worker.num_workers} alone.",
            hint=f"{_NO_WORKERS}; or give rank=r*{worker.num_workers}+{worker.id} for rank r, and "
            f"world_size={worker.num_workers} x the ranks",
        )


def _of_group(group: Group, running: Module | None) -> World:
    if running is None:
        raise PlanError(
            "group= without torch.distributed.", hint="call torch.distributed.init_process_group first"
        )
    outside = group is running.GroupMember.NON_GROUP_MEMBER
    if not outside and not isinstance(group, running.ProcessGroup):
        raise PlanError(f"group={group!r} is no process group.", hint="pass what new_group() returned")
    rank, size = (-1, -1) if outside else (running.get_rank(group), running.get_world_size(group))
    if rank < 0:
        raise PlanError(
            f"this process, rank {running.get_rank()}, is not in group=.",
            hint="make the loader on the ranks of the group alone, or pass the group that this process is in",
        )
    return World(rank=rank, size=size)


def _of_mesh(mesh: Mesh) -> World:
    chosen = _data_dimensions(mesh)
    place = mesh.get_coordinate()
    if place is None:
        raise PlanError(
            "this process is not in mesh=.",
            hint="make the loader on the ranks of the mesh alone, or pass the mesh that this process is in",
        )
    rank, size = 0, 1
    for dimension in chosen:
        rank = rank * mesh.size(dimension) + place[dimension]
        size *= mesh.size(dimension)
    return World(rank=rank, size=size)


def _data_dimensions(mesh: Mesh) -> list[int]:
    if not hasattr(mesh, "mesh_dim_names"):
        raise PlanError(f"mesh={mesh!r} is no device mesh.", hint="pass what init_device_mesh() returned")
    if mesh.ndim == 1:
        return [0]
    names = mesh.mesh_dim_names or ()
    chosen = [number for number, name in enumerate(names) if name.startswith(("dp", "data"))]
    if not chosen:
        what = f"are named {', '.join(map(repr, names))}, none of them for data" if names else "have no names"
        raise PlanError(
            f"the mesh's {mesh.ndim} dimensions {what}.",
            hint="name the one for data 'dp' (or two 'dp_replicate', 'dp_shard'), or pass mesh['name']",
        )
    return chosen


def _of_environment() -> World:
    for names in _LAUNCHERS:
        values = [os.environ.get(name) for name in names]
        if None not in values:
            return _launched(names, [value or "" for value in values])
    for name, other in (_LAUNCHERS[0], _LAUNCHERS[0][::-1]):
        if name in os.environ:
            raise PlanError(
                f"{name}={os.environ[name]!r} is in the environment, and {other} is not.",
                hint="start with torchrun, set both or neither, or pass rank= and world_size=",
            )
    return World()


def _launched(names: tuple[str, str], values: list[str]) -> World:
    said = ", ".join(f"{name}={value!r}" for name, value in zip(names, values, strict=True))
    hint = "start with torchrun, or pass rank= and world_size="
    if not all(value.strip().isdecimal() for value in values):
        raise PlanError(f"{said} in the environment are no whole numbers.", hint=hint)
    rank, size = map(int, values)
    if rank >= size:
        raise PlanError(f"{said} in the environment: there is no such rank, they go from 0.", hint=hint)
    return World(rank=rank, size=size)
