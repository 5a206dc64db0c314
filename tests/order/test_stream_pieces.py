"""Composition in file order: against lists of rows; what is forbidden names what to write instead."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.errors import PlanError
from dataflow.order import stream as stream_module
from dataflow.order.stream import Leaf, Stream, concat, read, repeat, select, shuffle, skip, take, zip_streams
from dataflow.order.windows import locate, span_ids

COUNTS = st.lists(st.integers(0, 9), min_size=1, max_size=6)
Rows = list[tuple[int, ...]]
Built = tuple[Stream, Rows]


def leaf(number: int, counts: list[int], *, row_ranges: bool = True, single_rows: bool = True) -> Leaf:
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(counts, np.int64))])
    return Leaf(number, starts, row_ranges, single_rows)


def built(number: int, counts: list[int]) -> Built:
    return read(leaf(number, counts)), [((number << 40) + i,) for i in range(sum(counts))]


def rows_of(stream: Stream) -> Rows:
    """All rows in file order, each as the ids of its inputs."""
    everywhere = np.arange(stream.n)
    columns = [part.ids_of(*part.rows_at(everywhere)).tolist() for part in stream.inputs]
    return list(zip(*columns, strict=True))


@st.composite
def streams(draw: st.DrawFn) -> Built:
    """A random composition, and its rows."""
    stream, rows = built(0, draw(COUNTS))
    for number in range(1, 1 + draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["take", "skip", "select", "concat", "twice", "zip"]))
        if kind in ("take", "skip"):
            n = draw(st.integers(0, len(rows) + 2))
            stream, rows = (take(stream, n), rows[:n]) if kind == "take" else (skip(stream, n), rows[n:])
        elif kind == "select":
            flags = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
            keep = np.array(flags, np.bool_)
            stream = select(stream, keep if draw(st.booleans()) else np.packbits(keep, bitorder="little"))
            rows = [row for row, flag in zip(rows, flags, strict=True) if flag]
        elif kind == "twice":
            stream, rows = concat(stream, stream), rows + rows
        elif kind == "concat" and not stream.others:
            other, others = built(number, draw(COUNTS))
            if draw(st.booleans()):
                stream, rows = concat(stream, other), rows + others
            else:
                stream, rows = concat(other, stream), others + rows
        elif kind == "zip":
            other, others = built(number, [len(rows) // 2, len(rows) - len(rows) // 2])
            stream, rows = zip_streams(stream, other), [a + b for a, b in zip(rows, others, strict=True)]
    return stream, rows


@given(streams())
def test_a_composition_delivers_the_rows_that_lists_would(case: Built) -> None:
    stream, rows = case
    assert stream.n == len(rows)
    assert rows_of(stream) == rows
    assert (np.diff(stream.starts) > 0).all()
    for piece, (low, high) in enumerate(zip(stream.lo.tolist(), stream.hi.tolist(), strict=True)):
        starts = stream.leaves[int(stream.leaf[piece])].starts
        assert np.searchsorted(starts, low, "right") == np.searchsorted(starts, high, "left")


@given(streams(), st.data())
def test_rows_are_located_at_any_positions(case: Built, data: st.DataObject) -> None:
    stream, rows = case
    positions = data.draw(st.lists(st.integers(0, max(0, len(rows) - 1)), max_size=12 if rows else 0))
    for place, part in enumerate(stream.inputs):
        spans, order = locate(part, np.array(positions, np.int64))
        ids = span_ids(part, spans)
        assert (ids if order is None else ids[order]).tolist() == [rows[p][place] for p in positions]
        for span in spans:
            starts = part.leaves[span.leaf].starts
            assert starts[span.fragment] <= span.lo < span.hi <= starts[span.fragment + 1]


@given(streams(), st.data())
def test_two_selections_are_one(case: Built, data: st.DataObject) -> None:
    stream, rows = case
    first = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), np.bool_)
    second = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), np.bool_)
    twice = select(select(stream, first), second[first])
    assert rows_of(twice) == rows_of(select(stream, first & second))


def test_selections_compose_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "_SELECT_ROWS", 64)
    stream, rows = built(2, [100, 1, 63, 64, 200])
    odd = np.arange(len(rows)) % 2 == 1
    third = np.arange(int(odd.sum())) % 3 == 0
    assert rows_of(select(select(stream, odd), third)) == rows[1::2][::3]


def test_selecting_all_rows_gives_the_stream_itself() -> None:
    stream = shuffle(built(0, [3, 4])[0], 3)
    assert select(stream, np.ones(7, np.bool_)) is stream
    assert select(stream, np.array([0xFF], np.uint8)) is stream


def test_a_selection_goes_in_front_of_shuffle_and_repeat() -> None:
    stream = repeat(shuffle(built(0, [3, 4])[0], 3), 2)
    kept = select(stream, np.array([1, 0, 1, 0, 0, 0, 0], np.bool_))
    assert (kept.window, kept.passes, kept.n, kept.total) == (3, 2, 2, 4)
    assert len(kept.lo) == 1


def test_reading_a_source_without_empty_fragments_copies_nothing() -> None:
    source = leaf(0, [3, 4])
    assert np.shares_memory(read(source).lo, source.starts)
    assert np.shares_memory(read(source).hi, source.starts)


def test_repeat_multiplies() -> None:
    assert repeat(repeat(built(0, [3])[0], 2), 3).total == 18


A, B = built(0, [5])[0], built(1, [4])[0]
SHUFFLED, REPEATED, ZIPPED = shuffle(A, 3), repeat(A, 2), zip_streams(A, A)
SLOW = read(leaf(2, [5], single_rows=False))


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: concat(SHUFFLED, B), r"concat\(\.\.\.\)\.shuffle\(\)"),
        (lambda: concat(B, REPEATED), r"concat\(\.\.\.\)\.shuffle\(\)"),
        (lambda: concat(A, ZIPPED), r"zip\(concat"),
        (lambda: take(SHUFFLED, 3), r"take\(3\)\.shuffle\(\)"),
        (lambda: skip(REPEATED, 3), r"skip\(3\)\.shuffle\(\)"),
        (lambda: take(A, -1), "use 0 or more rows"),
        (lambda: skip(A, -1), "use 0 or more rows"),
        (lambda: zip_streams(A, SHUFFLED), r"zip\(\.\.\.\)\.shuffle\(\)"),
        (lambda: zip_streams(A, B), r"take\(4\) of the longer"),
        (lambda: shuffle(SHUFFLED, 3), "keep one shuffle"),
        (lambda: shuffle(REPEATED, 3), "in front of repeat"),
        (lambda: shuffle(A, 0), "1 or more rows"),
        (lambda: shuffle(SLOW, "full"), r"window=\"256MB\""),
        (lambda: shuffle(zip_streams(A, SLOW), "full"), r"window=\"256MB\""),
        (lambda: repeat(A, 0), "1 or more passes"),
        (lambda: select(A, np.ones(4, np.bool_)), "one bit for each row"),
        (lambda: select(A, np.zeros(2, np.uint8)), "one bit for each row"),
    ],
)
def test_what_the_order_cannot_do_is_an_error_that_says_what_to_write(
    build: Callable[[], Stream], says: str
) -> None:
    with pytest.raises(PlanError, match=f"hint: .*{says}"):
        build()
