"""Ranks compare what shapes their order before they exchange anything else."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest

from dataflow.errors import RankError
from dataflow.execute.alike import check_alike

WAIT_S = 30
STATE: dict[str, Any] = {
    "version": 1, "batch": 12, "lanes": 4, "windows": [9], "shape": {"seed": "a", "filter": "b"},
    "sources": [{"name": "/mnt/one", "number": 0, "hash": "c", "rows": 240, "files": 1}],
}  # fmt: skip


class _Table:
    """All-gathers of ranks that are threads; keeps what was told in each round."""

    def __init__(self, world: int) -> None:
        self.rounds: list[list[list[int]]] = []
        self._told: dict[int, list[int]] = {}
        self._full = Barrier(world, self._close)

    def _close(self) -> None:
        self.rounds.append([self._told[rank] for rank in sorted(self._told)])

    def all_gather(self, rank: int, numbers: Sequence[int]) -> list[list[int]]:
        self._told[rank] = list(numbers)
        self._full.wait(WAIT_S)
        return self.rounds[-1]


def _checked(states: Sequence[dict[str, Any]]) -> tuple[_Table, list[Future[None]]]:
    table = _Table(len(states))
    with ThreadPoolExecutor(len(states)) as threads:
        found = [
            threads.submit(check_alike, partial(table.all_gather, rank), state, hint="as one")
            for rank, state in enumerate(states)
        ]
    return table, found


def _differences(*states: dict[str, Any]) -> str:
    """The one message that all ranks have."""
    _, found = _checked(states)
    errors = [future.exception() for future in found]
    assert all(isinstance(error, RankError) and error.hint == "as one" for error in errors)
    (message,) = {str(error).partition("\n")[0] for error in errors}
    return message.removeprefix("the ranks of a loader are not alike: ").removesuffix(".")


def test_ranks_that_are_alike_tell_each_other_two_numbers() -> None:
    table, found = _checked([STATE, dict(reversed(STATE.items())), STATE])
    assert [future.exception() for future in found] == [None] * 3
    assert [[len(numbers) for numbers in told] for told in table.rounds] == [[2, 2, 2]]


def test_a_source_may_lie_at_another_path() -> None:
    _, found = _checked([STATE, STATE | {"sources": [STATE["sources"][0] | {"name": "/mnt/two"}]}])
    assert [future.exception() for future in found] == [None] * 2


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"batch": 24}, "batch (12, 24)"),
        ({"windows": [8]}, "windows"),
        ({"shape": {"seed": "a", "filter": "z"}}, "filter"),
        ({"shape": {"seed": "a"}}, "filter"),
        ({"sources": [STATE["sources"][0] | {"hash": "z"}]}, "sources"),
        ({"step": 3}, "step"),
        ({"lanes": 2, "shape": {"seed": "z", "filter": "b"}}, "lanes (4, 2), seed"),
    ],
)
def test_what_differs_is_named_with_its_numbers(other: dict[str, Any], named: str) -> None:
    assert _differences(STATE, STATE, STATE | other) == f"ranks [0, 1] and [2] differ in {named}"


def test_ranks_that_differ_in_several_ways_are_listed_by_them() -> None:
    two, three = STATE | {"batch": 24}, STATE | {"batch": 36, "lanes": 2}
    assert _differences(STATE, two, three, two) == (
        "ranks [0] and [1, 3] and [2] differ in batch (12, 24, 36); ranks [0, 1, 3] and [2] differ in lanes (4, 2)"
    )
