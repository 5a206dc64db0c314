"""Ranks of known lengths exchange nothing, and notice all the same that they are not ranks of one run."""

from __future__ import annotations

from typing import Any

import pytest
from rank_jobs import JOBS, launch

Wish = dict[str, Any]
ANY: Wish = {}

# What each of two ranks takes part with, and what parts them. No other rank runs such an order before: it would be
# taken for a loader that this one has for itself.
UNLIKE: dict[str, tuple[Wish, Wish, str]] = {
    "a seed for each rank": ({"seed": 10}, {"seed": 11}, "seed"),
    "a state on one": ({"seed": 12}, {"seed": 12, "behind": 5}, "step (0, 5)"),
    "another batch": ({"seed": 13}, {"seed": 13, "size": 24}, "batch (12, 24)"),
    "other rows": ({"seed": 14}, {"seed": 14, "kind": "fewer rows"}, "sources"),
    "another epoch": ({"seed": 15, "epoch": 4}, {"seed": 15}, "epoch (4, 0)"),
}
OWN: tuple[Wish, Wish] = tuple({"seed": rank, "rank": 0, "world_size": 1} for rank in range(2))  # type: ignore[assignment]

JOBS_OF_TWO: dict[str, tuple[Any, ...]] = {
    **{name: ("in_step", "known", [one, other]) for name, (one, other, _) in UNLIKE.items()},
    "alike": ("in_step", "known", [ANY, ANY]),
    "each its own": ("in_step", "known", OWN),
    "one later": ("one_behind_the_other", "known", [ANY, ANY]),
    "one later with another seed": ("one_behind_the_other", "known", [{"seed": 16}, {"seed": 17}]),
    "only the first": ("only_the_first", "known"),
    "two loaders": ("makes", "known", [[ANY, {"seed": 4}]] * 2),
    "two loaders in turn": ("two_loaders", "known"),
    "each its own break": ("breaks_at_its_own_step", "known"),
    "destroyed": ("destroyed", "known"),
}


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What each rank found, by the name of the job."""
    found = launch(tmp_path_factory.mktemp("two"), 2, list(JOBS_OF_TWO.values()))
    return {name: [answers[number] for answers in found] for number, name in enumerate(JOBS_OF_TWO)}


def _epoch(number: int) -> list[list[int]]:
    """The batches of an epoch on one rank."""
    found = [rows for rows, _ in JOBS["whole_epochs"]("known", 0)]
    steps = len(found) // 2
    return found[number * steps : (number + 1) * steps]


def _joined(one: list[list[int]], other: list[list[int]]) -> list[list[int]]:
    return [a + b for a, b in zip(one, other, strict=True)]


@pytest.mark.parametrize("name", UNLIKE)
def test_both_ranks_are_told_what_differs(two_ranks: dict[str, list[Any]], name: str) -> None:
    for found in two_ranks[name]:
        kind, text = found[-1]
        assert kind == "RankError"
        assert f"ranks [0] and [1] differ in {UNLIKE[name][2]}." in text
        assert "load the same state on all or on none" in text


def test_ranks_that_are_alike_get_all_rows_once(two_ranks: dict[str, list[Any]]) -> None:
    assert _joined(*two_ranks["alike"]) == _epoch(0) + _epoch(1)


def test_ranks_with_data_of_their_own_are_not_compared(two_ranks: dict[str, list[Any]]) -> None:
    for found in two_ranks["each its own"]:
        assert sorted(row for batch in found for row in batch) == sorted([*range(240)] * 2)


def test_a_rank_that_runs_its_epoch_later_is_waited_for_by_none(two_ranks: dict[str, list[Any]]) -> None:
    assert _joined(*two_ranks["one later"]) == _epoch(0) + _epoch(1)


def test_of_unlike_ranks_that_run_one_behind_the_other_the_later_one_is_told(
    two_ranks: dict[str, list[Any]],
) -> None:
    first, later = two_ranks["one later with another seed"]
    assert len(first) == len(_epoch(0) + _epoch(1))
    ((kind, text),) = later
    assert kind == "RankError"
    assert "differ in seed." in text


def test_a_rank_whose_loader_no_other_makes_runs_as_any(two_ranks: dict[str, list[Any]]) -> None:
    alone, nothing = two_ranks["only the first"]
    assert len(alone) == len(_epoch(0) + _epoch(1))
    assert nothing == []


def test_loaders_side_by_side_are_compared_each_with_its_own(two_ranks: dict[str, list[Any]]) -> None:
    for loader in zip(*two_ranks["two loaders"], strict=True):
        one, other = ([rows for rows, _ in found] for found in loader)
        assert len(_joined(one, other)) == 2
    alone = JOBS["two_loaders"]("known", 0)
    one, other = two_ranks["two loaders in turn"]
    assert [_joined(*ranks) for ranks in zip(one, other, strict=True)] == alone


def test_an_epoch_may_be_left_at_another_step_on_each_rank(two_ranks: dict[str, list[Any]]) -> None:
    assert _joined(*two_ranks["each its own break"]) == _epoch(1)


def test_a_process_group_may_be_destroyed_in_the_middle_of_an_epoch(two_ranks: dict[str, list[Any]]) -> None:
    assert _joined(*two_ranks["destroyed"]) == _epoch(0)
