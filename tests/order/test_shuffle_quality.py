"""Shuffle quality: the two ends, the definition, and clustered data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.order.epoch import EpochOrder
from dataflow.order.permute import permutation
from dataflow.order.philox import key_of
from dataflow.order.quality import shuffle_quality
from dataflow.order.stream import Leaf, read, shuffle
from dataflow.order.windows import ids


def test_file_order_is_one_and_zero_and_the_reverse_minus_one() -> None:
    assert shuffle_quality(np.arange(100)) == (1.0, 0.0)
    assert shuffle_quality(np.arange(100)[::-1]).rank_correlation == pytest.approx(-1.0)
    assert shuffle_quality(np.arange(1)) == (1.0, 0.0)


@given(st.permutations(range(9)))
def test_the_correlation_is_pearsons_of_the_ranks(order: list[int]) -> None:
    quality = shuffle_quality(np.array(order) * 7 + 3)
    assert quality.rank_correlation == pytest.approx(np.corrcoef(order, np.arange(9))[0, 1])
    moved = [abs(place - position) for place, position in enumerate(order)]
    assert quality.distance == pytest.approx(sum(moved) / 9 / ((9 - 1 / 9) / 3))


def test_full_shuffles_have_a_distance_of_one_on_average_and_no_correlation() -> None:
    found = [shuffle_quality(permutation(key_of(0, turn, "x"), np.arange(400))) for turn in range(200)]
    assert np.mean([q.distance for q in found]) == pytest.approx(1.0, abs=0.01)
    assert np.mean([q.rank_correlation for q in found]) == pytest.approx(0.0, abs=0.01)
    assert max(abs(q.rank_correlation) for q in found) < 4 / 400**0.5


def test_shuffled_fragments_do_not_stay_where_they_were() -> None:
    stream = shuffle(read(Leaf(0, np.arange(0, 20_001, 50), True, True)), 1000)
    order = EpochOrder(stream, seed=0, lanes=1, turn=0, chunk_rows=1000)
    delivered = np.concatenate([ids(stream, w.resolve()) for w in order.windows(0)])
    quality = shuffle_quality(delivered)
    assert abs(quality.rank_correlation) < 4 / 400**0.5
    assert quality.distance == pytest.approx(1.0, abs=0.1)


def test_one_long_fragment_without_row_ranges_is_hardly_shuffled_and_the_figures_say_so() -> None:
    stream = shuffle(read(Leaf(0, np.array([0, 20_000]), False, True)), 100)
    order = EpochOrder(stream, seed=0, lanes=1, turn=0, chunk_rows=1000)
    quality = shuffle_quality(np.concatenate([ids(stream, w.resolve()) for w in order.windows(0)]))
    assert quality.rank_correlation > 0.99
    assert quality.distance < 0.01
