"""More bad rows than `max_errors` end the run where they are met: no batch has a row behind the last of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meeting import meeting_loaders
from recipes import Row, fragments, json_copy

import dataflow as flow
from dataflow.errors import DataError, RankError, StageError
from dataflow.options import ErrorPolicy


def _pipe(bad: set[int], sizes: list[int], lanes: int, calls: list[int] | None = None) -> flow.Pipeline:
    def checked(row: Row) -> Row:
        if calls is not None:
            calls.append(int(row["x"]))
        if int(row["x"]) in bad:
            raise ValueError(f"value {row['x']} is bad")
        return row

    return fragments(sizes).map(checked, schema={"x": "int64"}).batch(global_size=2 * lanes, lanes=lanes)


def _run(loader: Any) -> tuple[list[list[int]], str]:
    """The batches up to the error, and what it says; "" where there is none."""
    found = []
    try:
        for batch in loader:
            found.append(batch["x"].tolist())
    except DataError as error:
        return found, str(error)
    return found, ""


def _loader(pipe: flow.Pipeline, max_errors: int | None, **options: Any) -> Any:
    return pipe.loader(output="numpy", on_error="skip", max_errors=max_errors, **options)


@pytest.mark.parametrize("lanes", [1, 2])
def test_where_the_first_rows_are_all_bad_few_are_tried_and_the_last_straw_is_named(
    tmp_path: Path, lanes: int
) -> None:
    calls: list[int] = []
    rows = 1000 * 100
    pipe = _pipe(set(range(rows)), [1000] * 100, lanes, calls)
    path = tmp_path / "bad.jsonl"
    with _loader(pipe, 3, quarantine=path, threads=2) as loader, pytest.raises(DataError) as caught:
        list(loader)
    assert "4 bad rows, and max_errors=3" in str(caught.value)
    assert (caught.value.row, "more with max_errors=" in caught.value.hint) == (3, True)
    assert isinstance(caught.value.__cause__, StageError)
    assert [json.loads(line)["row"] for line in path.read_text().splitlines()] == [0, 1, 2, 3]
    assert len(calls) < rows / 2


@given(
    st.sets(st.integers(0, 59)), st.lists(st.integers(1, 20), min_size=3, max_size=8), st.integers(1, 3),
    st.integers(0, 12),
)  # fmt: skip
@settings(max_examples=40)
def test_the_batches_and_the_error_depend_on_the_data_alone(
    bad: set[int], sizes: list[int], lanes: int, most: int
) -> None:
    pipe = _pipe(bad, [*sizes, 6], lanes)
    with _loader(pipe, None) as loader:
        want = (
            [(batch["x"].tolist(), loader.state_dict()["errors"]) for batch in loader] if _any(pipe) else []
        )
    runs = [_run(_loader(pipe, most, threads=threads)) for threads in (1, 2, 3)]
    assert runs[1] == runs[2] == runs[0]
    found, error = runs[0]
    assert found == [batch for batch, _ in want[: len(found)]]
    # Bad rows behind the last batch count with it, but where those of one lane are too many.
    borne = sum(errors <= most for _, errors in want)
    assert len(found) in (borne, borne + 1)
    if "max_errors" in error:
        assert len([row for row in bad if row < sum(sizes) + 6]) > most


def _any(pipe: flow.Pipeline) -> bool:
    with _loader(pipe, None) as loader:
        return bool(_run(loader)[0])


def test_the_same_row_is_the_last_straw_behind_every_stop() -> None:
    bad = {2, 5, 11, 12, 13, 30, 31, *range(40, 50), *range(91, 100)}
    pipe = _pipe(bad, [10] * 10, 2)
    with _loader(pipe, 9) as loader:
        want, error = _run(loader)
    assert "10 bad rows, and max_errors=9" in error
    assert len(want) > 2
    for stop in range(1, len(want), 2):
        with _loader(pipe, 9) as loader:
            running = iter(loader)
            for _ in range(stop):
                next(running)
            state = json_copy(loader.state_dict())
        with _loader(pipe, 9) as loader:
            loader.load_state_dict(state)
            assert _run(loader) == (want[stop:], error)


def test_a_budget_that_a_restored_run_has_passed_already_ends_it_at_the_next_bad_row() -> None:
    pipe = _pipe({1, 3, 20}, [10] * 4, 1)
    with _loader(pipe, None) as loader:
        running = iter(loader)
        for _ in range(3):
            next(running)
        state = json_copy(loader.state_dict())
    assert state["errors"] == 2
    with _loader(pipe, 0) as loader:
        loader.load_state_dict(state)
        found, error = _run(loader)
    assert "3 bad rows, and max_errors=0" in error
    assert found[-1] == [18, 19]


def test_on_several_ranks_all_stop_at_the_same_batch() -> None:
    # Lane l has rows 40 l to 40 l + 39; rank 1 owns lanes 2 and 3.
    pipe = _pipe(set(range(84, 120)), [20] * 8, 4)
    policies = [ErrorPolicy(on_error="skip", max_errors=5)] * 2
    ranks = meeting_loaders(pipe, 2, errors=policies)
    found: list[list[Any]] = [[], []]
    running = {rank: iter(loader) for rank, loader in enumerate(ranks)}
    while running:
        for rank, iterator in list(running.items()):
            try:
                found[rank].append(next(iterator)["x"].tolist())
            except (DataError, RankError) as error:
                found[rank].append(error)
                del running[rank]
    for loader in ranks:
        loader.close()
    assert [len(batches) for batches in found] == [3, 3]
    assert "6 bad rows, and max_errors=5" in str(found[1][-1])
    assert found[1][-1].row == 89
    assert isinstance(found[0][-1], RankError)
    assert "rank 1 failed in lane 2" in str(found[0][-1])


@pytest.mark.parametrize("bad", [{2, 12}, {2, 19}, {22, 32}])
def test_what_the_lanes_of_one_rank_have_together_ends_all_ranks_at_one_batch(bad: set[int]) -> None:
    # Lane l has rows 10 l to 10 l + 9; rank 0 owns lanes 0 and 1.
    pipe = _pipe(bad, [10] * 4, 4)
    owner = min(bad) // 20
    ranks = meeting_loaders(pipe, 2, errors=[ErrorPolicy(on_error="skip", max_errors=1)] * 2)
    said: dict[int, Exception] = {}
    running = {rank: iter(loader) for rank, loader in enumerate(ranks)}
    while len(said) < 2:
        for rank in running.keys() - said.keys():
            try:
                next(running[rank])
            except (DataError, RankError) as error:
                said[rank] = error
    steps = [loader.step for loader in ranks]
    for loader in ranks:
        loader.close()
    assert steps[0] == steps[1]
    mine = said[owner]
    assert isinstance(mine, DataError)
    assert ("2 bad rows, and max_errors=1" in str(mine), mine.row) == (True, max(bad))
    # Where one lane has them all, that is known before the batch is made.
    assert str(said[1 - owner]).startswith((f"ranks [{owner}] failed", f"rank {owner} failed"))
