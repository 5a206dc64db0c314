"""Reused memory: never handed out twice at once, and given back when the last array over it dies."""

from __future__ import annotations

import errno
import mmap
import weakref
from typing import NoReturn

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow.execute import buffers
from dataflow.execute.buffers import BufferPool

KINDS = st.sampled_from(["int64", "float16", "bool", "uint8"])


@given(
    st.lists(st.tuples(st.integers(0, 60), KINDS, st.booleans(), st.booleans()), max_size=30),
    st.integers(0, 1 << 22),
)
@settings(max_examples=40)
def test_no_live_array_shares_memory_with_another(
    steps: list[tuple[int, str, bool, bool]], keep_bytes: int
) -> None:
    pool = BufferPool(keep_bytes)
    live: list[tuple[np.ndarray, np.generic]] = []
    for number, (size, kind, drop, view) in enumerate(steps):
        array = pool.empty((size * 1000 + 1, 3), kind)
        assert array.shape == (size * 1000 + 1, 3)
        assert array.dtype == kind
        assert array.flags.writeable
        assert array.flags.c_contiguous
        array[...] = number % 2 if kind == "bool" else number
        # A view keeps its memory alive as the array itself does.
        live.append((array[-1:] if view else array, array[0, 0]))
        del array
        if drop:
            live.pop(len(live) // 2)
    for left, value in live:
        assert (left == value).all()
    live.clear()
    left = None  # type: ignore[assignment]
    assert pool.leased_bytes == 0


def test_memory_is_used_again_and_not_beyond_what_may_be_kept() -> None:
    pool = BufferPool(keep_bytes=1 << 20)
    first = pool.empty((100_000,), "uint8")
    address = first.ctypes.data
    del first
    again = pool.empty((100_000,), "uint8")
    assert again.ctypes.data == address
    assert pool.leased_bytes >= 100_000


def test_the_pool_may_die_before_its_arrays() -> None:
    pool = BufferPool(keep_bytes=1 << 20)
    array = pool.empty((200_000,), "uint8")
    array[...] = 7
    del pool
    assert (array == 7).all()


def test_memory_that_the_system_refuses_is_not_counted_as_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(size: int) -> NoReturn:
        raise OSError(errno.ENOMEM, "no memory")

    pool = BufferPool(keep_bytes=1 << 20)
    with monkeypatch.context() as patched:
        patched.setattr(buffers, "_fresh", refuse)
        with pytest.raises(OSError, match="no memory"):
            pool.empty((200_000,), "uint8")
    assert pool.leased_bytes == 0
    array = pool.empty((200_000,), "uint8")
    assert pool.leased_bytes >= array.nbytes


def test_a_closed_pool_lets_go_of_memory_in_the_moment_in_which_it_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[weakref.ref[mmap.mmap]] = []
    fresh = buffers._fresh

    def noted(size: int) -> mmap.mmap:
        memory = fresh(size)
        made.append(weakref.ref(memory))
        return memory

    monkeypatch.setattr(buffers, "_fresh", noted)
    pool = BufferPool(keep_bytes=1 << 24)
    arrays = [pool.empty((1 << 20,), "uint8") for _ in range(3)]
    # One comes back before the end, the others behind it, when nobody asks the pool for anything any more.
    del arrays[0]
    assert made[0]() is not None
    pool.close()
    arrays.clear()
    assert [memory() for memory in made] == [None, None, None]
    assert pool.leased_bytes == 0
