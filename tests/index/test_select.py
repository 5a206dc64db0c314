"""Bitmaps of kept rows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lines_format import Lines, counted, opened, write_lines

from connectors.contract import FileInfo
from dataflow.errors import InternalError
from dataflow.index import Index, bits, select

Keep = Callable[[int], npt.NDArray[np.bool_]]


def multiples(index: Index, of: int, calls: list[int] | None = None) -> Keep:
    """Keeps the rows whose number in the source is a multiple."""

    def keep(number: int) -> npt.NDArray[np.bool_]:
        if calls is not None:
            calls.append(number)
        kept: npt.NDArray[np.bool_] = np.arange(index.starts[number], index.starts[number + 1]) % of == 0
        return kept

    return keep


def unpacked(bitmap: npt.NDArray[np.uint8], rows: int) -> list[bool]:
    return np.unpackbits(bitmap, count=rows, bitorder="little").astype(bool).tolist()


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=20),
    st.integers(1, 9),
    st.integers(1, 5),
    st.sampled_from([1, 7, 64, 10_000]),
    st.integers(1, 3),
)
def test_every_row_has_its_bit(counts: list[int], rows: int, of: int, task: int, threads: int) -> None:
    index = counted([FileInfo(f"/m/{n}", count) for n, count in enumerate(counts)], rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "_TASK_ROWS", task)
        bitmap = bits(index, "key", multiples(index, of), threads=threads)
    assert bitmap.dtype == np.uint8
    assert len(bitmap) == (index.rows + 7) // 8
    assert unpacked(bitmap, index.rows) == [i % of == 0 for i in range(index.rows)]
    assert not bitmap.flags.writeable


def test_a_bitmap_is_computed_once_for_each_key(folder: Path) -> None:
    index = opened(folder)
    calls: list[int] = []
    first = bits(index, "a", multiples(index, 2, calls))
    assert sorted(calls) == list(range(len(index.fragments)))
    again = bits(opened(folder), "a", multiples(index, 2, calls))
    assert len(calls) == len(index.fragments)
    assert again.tolist() == first.tolist()
    assert not again.flags.owndata
    other = bits(index, "b", multiples(index, 3, calls))
    assert other.tolist() != first.tolist()


def test_a_file_changed_in_place_with_size_and_rows_kept_is_filtered_again(folder: Path) -> None:
    before = opened(folder)
    bits(before, "a", multiples(before, 2))
    write_lines(folder / "a.lines", [{"x": 6 - x} for x in range(7)], mtime=2_000)
    index = opened(folder)
    assert index.hash == before.hash
    calls: list[int] = []
    bits(index, "a", multiples(index, 2, calls))
    assert calls


def test_other_options_of_the_format_are_filtered_apart(folder: Path) -> None:
    calls: list[int] = []
    for rows in (2, 3):
        index = opened(folder, format=Lines(rows=rows))
        bits(index, "a", multiples(index, 2, calls))
    assert len(calls) == 6 + 5


def test_a_damaged_bitmap_is_computed_again(folder: Path, private_cache: Path) -> None:
    index = opened(folder)
    first = bits(index, "a", multiples(index, 2)).tolist()
    (path,) = (private_cache / "select").glob("*.arrow")
    data = path.read_bytes()
    for damaged in (data[:-50], b"", data.replace(bytes(first), bytes(len(first)))):
        path.unlink()
        path.write_bytes(damaged)
        assert bits(index, "a", multiples(index, 2)).tolist() == first


def test_a_source_that_is_not_persistent_is_not_cached(private_cache: Path) -> None:
    index = counted([FileInfo("/m/a", 10)], rows=3)
    bits(index, "a", multiples(index, 2))
    assert not list(private_cache.rglob("*.arrow"))


def test_a_filter_of_the_wrong_shape_or_type_is_an_error() -> None:
    index = counted([FileInfo("/m/a", 10)], rows=3)
    with pytest.raises(InternalError, match=r"gave bool\[4\] for fragment 0 of 'counted', not bool\[3\]"):
        bits(index, "a", lambda number: np.ones(4, np.bool_))
    with pytest.raises(InternalError, match="gave int64"):
        bits(index, "a", lambda number: np.ones(3, np.int64))


def test_an_error_of_the_filter_is_passed_on_and_leaves_nothing(folder: Path, private_cache: Path) -> None:
    index = opened(folder)

    def fail(number: int) -> npt.NDArray[np.bool_]:
        raise RuntimeError(f"fragment {number}")

    with pytest.raises(RuntimeError, match="fragment 0"):
        bits(index, "a", fail)
    assert not list((private_cache / "select").glob("*"))
    assert bits(index, "a", multiples(index, 1)).tolist() == [0xFF, 0x07]


def test_fragments_are_filtered_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "_TASK_ROWS", 1)
    index = counted([FileInfo("/m/a", 6)], rows=3)
    both = threading.Barrier(2, timeout=30)

    def keep(number: int) -> npt.NDArray[np.bool_]:
        both.wait()
        return np.ones(3, np.bool_)

    assert bits(index, "a", keep, threads=2).tolist() == [0x3F]
