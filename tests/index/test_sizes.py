"""Decoded bytes of a row, from one decoded slice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lines_format import Counted, Lines, counted, listed, write_lines

from connectors.contract import Chunk, FileInfo, Fragment, Opened
from connectors.paths import Listing
from connectors.store import Store
from dataflow.errors import DataError
from dataflow.index import Fragments, build_index
from dataflow.index.sizes import decoded_bytes


@pytest.mark.parametrize(
    ("column", "size"),
    [
        (pa.array([1, 2, 3], pa.int32()), 12),
        (pa.array([1, 2, 3, 4], pa.int64()).slice(1, 2), 16),
        (pa.array([True, False, None]), 3),
        (pa.nulls(5), 0),
        (pa.array(["ab", "c"], pa.string()), 3 + 2 * 4),
        (pa.array(["abcdefgh"] * 100).dictionary_encode(), 800 + 100 * 4 + 13),
        (pa.FixedSizeListArray.from_arrays(pa.array(range(6), pa.int16()), 3), 12),
    ],
)
def test_a_column_counts_as_its_rows_are_used(column: Any, size: int) -> None:
    assert decoded_bytes(column) == size


def test_strings_are_measured_by_their_text(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.lines", [{"x": "s" * 100, "y": 1}] * 50, {"x": "string", "y": "int64"})
    index = build_index(Lines(rows=50), listed(tmp_path))
    assert index.row_bytes["y"] == 8.0
    # Four bytes of offset a row, and one more offset for each chunk.
    assert 104 <= index.row_bytes["x"] <= 105
    assert index.decoded_bytes_per_row(["y"]) == 8.0


@dataclass(frozen=True, kw_only=True)
class Large(Counted):
    """A row is a megabyte; `broken` fragments cannot be read. Notes what was read."""

    broken: tuple[int, ...] = ()
    read_rows: list[int] = None  # type: ignore[assignment]

    def read(
        self, opened: Opened, fragment: Fragment, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Iterator[Chunk]:
        if fragment.offset in self.broken:
            raise DataError("broken", file="f", offset=fragment.offset)
        for first in range(start, stop, max_rows):
            rows = min(max_rows, stop - first)
            self.read_rows.append(rows)
            values = pa.FixedSizeListArray.from_arrays(pa.nulls(rows << 17, pa.int64()), 1 << 17)
            yield Chunk(pa.record_batch([values], names=["x"]))


def large(broken: tuple[int, ...] = ()) -> tuple[dict[str, float], list[int]]:
    read: list[int] = []
    listing = Listing(Store(), "/m", (FileInfo("/m/a", 3000),))
    index = build_index(Large(rows=1000, broken=broken, read_rows=read), listing)
    return dict(index.row_bytes), read


def test_large_rows_are_not_decoded_by_the_gigabyte() -> None:
    sizes, read = large()
    assert sizes["x"] >= 1 << 20
    assert sum(read) <= 32


def test_a_fragment_that_cannot_be_read_is_passed_over() -> None:
    assert large(broken=(1000,)) == large()
    assert large(broken=(1000, 0)) == large()
    with pytest.raises(DataError, match="byte 1000: broken"):
        large(broken=(1000, 0, 2000))


def test_only_the_first_rows_of_the_middle_fragment_are_read() -> None:
    index = counted([FileInfo("/m/a", 1_000_000)], rows=500_000)
    assert index.row_bytes == {"x": 8.0}


def test_more_rows_than_ids_have_room_for_are_an_error_that_names_the_file() -> None:
    files = [FileInfo("/m/a", 1), FileInfo("/m/b", 1 << 62)]
    with pytest.raises(DataError, match=r"b: it says that it has 4,611,686,018,427,387,904 rows") as caught:
        counted(files, rows=1 << 62)
    assert "write the file again" in caught.value.hint


@pytest.mark.filterwarnings("error")
def test_a_size_beyond_64_bits_is_the_largest_one() -> None:
    made = Fragments.of(
        *(np.array([n], kind) for n, kind in ((0, "i4"), (0, "i8"), (0, "i8"), (1 << 40, "i8")))
    )
    assert made.sized(1e30).bytes.tolist() == [1 << 62]
    assert made.sized(8.0).bytes.tolist() == [8 << 40]
