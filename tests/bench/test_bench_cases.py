"""Every benchmark case is well-formed, and is found by its file's name."""

from __future__ import annotations

from pathlib import Path

import pytest

import bench.cases
from bench.cases import case_names, find_case
from dataflow.errors import PlanError

FOLDER = Path(bench.cases.__file__).parent
OF_THE_ISSUE = {"tokens", "small_rows", "memory", "first_batch", "import_time", "state", "epoch_order"}


def test_every_file_in_the_folder_of_cases_is_a_case() -> None:
    assert case_names() == sorted(file.stem for file in FOLDER.glob("*.py") if file.stem != "__init__")
    assert set(case_names()) >= OF_THE_ISSUE


@pytest.mark.parametrize("name", case_names())
def test_the_bars_of_a_case_are_about_its_own_sides(name: str) -> None:
    case = find_case(name)
    sides = {side.name for side in case.sides}
    assert case.name == name
    assert len(sides) == len(case.sides)
    for bar in case.bars:
        assert {bar.side, bar.against or bar.side} <= sides
        assert (bar.how == "value") == (bar.against is None)
        assert bar.figure != "peak_mb" or case.side(bar.side).memory


def test_an_unknown_case_names_those_like_it() -> None:
    with pytest.raises(PlanError, match="tokenz") as caught:
        find_case("tokenz")
    assert "'tokens'" in caught.value.hint
