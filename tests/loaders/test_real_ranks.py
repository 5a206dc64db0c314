"""Row-changing pipelines on real ranks, which agree one batch ahead over a gloo group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rank_jobs import JOBS, launch

KINDS = ("flat_map", "filter", "one lane", "three lanes", "shuffled outputs", "uneven", "known")
ELASTIC = ("flat_map", "shuffled outputs")


def _alone(name: str, kind: str, *more: Any) -> list[Any]:
    return JOBS[name](kind, 0, *more)


def _joined(ranks: Sequence[Any], job: int) -> list[list[int]]:
    """The global batches of a job: the ranks' rows one behind the other; their states are the same."""
    steps = [[answers[job][step] for answers in ranks] for step in range(len(ranks[0][job]))]
    assert len({len(answers[job]) for answers in ranks}) == 1
    for step in steps:
        assert all(state == step[0][1] for _, state in step)
    return [[value for rows, _ in step for value in rows] for step in steps]


def _rows(found: Sequence[Any]) -> list[list[int]]:
    return [rows for rows, _ in found]


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    jobs = [(name, kind) for kind in KINDS for name in ("whole_epochs", "moves")] + [
        ("two_loaders", "filter")
    ]
    return launch(tmp_path_factory.mktemp("two"), 2, jobs)


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_deliver_the_global_batches_and_states_of_one(two_ranks: list[Any], kind: str) -> None:
    alone = _alone("whole_epochs", kind)
    assert _joined(two_ranks, 2 * KINDS.index(kind)) == _rows(alone)
    assert [state for _, state in two_ranks[1][2 * KINDS.index(kind)]] == [state for _, state in alone]


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_break_move_and_restore_as_one_does(two_ranks: list[Any], kind: str) -> None:
    assert _joined(two_ranks, 2 * KINDS.index(kind) + 1) == _rows(_alone("moves", kind))


@pytest.mark.parametrize("kind", KINDS)
def test_shares_of_ranks_are_within_one_row(two_ranks: list[Any], kind: str) -> None:
    for one, other in zip(*(answers[2 * KINDS.index(kind)] for answers in two_ranks), strict=True):
        assert 0 <= len(one[0]) - len(other[0]) <= 1


def test_two_loaders_are_iterated_in_turn(two_ranks: list[Any]) -> None:
    alone = _alone("two_loaders", "filter")
    for place in range(2):
        ranked = [[answers[-1][step][place] for answers in two_ranks] for step in range(4)]
        assert [[value for rank in rows for value in rank] for rows in ranked] == [
            step[place] for step in alone
        ]


def test_two_ranks_then_one_then_three_are_the_uninterrupted_run(tmp_path: Path) -> None:
    begun = launch(tmp_path / "two", 2, [("from_state", kind, _first_state(kind), 4) for kind in ELASTIC])
    one = [
        _alone("from_state", kind, answer[-1][1], 3)
        for kind, answer in zip(ELASTIC, begun[1] or [], strict=True)
    ]
    jobs = [("from_state", kind, found[-1][1], None) for kind, found in zip(ELASTIC, one, strict=True)]
    rest = launch(tmp_path / "three", 3, jobs)
    for job, kind in enumerate(ELASTIC):
        found = _joined(begun, job) + _rows(one[job]) + _joined(rest, job)
        assert found == _rows(_alone("whole_epochs", kind))


def _first_state(kind: str) -> dict[str, Any]:
    from rank_jobs import pipeline

    with pipeline(kind).loader() as loader:
        return loader.state_dict()


def test_an_error_on_one_rank_reaches_all_at_the_batch_it_belongs_to(tmp_path: Path) -> None:
    zero, one = launch(tmp_path, 2, [("until_error", "fails")])
    alone = _alone("until_error", "fails")
    assert zero is not None
    assert one is not None
    assert [a + b for a, b in zip(zero[0][:-1], one[0][:-1], strict=True)] == alone[:-1]
    assert len(alone) > 10
    assert one[0][-1][0] == "StageError"
    assert "row 170 is bad" in one[0][-1][1]
    assert zero[0][-1][0] == "RankError"
    assert "rank 1 failed" in zero[0][-1][1]
    assert "log of rank 1" in zero[0][-1][1]


def test_a_rank_that_leaves_an_epoch_early_is_an_error_and_no_wait(tmp_path: Path) -> None:
    ranks = launch(tmp_path, 2, [("one_leaves", "filter")])
    ends = [answers[0][-1] for answers in ranks if answers is not None]
    assert len(ends) == 2
    errors = [end for end in ends if end[0] == "RankError"]
    assert errors
    assert any("same number of batches" in text for _, text in errors)


def test_a_rank_that_dies_is_an_error_on_the_others_in_bounded_time(tmp_path: Path) -> None:
    zero, one = launch(tmp_path, 2, [("one_dies", "filter")], all_live=False)
    assert one is None
    assert zero is not None
    kind, text = zero[0][-1]
    assert kind == "RankError"
    assert "hint" in text
