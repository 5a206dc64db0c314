"""Steps and shares, against global batches written out as lists of (lane, row)."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.errors import InternalError, PlanError
from dataflow.order.batches import (
    Batching,
    RankShare,
    Remainder,
    Steps,
    check_batch,
    check_length,
    split,
)

Cells = list[tuple[int, int]]
REMAINDERS: tuple[Remainder, ...] = ("drop", "pad", "keep")


@st.composite
def plans(draw: st.DrawFn) -> tuple[Batching, list[int], int]:
    lanes = draw(st.integers(1, 6))
    batch = lanes * draw(st.integers(1, 4))
    even = draw(st.booleans())
    length = st.integers(8, 10) if even else st.integers(0, 25)
    lengths = draw(st.lists(length, min_size=lanes, max_size=lanes))
    remainder = draw(st.sampled_from(REMAINDERS))
    return Batching(batch=batch, lanes=lanes, remainder=remainder), lengths, draw(st.integers(1, batch))


def global_batches(batching: Batching, lengths: list[int]) -> list[Cells]:
    """The (lane, row) of each global batch, sorted by lane."""
    cells = sorted((row, lane) for lane, n in enumerate(lengths) for row in range(n))
    size = batching.batch
    batches = [sorted((lane, row) for row, lane in cells[i : i + size]) for i in range(0, len(cells), size)]
    return [b for b in batches if len(b) == size or batching.remainder != "drop"]


def cells_of(taken: RankShare) -> Cells:
    """What fills each slot of a rank."""
    rows = [(part.lane, part.start + i) for part in taken.parts for i in range(part.rows)]
    return rows if taken.slots is None else [rows[i] for i in taken.slots.tolist()]


@given(plans())
def test_the_shares_of_all_ranks_are_the_global_batch_on_any_world(
    case: tuple[Batching, list[int], int],
) -> None:
    batching, lengths, world = case
    steps = Steps(batching, lengths)
    expected = global_batches(batching, lengths)
    assert steps.count == len(expected)
    for step, cells in enumerate(expected):
        shares = [steps.share(step, rank, world) for rank in range(world)]
        sizes = [len(cells_of(taken)) for taken in shares]
        assert max(sizes) - min(sizes) <= 1
        slots = [cell for taken in shares for cell in cells_of(taken)]
        if batching.remainder != "pad":
            assert slots == cells
            assert all(taken.valid is None for taken in shares)
            continue
        size = batching.batch
        assert slots == [cells[j * len(cells) // size] for j in range(size)]
        valid = [
            v
            for taken in shares
            for v in ([True] * len(cells_of(taken)) if taken.valid is None else taken.valid)
        ]
        first = [cell not in slots[:j] for j, cell in enumerate(slots)]
        assert [bool(v) for v in valid] == first
        assert sum(first) == len(cells)


@given(plans())
def test_parts_are_in_lane_order_and_never_empty(case: tuple[Batching, list[int], int]) -> None:
    batching, lengths, world = case
    steps = Steps(batching, lengths)
    for step in range(steps.count):
        for rank in range(world):
            lanes = [part.lane for part in steps.share(step, rank, world).parts]
            assert lanes == sorted(set(lanes))
            assert all(part.rows > 0 for part in steps.share(step, rank, world).parts)


@given(plans(), st.data())
def test_a_run_of_regular_steps_is_the_shares_of_each(
    case: tuple[Batching, list[int], int], data: st.DataObject
) -> None:
    batching, lengths, world = case
    steps = Steps(batching, lengths)
    each = batching.batch // batching.lanes
    assert steps.regular == min(lengths) // each
    start = data.draw(st.integers(0, steps.regular))
    for rank in range(world):
        run = steps.plan_run(start, steps.regular, rank, world)
        for step in range(start, steps.regular):
            assert [(p.lane, p.first + (step - start) * p.stride, p.rows) for p in run] == [
                tuple(p) for p in steps.share(step, rank, world).parts
            ]


@given(plans())
def test_the_lanes_cursors_are_the_rows_of_all_batches_before(case: tuple[Batching, list[int], int]) -> None:
    batching, lengths, _ = case
    steps = Steps(batching, lengths)
    before: Cells = []
    for step, cells in enumerate(global_batches(batching, lengths)):
        assert steps.taken(step).tolist() == [
            sum(lane == k for lane, _ in before) for k in range(len(lengths))
        ]
        before += cells


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 3))
def test_all_ranks_together_read_world_plus_lanes_minus_gcd_parts(lanes: int, world: int, times: int) -> None:
    batch = math.lcm(lanes, world) * times
    steps = Steps(Batching(batch=batch, lanes=lanes), [batch // lanes] * lanes)
    assert sum(len(steps.share(0, r, world).parts) for r in range(world)) == world + lanes - math.gcd(
        lanes, world
    )


def test_endless_lanes_have_regular_steps_without_end() -> None:
    steps = Steps(Batching(batch=12, lanes=3), None)
    far = 10**9
    assert steps.endless
    assert far < steps.regular
    assert steps.taken(far).tolist() == [4 * far] * 3
    assert cells_of(steps.share(far, 1, 2)) == [
        (1, 4 * far + 2),
        (1, 4 * far + 3),
        *((2, 4 * far + i) for i in range(4)),
    ]


def test_a_rank_beyond_the_rows_of_a_kept_batch_takes_nothing() -> None:
    assert split([1, 0], [5, 5], 1, 1, 2) == RankShare((), None, None)
    assert split([0, 0], [5, 5], 0, 0, 2) == RankShare((), None, None)


def build(batch: int, lanes: int, remainder: Remainder, rows: int) -> Steps:
    return Steps(Batching(batch=batch, lanes=lanes, remainder=remainder), [rows // lanes] * lanes)


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (lambda: check_batch(10, 4, 3), "use 12$"),
        (lambda: check_batch(10, 2, 3), "use 6 or 12$"),
        (lambda: check_batch(0, 3, 3), "use 3$"),
        (lambda: check_batch(-7, 3, 3), "use 3$"),
        (lambda: Batching(batch=0, lanes=1), "use 1$"),
        (lambda: Batching(batch=4, lanes=0), "1 or more lanes"),
        (lambda: Batching(batch=4, lanes=1, remainder="cut"), "'drop', 'pad' or 'keep'"),  # type: ignore[arg-type]
        (lambda: check_length(build(102, 1, "drop", 100), 3), "remainder='pad'"),
        (lambda: check_length(build(102, 1, "pad", 0), 3), "empty"),
        (lambda: check_length(build(99, 1, "keep", 100), 3), "remainder='pad'"),
        (lambda: check_length(build(4, 2, "pad", 100), 5), "at most 4 ranks"),
    ],
)
def test_a_start_that_cannot_work_says_what_would(check: Callable[[], None], says: str) -> None:
    with pytest.raises(PlanError, match=f"hint: .*{says}"):
        check()


def test_a_start_that_works_is_not_refused() -> None:
    check_batch(12, 4, 3)
    check_length(build(99, 1, "keep", 102), 3)
    check_length(build(99, 1, "pad", 100), 3)
    check_length(build(99, 1, "drop", 100), 99)


def test_steps_that_are_not_there_are_internal_errors() -> None:
    steps = build(10, 1, "drop", 25)
    with pytest.raises(InternalError, match="step 2 of 2"):
        steps.share(2, 0, 1)
    with pytest.raises(InternalError, match="regular"):
        steps.plan_run(0, 3, 0, 1)
    with pytest.raises(InternalError, match="1 lane lengths for 2 lanes"):
        Steps(Batching(batch=4, lanes=2), [5])
