"""The lanes of a mixture, against the design's sentences followed row by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dataflow.order.mixture import Schedule
from dataflow.order.mixture_lanes import MixtureLanes, Until
from dataflow.order.sigma import Sigma


@dataclass(frozen=True)
class Case:
    weights: tuple[int, ...]
    sizes: tuple[int, ...]
    most: tuple[int | None, ...]
    lanes: int
    until: Until

    def mixed(self) -> MixtureLanes:
        return MixtureLanes(
            Sigma(Schedule.fresh(self.weights)), self.sizes, self.most, self.lanes, self.until
        )


@st.composite
def cases(draw: st.DrawFn, untils: tuple[Until, ...] = ("first", "all", "forever")) -> Case:
    weights = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=5)))
    sizes = tuple(draw(st.integers(1, 40)) for _ in weights)
    caps = [draw(st.sampled_from([None, None, 1, 2, 3])) for _ in weights]
    until = draw(st.sampled_from(untils))
    if until == "forever":
        caps[draw(st.integers(0, len(caps) - 1))] = None
    most = tuple(None if cap is None else cap * size for cap, size in zip(caps, sizes, strict=True))
    return Case(weights, sizes, most, draw(st.integers(1, 6)), until)


def followed(case: Case, lane: int, rows: int) -> list[int]:
    """The sources of the first rows of a lane."""
    order = Sigma(Schedule.fresh(case.weights)).run(0, 3000).tolist()
    own = [sum(g % case.lanes == lane for g in range(size)) for size in case.sizes]
    most: list[float] = []
    for rows_of, size in zip(case.most, case.sizes, strict=True):
        bound = size if rows_of is None and case.until == "first" else rows_of
        most.append(np.inf if bound is None else sum(g % case.lanes == lane for g in range(bound)))
    taken = [0] * len(own)
    out: list[int] = []
    for source in order[lane:]:
        over = taken[source] >= most[source]
        if len(out) == rows or (case.until == "first" and over):
            break
        if case.until == "all" and all(t >= o for t, o in zip(taken, own, strict=True)):
            break
        if not over:
            taken[source] += 1
            out.append(source)
    return out


@given(cases(("first", "all")))
def test_lanes_end_where_their_sources_do(case: Case) -> None:
    expected = [len(followed(case, lane, 3000)) for lane in range(case.lanes)]
    assert case.mixed().lengths == tuple(expected)


@given(cases(), st.data())
def test_a_lane_goes_on_from_any_row(case: Case, data: st.DataObject) -> None:
    mixed = case.mixed()
    lane = data.draw(st.integers(0, case.lanes - 1))
    whole = followed(case, lane, 200)
    row = data.draw(st.integers(0, len(whole)))
    index = mixed.index(lane, row)
    assert mixed.rows(lane, index) == row
    assert mixed.taken(lane, index).tolist() == np.bincount(whole[:row], minlength=len(case.sizes)).tolist()
    rest = whole[row : row + data.draw(st.integers(0, 50))]
    run = mixed.run(lane, index, len(rest))
    assert run.sources.tolist() == rest
    assert mixed.rows(lane, run.stop) == row + len(rest)


def test_endless_lanes_have_no_length() -> None:
    case = Case((1, 2), (3, 4), (None, None), 2, "forever")
    assert case.mixed().lengths is None
    assert case.mixed().furthest([5, 4]) == (5, 5)


def test_a_source_that_may_give_no_more_is_passed_over_and_the_others_keep_their_ratio() -> None:
    mixed = Case((2, 1, 1), (4, 30, 30), (8, None, None), 1, "forever").mixed()
    sources = mixed.run(0, 0, 48).sources.tolist()
    assert [sources.count(source) for source in range(3)] == [8, 20, 20]
    assert sorted(sources[-20:]) == [1] * 10 + [2] * 10
