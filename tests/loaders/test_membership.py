"""Which data-parallel rank a process is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

import dataflow as flow
from dataflow.errors import PlanError
from dataflow.options import World
from loaders.membership import Membership

LAUNCHERS = [
    ("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
]  # fmt: skip


@dataclass
class _Mesh:
    """A device mesh as torch has it, without processes."""

    sizes: dict[str, tuple[int, int]]  # name: place, size
    named: bool = True
    here: bool = True

    @property
    def ndim(self) -> int:
        return len(self.sizes)

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        return tuple(self.sizes) if self.named else None

    def size(self, dimension: int) -> int:
        return list(self.sizes.values())[dimension][1]

    def get_coordinate(self) -> list[int] | None:
        return [place for place, _ in self.sizes.values()] if self.here else None


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (name for names in LAUNCHERS for name in names):
        monkeypatch.delenv(name, raising=False)


def _find(**given: Any) -> World:
    return Membership(**given).world()


def test_alone_without_any_word_of_others() -> None:
    assert _find() == World(rank=0, size=1)


def test_arguments_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert _find() == World(rank=3, size=8)
    assert _find(rank=1, world_size=2) == World(rank=1, size=2)
    assert _find(mesh=_Mesh({"dp": (1, 2), "tp": (0, 4)})) == World(rank=1, size=2)


def test_ranks_of_other_parallelisms_share_a_data_parallel_rank() -> None:
    for tensor_rank in range(4):
        assert _find(mesh=_Mesh({"dp": (1, 2), "tp": (tensor_rank, 4)})) == World(rank=1, size=2)


def test_replicated_and_sharded_data_dimensions_count_together() -> None:
    mesh = _Mesh({"pp": (1, 2), "dp_replicate": (1, 2), "dp_shard": (2, 3), "tp": (0, 2)})
    assert _find(mesh=mesh) == World(rank=5, size=6)


def test_a_mesh_of_one_dimension_is_the_data_dimension_whatever_its_name() -> None:
    assert _find(mesh=_Mesh({"x": (2, 4)})) == World(rank=2, size=4)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"rank": 0}, "world_size=None"),
        ({"world_size": 2}, "rank=None"),
        ({"rank": 0, "world_size": 2, "mesh": _Mesh({"dp": (0, 2)})}, "rank and mesh"),
        ({"rank": 480, "world_size": 480}, "rank=480"),
        ({"rank": -1, "world_size": 2}, "rank=-1"),
        ({"rank": "1", "world_size": 2}, "rank='1' is no whole number"),
        ({"rank": 0, "world_size": 2.0}, "world_size=2.0 is no whole number"),
        ({"rank": False, "world_size": True}, "rank=False is no whole number"),
        ({"mesh": _Mesh({"pp": (0, 2), "tp": (0, 2)})}, "'pp', 'tp', none of them for data"),
        ({"mesh": _Mesh({"a": (0, 2), "b": (0, 2)}, named=False)}, "2 dimensions have no names"),
        ({"mesh": _Mesh({"dp": (0, 2)}, here=False)}, "not in mesh="),
        ({"mesh": 4}, "mesh=4 is no device mesh"),
        ({"group": object()}, "without torch.distributed"),
    ],
)
def test_a_wrong_world_is_a_plan_error_with_a_hint(given: dict[str, Any], named: str) -> None:
    with pytest.raises(PlanError, match=named) as caught:
        _find(**given)
    assert caught.value.hint


def _set(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("launcher", range(len(LAUNCHERS)))
def test_every_launcher_says_which_rank_this_is_and_the_innermost_is_believed(
    monkeypatch: pytest.MonkeyPatch, launcher: int
) -> None:
    for rank, names in enumerate(LAUNCHERS[launcher:]):
        _set(monkeypatch, **dict(zip(names, (str(rank), "8"), strict=True)))
    assert _find() == World(rank=0, size=8)


def test_a_batch_script_of_slurm_is_alone_whatever_the_tasks_of_its_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _set(monkeypatch, SLURM_PROCID="0", SLURM_NTASKS="8")
    assert _find() == World(rank=0, size=1)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"RANK": "first", "WORLD_SIZE": "2"}, "RANK='first', WORLD_SIZE='2' .* no whole numbers"),
        ({"RANK": "", "WORLD_SIZE": ""}, "RANK='', WORLD_SIZE='' .* no whole numbers"),
        ({"RANK": "-1", "WORLD_SIZE": "2"}, "RANK='-1', WORLD_SIZE='2' .* no whole numbers"),
        ({"RANK": "1.0", "WORLD_SIZE": "2"}, "no whole numbers"),
        ({"RANK": "7", "WORLD_SIZE": "4"}, "RANK='7', WORLD_SIZE='4' .* no such rank"),
        ({"RANK": "0", "WORLD_SIZE": "0"}, "no such rank"),
        ({"RANK": "3"}, "RANK='3' is in the environment, and WORLD_SIZE is not"),
        ({"WORLD_SIZE": "4"}, "WORLD_SIZE='4' is in the environment, and RANK is not"),
        ({"SLURM_PROCID": "4", "SLURM_STEP_NUM_TASKS": "4"}, "SLURM_PROCID='4'.* no such rank"),
    ],
)
def test_a_wrong_environment_is_a_plan_error_that_shows_it(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str], named: str
) -> None:
    _set(monkeypatch, **values)
    with pytest.raises(PlanError, match=named) as caught:
        _find()
    assert "rank= and world_size=" in caught.value.hint
    assert _find(rank=0, world_size=1) == World()


@pytest.fixture
def _process_group() -> Iterator[None]:
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("_process_group")
def test_what_is_running_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, RANK="3", WORLD_SIZE="8")
    assert _find() == _find(group=dist.group.WORLD) == World(rank=0, size=1)


@pytest.mark.usefixtures("_process_group")
@pytest.mark.parametrize(
    ("group", "named", "hint"),
    [
        (dist.GroupMember.NON_GROUP_MEMBER, "rank 0, is not in group=", "on the ranks of the group alone"),
        ("dp", "group='dp' is no process group", "new_group"),
    ],
)
def test_a_group_without_this_process_is_a_plan_error(group: Any, named: str, hint: str) -> None:
    with pytest.raises(PlanError, match=named) as caught:
        _find(group=group)
    assert hint in caught.value.hint


@pytest.mark.parametrize("output", ["torch", "numpy"])
@pytest.mark.parametrize("given", [False, True])
def test_a_loader_made_before_its_process_was_one_of_several_ranks_refuses_to_run(
    monkeypatch: pytest.MonkeyPatch, output: Any, given: bool
) -> None:
    pipe = flow.from_columns({"x": np.arange(8)}).batch(4)
    arguments: dict[str, Any] = {"rank": 0, "world_size": 1} if given else {}
    with pipe.loader(output=output, **arguments) as loader:
        assert len(list(loader)) == 2
        monkeypatch.setattr(dist, "is_initialized", lambda: True)
        monkeypatch.setattr(dist, "get_rank", lambda: 1)
        monkeypatch.setattr(dist, "get_world_size", lambda: 2)
        if given:
            assert len(list(loader)) == 2
            return
        with pytest.raises(PlanError, match=r"made for rank 0 of 1, .* as rank 1 of 2") as caught:
            next(iter(loader))
        assert "init_process_group" in caught.value.hint
        assert "rank=0, world_size=1" in caught.value.hint
