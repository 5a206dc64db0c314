"""Facts and problems, for people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lines_format import counted, opened, write_lines

from connectors.contract import FileInfo
from dataflow.index import describe


def test_the_facts_of_an_index_are_json(folder: Path) -> None:
    facts = describe(opened(folder))
    assert json.loads(json.dumps(facts)) == facts
    assert facts["rows"] == 11
    assert facts["files"] == 3
    assert facts["fragments"] == 5
    assert facts["bytes"] == 88
    assert facts["schema"] == {"x": "int64"}
    assert facts["fragment_rows"] == {"smallest": 1, "median": 3.0, "largest": 3}
    assert facts["format"] == "lines"
    assert facts["problems"] == ["1 file has no rows."]


def test_a_source_without_rows_is_a_problem(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.lines", 0)
    assert describe(opened(tmp_path))["problems"] == ["There are no rows."]


@pytest.mark.parametrize(
    ("size", "rows", "problem"),
    [
        (
            100_000_000,
            50_000_000,
            "2 fragments are over 256 MiB when decoded; the largest has 381 MiB, in a",
        ),
        (5000, 5, "1,000 fragments have only 40 bytes on average"),
    ],
)
def test_fragments_too_large_or_too_small_are_problems(size: int, rows: int, problem: str) -> None:
    said = describe(counted([FileInfo("/m/a", size)], rows))["problems"]
    assert isinstance(said, list)
    assert str(said[0]).startswith(problem)
    assert len(said) == 1


def test_files_of_different_schemas_are_a_problem(folder: Path) -> None:
    write_lines(folder / "b.lines", [{"y": 1}], {"y": "int64"})
    assert describe(opened(folder))["problems"] == [
        "The files have 2 different schemas: in b.lines, unlike a.lines, there is no 'x', there is 'y' (int64).",
        "b.lines has no column 'x'.",
        "2 files, as a.lines, have no column 'y'.",
    ]


@pytest.mark.parametrize(
    ("columns", "differs"),
    [
        ({"x": "int32", "y": "string"}, "'x' is int32 and not int64"),
    ],
)
def test_the_first_file_that_differs_is_named_and_how(
    tmp_path: Path, columns: dict[str, str], differs: str
) -> None:
    row = {"x": 1, "y": "a"}
    write_lines(tmp_path / "a.lines", [row], {"x": "int64", "y": "string"})
    write_lines(tmp_path / "b.lines", [row], {"x": "int64", "y": "string"})
    write_lines(tmp_path / "c.lines", [row], columns)
    assert describe(opened(tmp_path))["problems"] == [
        f"The files have 2 different schemas: in c.lines, unlike a.lines, {differs}."
    ]


def test_another_order_of_the_columns_is_no_problem(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.lines", [{"x": 1, "y": "s"}], {"x": "int64", "y": "string"})
    write_lines(tmp_path / "b.lines", [{"y": "s", "x": 1}], {"y": "string", "x": "int64"})
    assert describe(opened(tmp_path))["problems"] == []
