"""Only ranks of one loader exchange numbers: others that meet are an error on all of them, at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from rank_jobs import JOBS, launch

Wish = dict[str, Any]
ANY: Wish = {}
OTHER: Wish = {"seed": 4}

# What each of two ranks makes, and what parts them.
UNLIKE: dict[str, tuple[Wish, Wish, str]] = {
    "another seed": (ANY, OTHER, "seed"),
    "another batch": (ANY, {"size": 24}, "batch (12, 24)"),
    "another number of lanes": (ANY, {"lanes": 3}, "lanes (4, 3)"),
    "another pipeline": (ANY, {"kind": "uneven"}, "filter, order of the steps, shuffle, windows"),
    "another policy": ({"on_error": "skip"}, ANY, "on_error"),
}


def _makes(*wishes: Sequence[Wish]) -> tuple[Any, ...]:
    return ("makes", "filter", wishes)


JOBS_OF_TWO: dict[str, tuple[Any, ...]] = {
    **{name: _makes([one], [other]) for name, (one, other, _) in UNLIKE.items()},
    "crosswise": _makes([ANY, OTHER], [OTHER, ANY]),
    "side by side": _makes([ANY, OTHER], [ANY, OTHER]),
    "policies of one order": _makes([{"on_error": "replace"}], [ANY]),
    "restored on one": ("restored_on_one", "filter"),
    "made again": ("made_again", "filter"),
}


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What each rank found, by the name of the job."""
    found = launch(tmp_path_factory.mktemp("two"), 2, list(JOBS_OF_TWO.values()))
    return {name: [answers[number] for answers in found] for number, name in enumerate(JOBS_OF_TWO)}


def _refused(found: Sequence[Any]) -> str:
    """What parts the ranks, by the error that is all that a loader gave."""
    ((kind, text),) = found
    assert kind == "RankError"
    return str(text)


@pytest.mark.parametrize("name", UNLIKE)
def test_ranks_of_unlike_loaders_are_told_what_differs(two_ranks: dict[str, list[Any]], name: str) -> None:
    for (found,) in two_ranks[name]:
        assert f"ranks [0] and [1] differ in {UNLIKE[name][2]}." in _refused(found)
        assert "of the same pipeline, with the same arguments" in _refused(found)


def test_loaders_that_ranks_make_in_another_order_do_not_meet_crosswise(
    two_ranks: dict[str, list[Any]],
) -> None:
    for answers in two_ranks["crosswise"]:
        for found in answers:
            assert "ranks [0] and [1] differ in seed." in _refused(found)
            assert "in the same order on all ranks" in _refused(found)


@pytest.mark.parametrize("name", ["side by side", "policies of one order"])
def test_ranks_of_the_same_loaders_get_their_batches(two_ranks: dict[str, list[Any]], name: str) -> None:
    for one, other in zip(*two_ranks[name], strict=True):
        assert len(one) == len(other) == 2
        assert [state for _, state in one] == [state for _, state in other]


def test_ranks_of_which_one_was_restored_are_told_where_each_of_them_stands(
    two_ranks: dict[str, list[Any]],
) -> None:
    for found in two_ranks["restored on one"]:
        assert "ranks [0] and [1] differ in cursors, step (0, 2)" in _refused(found)
        assert "restore the same state on all ranks" in _refused(found)


def test_loaders_that_were_closed_are_made_again(two_ranks: dict[str, list[Any]]) -> None:
    alone = JOBS["two_loaders"]("filter", 0)
    ranked = [
        [one + other for one, other in zip(*steps, strict=True)]
        for steps in zip(*two_ranks["made again"], strict=True)
    ]
    assert ranked == alone
