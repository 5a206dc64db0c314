"""The windows of an epoch, against the design's sentences worked out row by row on plain lists."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.errors import InternalError
from dataflow.order import permute, sequence
from dataflow.order.epoch import EpochOrder
from dataflow.order.philox import draws, key_of
from dataflow.order.stream import Leaf, Stream, concat, read, repeat, select, shuffle, take, zip_streams
from dataflow.order.windows import ids, locate, span_ids

WINDOWS: tuple[int | Literal["full"] | None, ...] = (None, 1, 3, 10, 40, 500, "full")


@dataclass(frozen=True)
class Source:
    """One source as the oracle sees it: rows of each fragment, and which rows a filter keeps."""

    number: int
    counts: tuple[int, ...]
    row_ranges: bool
    kept: frozenset[int]

    @property
    def rows(self) -> int:
        return sum(self.counts)

    def leaf(self) -> Leaf:
        starts = np.array([sum(self.counts[:i]) for i in range(len(self.counts) + 1)], np.int64)
        return Leaf(self.number, starts, self.row_ranges, True)


@dataclass(frozen=True)
class Case:
    sources: tuple[Source, ...]
    window: int | Literal["full"] | None
    passes: int
    lanes: int
    seed: int
    epoch: int
    chunk_rows: int

    @property
    def flags(self) -> list[bool]:
        return [row in s.kept for s in self.sources for row in range(s.rows)]

    def stream(self) -> Stream:
        stream = select(concat(*(read(s.leaf()) for s in self.sources)), np.array(self.flags, np.bool_))
        return repeat(stream if self.window is None else shuffle(stream, self.window), self.passes)

    def order(self, stream: Stream | None = None) -> EpochOrder:
        return EpochOrder(
            stream or self.stream(),
            seed=self.seed,
            lanes=self.lanes,
            turn=self.epoch,
            chunk_rows=self.chunk_rows,
        )


@st.composite
def cases(draw: st.DrawFn, windows: tuple[int | Literal["full"] | None, ...] = WINDOWS) -> Case:
    sources = []
    for number in draw(st.sampled_from([[0], [3], [0, 1]])):
        counts = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 8, 13, 40]), min_size=1, max_size=7)))
        total = sum(counts)
        modulus = draw(st.sampled_from([1, 1, 2, 3]))
        kept = frozenset(row for row in range(total) if modulus == 1 or (row * 7 + row // 5) % modulus)
        sources.append(Source(number, counts, draw(st.booleans()), kept))
    return Case(
        sources=tuple(sources),
        window=draw(st.sampled_from(windows)),
        passes=draw(st.sampled_from([1, 1, 2, 3])),
        lanes=draw(st.sampled_from([1, 2, 3, 4, 7])),
        seed=draw(st.integers(0, 9)),
        epoch=draw(st.integers(0, 3)),
        chunk_rows=draw(st.integers(1, 30)),
    )


# ---- the oracle: units are lists of (id, source row); windows are lists of those lists


@dataclass
class Unit:
    """Source rows low..high of one fragment, and the ids of the rows that are kept."""

    low: int
    high: int
    ids: list[int]

    def split(self, rows: int) -> tuple[Unit, Unit]:
        at = self.ids[rows] % (1 << 40)
        return Unit(self.low, at, self.ids[:rows]), Unit(at, self.high, self.ids[rows:])


def in_order(group_ids: list[int], seed: int, turn: int, what: str) -> list[int]:
    """The permutation of groups (or rows) by their first random word."""
    words = draws(key_of(seed, turn, what), np.array(group_ids, np.int64), 1)[:, 0].tolist()
    return sorted(range(len(words)), key=words.__getitem__)


def row_sequence(case: Case, turn: int) -> list[Unit]:
    groups: list[tuple[int, list[Unit]]] = []
    for source in case.sources:
        base, end = source.number << 40, 0
        for count in source.counts:
            begin, end = end, end + count
            if case.window == "full":
                groups += [
                    (base + row, [Unit(row, row + 1, [base + row])])
                    for row in range(begin, end)
                    if row in source.kept
                ]
                continue
            slices = 1 if case.window is None else max(1, math.ceil(count / case.window))
            cuts = [begin + count * i // slices for i in range(slices + 1)]
            units = [
                Unit(low, high, [base + row for row in range(low, high) if row in source.kept])
                for low, high in pairwise(cuts)
            ]
            units = [unit for unit in units if unit.ids]
            if units and source.row_ranges:
                groups += [(base + unit.low, [unit]) for unit in units]
            elif units:
                groups.append((base + begin, units))
    if case.window is not None:
        order = in_order([first for first, _ in groups], case.seed, turn, "shuffle.fragments")
        groups = [groups[i] for i in order]
    return [unit for _, units in groups for unit in units]


def lane_runs(units: list[Unit], lengths: list[int]) -> list[list[Unit]]:
    rest, runs = list(reversed(units)), []
    for length in lengths:
        run: list[Unit] = []
        while length:
            unit = rest.pop()
            if len(unit.ids) > length:
                unit, behind = unit.split(length)
                rest.append(behind)
            run.append(unit)
            length -= len(unit.ids)
        runs.append(run)
    return runs


def lane_windows(case: Case, number: int) -> list[list[list[int]]]:
    """For every lane of a pass its windows, each the ids in delivery order."""
    rows = sum(case.flags)
    turn = case.epoch * case.passes + number
    numbers = range(number * rows, (number + 1) * rows)
    lengths = [sum(g % case.lanes == lane for g in numbers) for lane in range(case.lanes)]
    out = []
    for lane, run in enumerate(lane_runs(row_sequence(case, turn), lengths)):
        if not isinstance(case.window, int):
            flat = [i for unit in run for i in unit.ids]
            out.append([flat[i : i + case.chunk_rows] for i in range(0, len(flat), case.chunk_rows)])
            continue
        windows: list[list[int]] = []
        room = 0.0
        for unit in run:
            size = unit.high - unit.low
            if not windows or size > room:
                room = case.window if windows else case.window * (lane + 1) / case.lanes
                windows.append([])
            room -= size
            windows[-1] += unit.ids
        out.append([[w[i] for i in in_order(w, case.seed, turn, "shuffle.rows")] for w in windows])
    return out


# ---- properties


@given(cases())
def test_every_window_holds_what_the_design_says_in_that_order(case: Case) -> None:
    stream = case.stream()
    order = case.order(stream)
    passes = [lane_windows(case, number) for number in range(case.passes)] if stream.n else []
    for lane in range(case.lanes):
        windows = list(order.windows(lane))
        expected = [(number, window) for number, lanes in enumerate(passes) for window in lanes[lane]]
        assert [(w.pass_number, ids(stream, w.resolve()).tolist()) for w in windows] == expected
        assert order.lane_rows(lane) == sum(w.rows for w in windows)


@given(cases((3, 10, 40, "full", None)), st.randoms())
def test_a_window_found_at_a_row_is_the_one_met_on_the_way(case: Case, chance: random.Random) -> None:
    order, again = case.order(), case.order()
    lane = chance.randrange(case.lanes)
    windows = list(order.windows(lane))
    at = 0
    for window in windows:
        assert (window.start, window.rows > 0) == (at, True)
        at = window.stop
    for _ in range(5 if windows else 0):
        row = chance.randrange(at)
        found = again.window_at(lane, row)
        same = next(w for w in windows if w.start <= row < w.stop)
        assert (found.start, found.rows, found.pass_number) == (same.start, same.rows, same.pass_number)
        assert ids(again.stream, found.resolve()).tolist() == ids(order.stream, same.resolve()).tolist()
        assert [w.start for w in again.windows(lane, row)] == [w.start for w in windows if w.stop > row]


@given(cases(), st.integers(1, 60), st.randoms())
def test_windows_of_other_sizes_go_on_with_the_same_rows_at_any_window(
    case: Case, chunk_rows: int, chance: random.Random
) -> None:
    order = case.order()
    other = order.in_chunks(chunk_rows)
    lane = chance.randrange(case.lanes)
    windows = list(order.windows(lane))
    at = chance.choice(windows).start if windows else 0
    behind = list(other.windows(lane, at))
    if isinstance(case.window, int):
        assert [(w.start, w.rows) for w in behind] == [(w.start, w.rows) for w in windows if w.start >= at]
    else:
        assert all(w.rows <= chunk_rows for w in behind)
    rows = [(w.pass_number, i) for w in windows for i in ids(order.stream, w.resolve()).tolist()]
    first = behind[0].start if behind else at
    got = [(w.pass_number, i) for w in behind for i in ids(other.stream, w.resolve()).tolist()]
    assert got == rows[first:]
    assert first <= at


def test_an_order_in_other_windows_has_the_turn_of_each_pass_and_goes_on_as_it_did() -> None:
    source = shuffle(read(Leaf(0, np.arange(0, 41, 10), True, True)), "full")
    order = EpochOrder(source, seed=3, lanes=1, turn=lambda p: [2, p], chunk_rows=16, endless=True)
    orders = order, order.in_chunks(8)
    first, second = (
        [i for w in islice(some.windows(0), 20) for i in ids(source, w.resolve()).tolist()][:100]
        for some in orders
    )
    assert first == second
    assert len(first) == 100


@given(cases())
def test_spans_lie_in_one_fragment_and_name_the_rows_wanted(case: Case) -> None:
    stream = case.stream()
    order = case.order(stream)
    for window in (w for lane in range(case.lanes) for w in order.windows(lane)):
        resolved = window.resolve()
        assert sum(span.wanted for span in resolved.spans) == window.rows == resolved.rows
        for span in resolved.spans:
            starts = stream.leaves[span.leaf].starts
            assert starts[span.fragment] <= span.lo < span.hi <= starts[span.fragment + 1]
            if span.rows is not None:
                assert (span.rows[0], span.rows[-1]) == (span.lo, span.hi - 1)
                assert 0 < len(span.rows) < span.hi - span.lo


@given(cases((None, 3, 10, 40, "full")), st.booleans())
def test_the_inputs_of_a_zip_stay_side_by_side(case: Case, repeated: bool) -> None:
    first = concat(*(read(s.leaf()) for s in case.sources))
    n = first.n
    second = take(read(Leaf(9, np.array([0, n // 3, n, n + 5], np.int64), True, True)), n)
    pairs = select(zip_streams(first, second), np.array(case.flags, np.bool_))
    alone = select(first, np.array(case.flags, np.bool_))
    if case.window is not None:
        pairs, alone = shuffle(pairs, case.window), shuffle(alone, case.window)
    if repeated:
        pairs, alone = repeat(pairs, 2), repeat(alone, 2)
    partner = dict(
        zip([(s.number << 40) + r for s in case.sources for r in range(s.rows)], range(n), strict=True)
    )
    zipped, plain = case.order(pairs), case.order(alone)
    for lane in range(case.lanes):
        for a, b in zip(zipped.windows(lane), plain.windows(lane), strict=True):
            window = a.resolve()
            both = ids(pairs, window)
            assert both[:, 0].tolist() == ids(alone, b.resolve()).tolist()
            assert both[:, 1].tolist() == [(9 << 40) + partner[i] for i in both[:, 0].tolist()]
            assert window.positions is not None
            spans, order = locate(pairs.others[0], window.positions)
            there = span_ids(pairs.others[0], spans)
            there = there if order is None else there[order]
            assert (there if window.order is None else there[window.order]).tolist() == both[:, 1].tolist()


@given(cases((3, 10, 40, "full")))
def test_the_bijection_for_many_rows_keeps_every_row_once_per_pass(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permute, "FEISTEL_ABOVE", 5)
        patch.setattr(sequence, "FEISTEL_ABOVE", 5)
        stream = case.stream()
        order = case.order(stream)
        got: dict[int, list[int]] = {number: [] for number in range(case.passes)}
        for window in (w for lane in range(case.lanes) for w in order.windows(lane)):
            got[window.pass_number] += ids(stream, window.resolve()).tolist()
    rows = [(s.number << 40) + row for s in case.sources for row in sorted(s.kept)]
    assert all(sorted(delivered) == rows for delivered in got.values())


def test_lanes_without_shuffle_are_contiguous_parts_and_one_lane_is_file_order() -> None:
    stream = read(Leaf(0, np.array([0, 7, 20, 23]), True, True))
    for lanes in (1, 2, 5):
        order = EpochOrder(stream, seed=0, lanes=lanes, turn=0, chunk_rows=4)
        windows = [w for lane in range(lanes) for w in order.windows(lane)]
        assert np.concatenate([ids(stream, w.resolve()) for w in windows]).tolist() == list(range(23))


@pytest.mark.parametrize("window", [None, "full"])
def test_the_order_does_not_depend_on_the_rows_of_a_chunk(window: Literal["full"] | None) -> None:
    stream = read(Leaf(0, np.array([0, 7, 20, 23]), True, True))
    stream = stream if window is None else shuffle(stream, window)
    orders = []
    for chunk_rows in (1, 4, 1000):
        order = EpochOrder(stream, seed=0, lanes=2, turn=5, chunk_rows=chunk_rows)
        orders.append(
            [np.concatenate([ids(stream, w.resolve()) for w in order.windows(k)]).tolist() for k in (0, 1)]
        )
    assert orders[0] == orders[1] == orders[2]


def test_pass_p_of_repeat_n_has_the_keys_of_epoch_e_n_plus_p() -> None:
    source = shuffle(read(Leaf(0, np.arange(0, 101, 10), True, True)), 30)

    def delivered(stream: Stream, epoch: int) -> list[int]:
        order = EpochOrder(stream, seed=3, lanes=1, turn=epoch, chunk_rows=1)
        return [i for w in order.windows(0) for i in ids(stream, w.resolve()).tolist()]

    whole = [delivered(repeat(source, 2), epoch) for epoch in (0, 1)]
    alone = [delivered(source, epoch) for epoch in range(4)]
    assert whole == [alone[0] + alone[1], alone[2] + alone[3]]
    assert len({tuple(order) for order in alone}) == 4


def test_an_endless_source_of_a_mixture_goes_on_with_the_turn_of_each_pass() -> None:
    source = shuffle(read(Leaf(0, np.array([0, 2, 5]), True, True)), 3)
    order = EpochOrder(source, seed=0, lanes=3, turn=lambda number: [4, number], chunk_rows=1, endless=True)
    numbers: dict[int, int] = {}
    for lane in range(3):
        row = 0
        for window in order.windows(lane):
            for i in ids(source, window.resolve()).tolist():
                numbers[row * 3 + lane] = i
                row += 1
            if row > 40:
                break
    for number in range(20):
        assert sorted(numbers[g] for g in range(5 * number, 5 * number + 5)) == [0, 1, 2, 3, 4]


def test_a_source_smaller_than_the_lanes_and_an_empty_one_work() -> None:
    small = repeat(shuffle(read(Leaf(0, np.array([0, 2]), False, True)), 10), 3)
    order = EpochOrder(small, seed=0, lanes=4, turn=0, chunk_rows=1)
    rows = [[i for w in order.windows(lane) for i in ids(small, w.resolve()).tolist()] for lane in range(4)]
    assert [len(lane) for lane in rows] == [2, 2, 1, 1]
    assert sorted(i for lane in rows for i in lane) == [0, 0, 0, 1, 1, 1]
    empty = shuffle(read(Leaf(0, np.array([0, 0]), True, True)), 10)
    assert list(EpochOrder(empty, seed=0, lanes=4, turn=0, chunk_rows=1).windows(3)) == []


def test_windows_of_a_pass_that_is_no_longer_held_are_the_same() -> None:
    stream = repeat(shuffle(read(Leaf(0, np.arange(0, 60, 4), True, True)), 9), 6)
    order = EpochOrder(stream, seed=0, lanes=2, turn=0, chunk_rows=1)
    windows = list(order.windows(1))
    backwards = [ids(stream, w.resolve()).tolist() for w in reversed(windows)]
    again = [ids(stream, w.resolve()).tolist() for w in windows]
    assert backwards[::-1] == again


def test_rows_that_are_not_there_and_senseless_arguments_are_internal_errors() -> None:
    stream = read(Leaf(0, np.array([0, 4]), True, True))
    order = EpochOrder(stream, seed=0, lanes=2, turn=0, chunk_rows=3)
    for lane, row in ((0, 2), (2, 0), (0, -1)):
        with pytest.raises(InternalError, match="has no row"):
            order.window_at(lane, row)
    with pytest.raises(InternalError, match="lanes=0"):
        EpochOrder(stream, seed=0, lanes=0, turn=0, chunk_rows=3)


@pytest.mark.parametrize(
    ("counts", "window", "row_ranges", "lanes"),
    [
        ([3, 5, 2, 4], None, True, [[[0, 1, 2, 3], [4, 5, 6]], [[7, 8, 9, 10], [11, 12, 13]]]),
        ([3, 5, 2, 4], 6, True, [[[2, 0, 1], [4, 8, 3, 9]], [[7, 6, 5], [13, 11, 10, 12]]]),
        ([3, 5, 2, 4], "full", True, [[[9, 0, 1, 11], [8, 4, 3]], [[2, 7, 5, 6], [13, 12, 10]]]),
        ([3, 9, 2], 4, False, [[[2, 0, 1], [4, 6, 5, 3]], [[8, 7], [11, 10, 9], [13, 12]]]),
    ],
)
def test_lane_orders_stay_what_they_were(
    counts: list[int], window: int | Literal["full"] | None, row_ranges: bool, lanes: list[list[list[int]]]
) -> None:
    stream = read(Leaf(1, np.cumsum([0, *counts]), row_ranges, True))
    stream = stream if window is None else shuffle(stream, window)
    order = EpochOrder(stream, seed=7, lanes=2, turn=1, chunk_rows=4)
    got = [[(ids(stream, w.resolve()) - (1 << 40)).tolist() for w in order.windows(lane)] for lane in (0, 1)]
    assert got == lanes


def test_the_global_generators_are_neither_read_nor_set() -> None:
    before = random.getstate(), repr(np.random.get_state())
    stream = shuffle(read(Leaf(0, np.arange(0, 60, 4), True, True)), 9)
    first = next(EpochOrder(stream, seed=0, lanes=1, turn=0, chunk_rows=1).windows(0)).resolve()
    assert first.rows > 0
    assert (random.getstate(), repr(np.random.get_state())) == before
