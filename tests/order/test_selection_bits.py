"""Rank and select on packed bits, against plain lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dataflow.order.selection import Bits

FLAGS = st.one_of(
    st.lists(st.booleans(), max_size=300),
    st.integers(0, 300).map(lambda n: [False] * n),
    st.integers(0, 300).map(lambda n: [True] * n),
)


def packed(flags: list[bool]) -> Bits:
    return Bits.unpacked(np.packbits(np.array(flags, np.bool_), bitorder="little"))


@given(FLAGS)
def test_rank_counts_the_bits_before_a_row_and_nth_finds_them_again(flags: list[bool]) -> None:
    bits = packed(flags)
    rows = [i for i, flag in enumerate(flags) if flag]
    assert bits.count == len(rows)
    assert bits.rank(np.arange(len(flags) + 1)).tolist() == [sum(flags[:i]) for i in range(len(flags) + 1)]
    assert bits.nth(np.arange(len(rows))).tolist() == rows


@given(FLAGS, st.data())
def test_the_rows_of_a_range_are_counted_from_its_start(flags: list[bool], data: st.DataObject) -> None:
    bits = packed(flags)
    start = data.draw(st.integers(0, len(flags)))
    stop = data.draw(st.integers(start, len(flags)))
    assert bits.set_between(start, stop).tolist() == [i for i, flag in enumerate(flags[start:stop]) if flag]
