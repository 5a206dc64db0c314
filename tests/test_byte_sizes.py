"""Sizes are read as people write them; what is none is an error that names its argument."""

from __future__ import annotations

import pytest

from dataflow.byte_sizes import parse_bytes
from dataflow.errors import PlanError


@pytest.mark.parametrize(
    ("text", "size"),
    [("1b", 1), ("64MB", 64_000_000), ("1.5 GiB", 3 << 29), ("2kb", 2000), ("3 KiB", 3072), (" 7 b ", 7)],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert parse_bytes(text, "window") == size


@pytest.mark.parametrize("text", ["1000", " 7 "])
def test_a_number_without_a_unit_is_an_error_that_shows_both_forms(text: str) -> None:
    with pytest.raises(PlanError, match="has no unit") as caught:
        parse_bytes(text, "memory_limit")
    assert f"'{text.strip()}B' or {text.strip()} for bytes" in caught.value.hint


@pytest.mark.parametrize(
    "text", ["", "MB", "64XB", "-1MB", "0MB", "1e3", "1 ib", "1.5.2GB", "1.5", "2000000GB"]
)
def test_what_is_no_size_is_an_error_that_names_the_argument(text: str) -> None:
    with pytest.raises(PlanError, match="memory_limit=") as caught:
        parse_bytes(text, "memory_limit")
    assert "'64MB'" in caught.value.hint
