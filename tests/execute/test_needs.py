"""Which rows of a lane a rank delivers."""

from __future__ import annotations

import numpy as np
import pytest

from dataflow.execute.needs import ALL_ROWS, Needs


def mask(needs: Needs, start: int, stop: int) -> list[int]:
    found = needs.mask(start, stop)
    return list(range(start, stop)) if found is None else (start + np.flatnonzero(found)).tolist()


def test_of_every_step_the_first_rows_are_delivered_up_to_the_last_step() -> None:
    needs = Needs(first=4, count=2, stride=5, until=14)
    assert mask(needs, 0, 20) == [4, 5, 9, 10]


def test_the_steps_at_the_end_have_rows_of_their_own() -> None:
    needs = Needs(first=0, count=1, stride=4, until=8, extra=((9, 11), (12, 13)))
    assert mask(needs, 0, 16) == [0, 4, 9, 10, 12]


@pytest.mark.parametrize(("start", "stop"), [(0, 3), (2, 9), (7, 7)])
def test_a_part_of_a_lane_is_asked_for_as_the_whole_is(start: int, stop: int) -> None:
    needs = Needs(first=1, count=2, stride=3, until=8)
    assert mask(needs, start, stop) == [row for row in mask(needs, 0, 20) if start <= row < stop]


def test_where_all_rows_are_delivered_there_is_no_mask() -> None:
    assert ALL_ROWS.mask(5, 1_000) is None
    assert Needs(first=0, count=3, stride=3, until=9).mask(0, 9) is None


def test_a_rank_without_a_row_in_a_step_delivers_none() -> None:
    assert mask(Needs(first=0, count=0, stride=0, until=0), 0, 5) == []
