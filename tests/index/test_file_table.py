from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from connectors.contract import FileInfo
from dataflow.index.index import FileTable

FILES = [FileInfo(f"root/{k}.x", k, k / 2, "" if k % 2 else f"tag {k}") for k in range(7)]
ENDS = st.none() | st.integers(-9, 9)


@given(ENDS, ENDS, st.none() | st.integers(1, 3) | st.integers(-3, -1))
def test_a_slice_of_files_is_that_of_the_listing(
    start: int | None, stop: int | None, step: int | None
) -> None:
    part = slice(start, stop, step)
    assert FileTable.of("root", FILES)[part] == FILES[part]
