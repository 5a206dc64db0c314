"""Row-changing pipelines on real ranks, which agree one batch ahead."""

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


TOGETHER: list[tuple[Any, ...]] = [
    *((name, kind) for kind in KINDS for name in ("whole_epochs", "moves")),
    ("two_loaders", "filter"),
    ("until_error", "fails"),
    ("one_leaves", "filter"),
    *(("from_state", kind, None, 4) for kind in ELASTIC),
    ("whole_epochs", "filter"),
]


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return launch(tmp_path_factory.mktemp("two"), 2, TOGETHER)


def _number(name: str, kind: str) -> int:
    return [job[:2] for job in TOGETHER].index((name, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_deliver_the_global_batches_and_states_of_one(two_ranks: list[Any], kind: str) -> None:
    alone, number = _alone("whole_epochs", kind), _number("whole_epochs", kind)
    assert _joined(two_ranks, number) == _rows(alone)
    assert [state for _, state in two_ranks[1][number]] == [state for _, state in alone]


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_break_move_and_restore_as_one_does(two_ranks: list[Any], kind: str) -> None:
    assert _joined(two_ranks, _number("moves", kind)) == _rows(_alone("moves", kind))


@pytest.mark.parametrize("kind", KINDS)
def test_shares_of_ranks_are_within_one_row(two_ranks: list[Any], kind: str) -> None:
    number = _number("whole_epochs", kind)
    for one, other in zip(*(answers[number] for answers in two_ranks), strict=True):
        assert 0 <= len(one[0]) - len(other[0]) <= 1


def test_two_loaders_are_iterated_in_turn(two_ranks: list[Any]) -> None:
    alone, number = _alone("two_loaders", "filter"), _number("two_loaders", "filter")
    for place in range(2):
        ranked = [[answers[number][step][place] for answers in two_ranks] for step in range(4)]
        assert [[value for rank in rows for value in rank] for rows in ranked] == [
            step[place] for step in alone
        ]


def test_an_error_on_one_rank_reaches_all_at_the_batch_it_belongs_to(two_ranks: list[Any]) -> None:
    zero, one = (answers[_number("until_error", "fails")] for answers in two_ranks)
    alone = _alone("until_error", "fails")
    assert [a + b for a, b in zip(zero[:-1], one[:-1], strict=True)] == alone[:-1]
    assert len(alone) > 10
    assert one[-1][0] == "StageError"
    assert "row 170 is bad" in one[-1][1]
    assert zero[-1][0] == "RankError"
    assert "rank 1 failed" in zero[-1][1]
    assert "log of rank 1" in zero[-1][1]


def test_a_rank_that_leaves_an_epoch_early_is_an_error_and_no_wait(two_ranks: list[Any]) -> None:
    ends = [answers[_number("one_leaves", "filter")][-1] for answers in two_ranks]
    errors = [text for kind, text in ends if kind == "RankError"]
    assert any("same number of batches" in text for text in errors)


def test_a_loader_made_behind_an_error_runs_as_any(two_ranks: list[Any]) -> None:
    assert _joined(two_ranks, len(TOGETHER) - 1) == _rows(_alone("whole_epochs", "filter"))


@pytest.fixture(scope="module")
def four_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return launch(tmp_path_factory.mktemp("four"), 4, [("of_a_mesh", "filter"), ("of_a_group", "filter")])


def test_ranks_of_one_place_in_the_data_dimension_of_a_mesh_get_the_same_rows(four_ranks: list[Any]) -> None:
    columns = [[answers[0] for answers in four_ranks[tensor::2]] for tensor in range(2)]
    assert columns[0] == columns[1]
    assert [place for place, *_ in columns[0]] == [0, 1]
    batches = [[found[1:]] for found in columns[0]]
    assert _joined(batches, 0) == _rows(_alone("whole_epochs", "filter"))[: len(batches[0][0])]


def test_ranks_of_a_group_share_the_rows_and_the_others_are_told_that_they_are_not_in_it(
    four_ranks: list[Any],
) -> None:
    *others, zero, one = (answers[1] for answers in four_ranks)
    assert _joined([[zero], [one]], 0) == _rows(_alone("whole_epochs", "filter"))[: len(zero)]
    for rank, ((kind, text),) in enumerate(others):
        assert kind == "PlanError"
        assert f"rank {rank}, is not in group=" in text


def test_two_ranks_then_one_then_three_are_the_uninterrupted_run(
    two_ranks: list[Any], tmp_path: Path
) -> None:
    begun = [_number("from_state", kind) for kind in ELASTIC]
    one = [
        _alone("from_state", kind, two_ranks[1][job][-1][1], 3)
        for kind, job in zip(ELASTIC, begun, strict=True)
    ]
    jobs = [("from_state", kind, found[-1][1], None) for kind, found in zip(ELASTIC, one, strict=True)]
    three = launch(tmp_path, 3, jobs)
    for number, kind in enumerate(ELASTIC):
        found = _joined(two_ranks, begun[number]) + _rows(one[number]) + _joined(three, number)
        assert found == _rows(_alone("whole_epochs", kind))
