"""Random words: the published vectors, an independent computation, and golden keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.order.philox import BLOCK, Key, Rounds, draws, key_of

WORDS = st.integers(0, 2**32 - 1)


def one_by_one(counter: list[int], key: list[int]) -> list[int]:
    """Ten rounds on whole numbers, as the paper's figure draws them."""
    a, b, c, d = counter
    k, m = key
    for _ in range(10):
        (h0, l0), (h1, l1) = divmod(a * 0xD2511F53, 2**32), divmod(c * 0xCD9E8D57, 2**32)
        a, b, c, d = h1 ^ b ^ k, l1, h0 ^ d ^ m, l0
        k, m = (k + 0x9E3779B9) % 2**32, (m + 0xBB67AE85) % 2**32
    return [a, b, c, d]


def words(counter: list[int], key: list[int]) -> list[int]:
    low, high, sub, quad = counter
    one, two, three = (np.array([value], np.uint64) for value in (low, high, sub))
    return [int(w[0]) for w in Rounds(1).words(Key(*key), one, two, three, quad)]


@pytest.mark.parametrize(
    ("counter", "key", "result"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_the_vectors_published_with_random123_come_out(counter: str, key: str, result: str) -> None:
    c, k, r = ([int(word, 16) for word in text.split()] for text in (counter, key, result))
    assert words(c, k) == r == one_by_one(c, k)
    assert int(Rounds(1).first_word(Key(*k), np.array(c[:1], np.uint64), *c[1:])[0]) == r[0]


@given(st.lists(WORDS, min_size=4, max_size=4), st.lists(WORDS, min_size=2, max_size=2))
def test_words_equal_ten_rounds_on_whole_numbers(counter: list[int], key: list[int]) -> None:
    expected = one_by_one(counter, key)
    assert words(counter, key) == expected
    assert (
        int(Rounds(1).first_word(Key(*key), np.array(counter[:1], np.uint64), *counter[1:])[0]) == expected[0]
    )


@given(
    st.lists(st.integers(0, 2**62), min_size=1, max_size=5),
    st.integers(0, 11),
    st.integers(0, 2**32 - 1),
    st.lists(WORDS, min_size=2, max_size=2),
)
def test_draw_d_is_word_d_mod_4_at_counter_d_div_4(
    ids: list[int], count: int, sub: int, key: list[int]
) -> None:
    got = draws(Key(*key), np.array(ids), count, sub)
    assert got.dtype == np.uint32
    assert got.shape == (len(ids), count)
    for number, row in zip(ids, got.tolist(), strict=True):
        for d, word in enumerate(row):
            assert word == one_by_one([number % 2**32, number >> 32, sub, d // 4], key)[d % 4]


def test_draws_do_not_depend_on_which_ids_are_asked_together() -> None:
    ids = np.arange(2 * BLOCK + 3) * 977 + (3 << 40)
    subs = np.arange(len(ids)) % 5
    key = key_of(1, 2, "crop")
    whole = draws(key, ids, 6, subs)
    for at in (0, BLOCK - 1, BLOCK, 2 * BLOCK + 2):
        assert (draws(key, ids[at : at + 1], 6, int(subs[at])) == whole[at]).all()


@pytest.mark.parametrize(
    ("names", "key"),
    [
        ((0, 0, "shuffle.fragments"), (0x8918D78A, 0x4E8AAFCE)),
        ((7, 3, "shuffle.rows"), (0xF7596608, 0xCE7F8B5B)),
        ((0, [2, 5], "shuffle.rows"), (0x3ECBD786, 0x262C81D2)),
        ((-1, 1 << 40, "größe"), (0x4789AB14, 0x3F8622F1)),
    ],
)
def test_keys_stay_what_they_were(names: tuple[int, int | list[int], str], key: tuple[int, int]) -> None:
    assert key_of(*names) == key


def test_draws_stay_what_they_were() -> None:
    got = draws(key_of(7, 3, "shuffle.rows"), np.array([0, (3 << 40) + 9]), 5, sub=2)
    assert got.tolist() == [
        [0xBC988553, 0x7A35058D, 0x2E255B24, 0x787ADC81, 0x854EED30],
        [0x4B0A1EB4, 0x2AF85E84, 0xCE6AB608, 0x9913438B, 0xAD674F45],
    ]


def test_a_turn_may_be_any_sequence_and_seed_turn_and_name_all_count() -> None:
    assert key_of(0, (2, 5), "x") == key_of(0, [2, 5], "x")
    names: list[tuple[int, int | list[int], str]] = [
        (0, 1, "x"), (1, 0, "x"), (10, 1, "x"), (0, 1, "y"), (0, [1], "x"), (0, [0, 1], "x"), (0, [1, 0], "x")
    ]  # fmt: skip
    assert len({key_of(*n) for n in names}) == len(names)
