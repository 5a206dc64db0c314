"""A loader beside the worker processes of a torch DataLoader: each row comes once, or nothing does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import dataflow as flow
from dataflow.errors import PlanError

ROWS = 48
RANKS = WORKERS = 2
_TIMEOUT_S = 120


def _pipe() -> flow.Pipeline:
    return flow.from_columns({"x": np.arange(ROWS)}).shuffle(8).batch(global_size=12)


class _LoaderInEachWorker(IterableDataset[Any]):
    """A data set that makes its loader where it is iterated, as tutorials do."""

    def __iter__(self) -> Iterator[Any]:
        return iter(_pipe().loader())


class _RankOfAllWorkers(IterableDataset[Any]):
    """The rows of a rank, of which each worker gets all."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank, self.world = rank, world

    def __iter__(self) -> Iterator[Any]:
        return iter(_pipe().loader(rank=self.rank, world_size=self.world))


class _Wrapped(IterableDataset[Any]):
    """A data set that holds a loader."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        return iter(self.loader)


class _PartOfEachWorker(IterableDataset[Any]):
    """The rows of a rank, split once more among its workers by hand."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        assert worker is not None
        with _pipe().loader(
            rank=self.rank * worker.num_workers + worker.id, world_size=RANKS * worker.num_workers
        ) as loader:
            yield from loader


def _batches(data: IterableDataset[Any], start: str) -> list[list[int]]:
    workers: DataLoader[Any] = DataLoader(
        data, batch_size=None, num_workers=WORKERS, multiprocessing_context=start, timeout=_TIMEOUT_S
    )
    try:
        return [batch["x"].tolist() for batch in workers]
    except PlanError as error:
        # Its traceback holds the workers, which live for as long as it does.
        raise error.with_traceback(None) from None


def _share(rank: int, world: int) -> list[list[int]]:
    with _pipe().loader(rank=rank, world_size=world) as loader:
        return [batch["x"].tolist() for batch in loader]


def test_a_loader_that_is_made_in_a_worker_is_an_error_and_no_row_comes_twice() -> None:
    with pytest.raises(PlanError, match=r"DataLoader's worker \d of 2") as caught:
        _batches(_LoaderInEachWorker(), "fork")
    assert "num_workers=0" in str(caught.value)


@pytest.mark.parametrize(("rank", "world"), [(0, 1), (0, 2), (1, 2), (2, 3)])
def test_workers_that_are_all_the_same_rank_are_an_error(rank: int, world: int) -> None:
    with pytest.raises(PlanError, match=rf"rank={rank} of world_size={world} is not that of") as caught:
        _batches(_RankOfAllWorkers(rank, world), "spawn")
    assert "as_iterable_dataset()" in str(caught.value)


@pytest.mark.filterwarnings("ignore:Got pickle error:UserWarning")
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_loader_that_a_data_set_brings_into_workers_is_an_error_that_names_the_view(start: str) -> None:
    with _pipe().loader() as loader, pytest.raises(PlanError, match=r"as_iterable_dataset\(\)") as caught:
        _batches(_Wrapped(loader), start)
    assert "num_workers=0" in str(caught.value)


@pytest.mark.filterwarnings("ignore:Got pickle error:UserWarning")
@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("given", [{}, {"rank": 0, "world_size": 1}])
def test_a_view_that_is_sent_to_workers_is_an_error_that_says_to_use_none(
    start: str, given: dict[str, Any]
) -> None:
    with _pipe().loader(**given) as loader, pytest.raises(PlanError, match="num_workers=0"):
        _batches(loader.as_iterable_dataset(), start)


def test_a_rank_that_is_split_among_its_workers_has_its_part_of_the_rows_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The last rank: a worker that added its number to what the environment says would be out of the world.
    monkeypatch.setenv("RANK", str(RANKS - 1))
    monkeypatch.setenv("WORLD_SIZE", str(RANKS))
    shares = [_share(rank, RANKS * WORKERS) for rank in range(RANKS * WORKERS)]
    assert sorted(row for share in shares for batch in share for row in batch) == list(range(ROWS))
    got = _batches(_PartOfEachWorker(RANKS - 1), "spawn")
    assert [got[worker::WORKERS] for worker in range(WORKERS)] == shares[-WORKERS:]
