"""Permutations: every index once, by an independent sort, even over all orders."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.order import permute
from dataflow.order.permute import feistel, permutation
from dataflow.order.philox import BLOCK, draws, key_of


@given(st.lists(st.integers(0, 2**62), max_size=60), st.integers(0, 99))
def test_a_permutation_is_the_stable_order_of_the_first_words(ids: list[int], seed: int) -> None:
    key = key_of(seed, 0, "x")
    words = draws(key, np.array(ids, np.int64), 1)[:, 0].tolist()
    assert permutation(key, np.array(ids, np.int64)).tolist() == sorted(
        range(len(ids)), key=lambda i: words[i]
    )


def test_equal_ids_keep_their_order() -> None:
    assert permutation(key_of(0, 0, "x"), np.full(100, 7)).tolist() == list(range(100))


@pytest.mark.parametrize("last", [BLOCK, BLOCK + 1, 3 * BLOCK - 1])
def test_blocks_join_without_a_seam_also_where_sources_meet(last: int) -> None:
    ids = np.concatenate([np.arange(BLOCK - 5), np.arange(last) + (1 << 40)])
    key = key_of(0, 3, "x")
    words = draws(key, ids, 1)[:, 0]
    assert (permutation(key, ids) == np.argsort(words, kind="stable")).all()


@given(st.integers(1, 3000), st.integers(0, 99), st.data())
def test_the_bijection_holds_every_index_once_and_any_part_of_it_alone(
    n: int, seed: int, data: st.DataObject
) -> None:
    key = key_of(seed, 0, "x")
    whole = feistel(key, n, np.arange(n))
    assert sorted(whole.tolist()) == list(range(n))
    start = data.draw(st.integers(0, n - 1))
    stop = data.draw(st.integers(start, n))
    assert (feistel(key, n, np.arange(start, stop)) == whole[start:stop]).all()


def test_above_the_limit_a_permutation_is_the_bijection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permute, "FEISTEL_ABOVE", 50)
    key = key_of(0, 0, "x")
    assert (permutation(key, np.arange(51) * 3) == feistel(key, 51, np.arange(51))).all()
    assert (permutation(key, np.arange(50)) != feistel(key, 50, np.arange(50))).any()


def test_the_bijection_of_ten_thousand_million_rows_is_evaluated_anywhere() -> None:
    rows = 10_000_000_000
    index = np.array([0, 1, rows // 2, rows - 1])
    images = feistel(key_of(0, 0, "x"), rows, index)
    assert len(set(images.tolist())) == 4
    assert images.min() >= 0
    assert images.max() < rows
    assert not (images == index).any()


@pytest.mark.parametrize("kind", ["sort", "bijection"])
def test_all_orders_of_four_are_equally_likely(kind: str) -> None:
    orders: Counter[tuple[int, ...]] = Counter()
    for turn in range(4800):
        key = key_of(1, turn, "x")
        index = np.arange(4)
        orders[tuple((permutation(key, index) if kind == "sort" else feistel(key, 4, index)).tolist())] += 1
    assert len(orders) == 24
    # Chi-square with 23 degrees of freedom is above 50 once in a thousand; the keys are fixed.
    assert sum((count - 200) ** 2 / 200 for count in orders.values()) < 50


def test_permutations_stay_what_they_were() -> None:
    key = key_of(7, 3, "shuffle.rows")
    assert permutation(key, np.arange(12)).tolist() == [1, 9, 7, 8, 2, 5, 10, 4, 6, 0, 11, 3]
    assert permutation(key, np.arange(12) + (5 << 40)).tolist() == [1, 7, 3, 5, 0, 8, 10, 4, 9, 11, 2, 6]
    assert feistel(key, 12, np.arange(12)).tolist() == [11, 7, 9, 10, 4, 6, 5, 1, 2, 0, 8, 3]
