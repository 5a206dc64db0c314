"""Which data-parallel rank a process is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from dataflow.errors import PlanError
from dataflow.options import World
from loaders.world import find_world


@dataclass
class _Mesh:
    """A device mesh as torch has it, without processes."""

    sizes: dict[str, tuple[int, int]]  # name: local rank, size

    @property
    def ndim(self) -> int:
        return len(self.sizes)

    @property
    def mesh_dim_names(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    def size(self, place: int) -> int:
        return list(self.sizes.values())[place][1]

    def get_local_rank(self, place: int) -> int:
        return list(self.sizes.values())[place][0]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


def _find(**given: Any) -> World:
    wanted = {"rank": None, "world_size": None, "mesh": None, "group": None, **given}
    return find_world(wanted["rank"], wanted["world_size"], wanted["mesh"], wanted["group"])


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
        ({"mesh": _Mesh({"pp": (0, 2), "tp": (0, 2)})}, "none of them for data"),
        ({"group": object()}, "without torch.distributed"),
    ],
)
def test_a_wrong_world_is_a_plan_error_with_a_hint(given: dict[str, Any], named: str) -> None:
    with pytest.raises(PlanError, match=named) as caught:
        _find(**given)
    assert caught.value.hint


def test_an_environment_that_is_no_number_is_a_plan_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "first")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(PlanError, match="first"):
        _find()


def test_a_rank_outside_the_environments_world_is_a_plan_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(PlanError, match="rank=2 of world_size=2"):
        _find()
