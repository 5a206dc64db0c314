"""Every format through the whole line: the same rows in file order, shuffled, restored, by number and by column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from delivered import FORMATS, ROWS, arrow, ids, numpy, plain, rows_then_rest, torch_of

import dataflow as flow
from dataflow import PlanError

WANTED: list[dict[str, Any]] = [{"number": i, "text": f"row {i}"} for i in range(ROWS)]
FILES = [name for name in FORMATS if not name.startswith("from_")]
# A folder has no columns but path and bytes, and its rows come from a function here.
WITH_COLUMNS = [name for name in FORMATS if name != "folder"]

each_format = pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS)
each_with_columns = pytest.mark.parametrize(
    "make", [FORMATS[name] for name in WITH_COLUMNS], ids=WITH_COLUMNS
)
Make = Callable[[Path], flow.Pipeline]


@each_format
def test_rows_come_once_in_file_order(make: Make, tmp_path: Path) -> None:
    pipe = make(tmp_path)
    assert arrow(pipe).select(["number", "text"]).to_pylist() == WANTED
    assert numpy(pipe, "number").tolist() == list(range(ROWS))
    assert torch_of(pipe, "text", size=7) == [row["text"] for row in WANTED]


@each_format
def test_row_i_is_row_i(make: Make, tmp_path: Path) -> None:
    pipe = make(tmp_path)
    assert pipe.count() == ROWS
    assert [pipe[i] for i in range(ROWS)] == WANTED
    assert pipe[-1] == WANTED[-1]
    with pytest.raises(IndexError, match=f"{ROWS}"):
        pipe[ROWS]
    shuffled = pipe.shuffle(8).seed(3)
    assert [shuffled[i] for i in (0, 7, ROWS - 1)] == [WANTED[i] for i in (0, 7, ROWS - 1)]


@each_format
@pytest.mark.parametrize("lanes", [1, 3])
def test_a_shuffled_epoch_stopped_anywhere_and_restored_is_the_whole_epoch(
    make: Make, lanes: int, tmp_path: Path
) -> None:
    pipe = make(tmp_path).shuffle(8).seed(5).batch(3, lanes=lanes, remainder="keep")
    with pipe.loader(output="numpy", ids=True) as loader:
        whole = [plain(batch) for batch in loader]
    order = ids(whole)
    assert sorted(order) == list(range(ROWS))
    assert order != sorted(order)
    assert all(text == f"row {n}" for b in whole for n, text in zip(b["number"], b["text"], strict=True))
    assert [n for batch in whole for n in batch["number"]] == order
    for stop in range(len(whole)):
        begun, rest = rows_then_rest(pipe, stop)
        assert begun + rest == whole


@each_format
@pytest.mark.parametrize("by", ["terms", "function"])
def test_a_filtered_epoch_stopped_anywhere_and_restored_is_the_whole_epoch(
    make: Make, by: str, tmp_path: Path
) -> None:
    rows = make(tmp_path)
    wanted = [n for n in range(ROWS) if n % 3]
    kept = (
        rows.filter([("number", "in", wanted)])
        if by == "terms"
        else rows.filter(lambda row: row["number"] % 3 > 0)
    )
    pipe = kept.batch(2, remainder="keep")
    with pipe.loader(output="numpy", ids=True) as loader:
        whole = [plain(batch) for batch in loader]
    assert ids(whole) == wanted
    for stop in range(len(whole)):
        begun, rest = rows_then_rest(pipe, stop)
        assert begun + rest == whole


@each_format
def test_two_ranks_share_what_one_has(make: Make, tmp_path: Path) -> None:
    pipe = make(tmp_path).shuffle(8).seed(5).batch(global_size=6, lanes=2, remainder="pad")
    with pipe.loader(output="numpy", ids=True) as loader:
        alone = list(loader)
    shared = []
    for rank in range(2):
        with pipe.loader(output="numpy", ids=True, rank=rank, world_size=2) as loader:
            shared.append(list(loader))
            assert len(loader) == len(alone)
    for whole, first, second in zip(alone, *shared, strict=True):
        assert ids([whole]) == ids([first]) + ids([second])
        assert whole["text"] == first["text"] + second["text"]


@each_with_columns
def test_columns_are_those_asked_for_in_that_order(make: Make, tmp_path: Path) -> None:
    pipe = make(tmp_path).select("text")
    assert arrow(pipe).to_pylist() == [{"text": row["text"]} for row in WANTED]
    assert pipe[5] == {"text": "row 5"}


@pytest.mark.parametrize("name", FILES)
def test_columns_of_read_are_honoured_in_every_file_format(name: str, tmp_path: Path) -> None:
    FORMATS[name](tmp_path)
    column = {"tar": "txt", "tar.gz": "txt", "folder": "path"}.get(name, "text")
    url = {"parquet": "*.parquet", "tar": "{a,b}.tar", "tar.gz": "a.tar.gz", "folder": "*.png"}.get(name)
    where = tmp_path / (url or next(tmp_path.iterdir()).name)
    assert arrow(flow.read(where, columns=[column])).schema.names == [column]
    with pytest.raises(PlanError, match="there is no column") as caught:
        flow.read(where, columns=[column + "s"])
    assert caught.value.hint == f"did you mean '{column}'?"


@each_format
def test_a_filter_by_expression_terms_or_function_keeps_the_same_rows(make: Make, tmp_path: Path) -> None:
    pipe = make(tmp_path)
    wanted = [row for row in WANTED if row["number"] % 10 > 6 or row["text"] == "row 2"]
    terms: list[list[tuple[str, str, object]]] = [
        [("number", "in", [row["number"] for row in wanted])],
        [("text", "=", "row 2")],
    ]
    by_terms = pipe.filter(terms)
    by_function = pipe.filter(lambda row: row["number"] % 10 > 6 or row["text"] == "row 2")
    number = pc.field("number")
    by_expression = pipe.filter(((number - number / 10 * 10) > 6) | (pc.field("text") == "row 2"))
    for kept in (by_terms, by_function, by_expression, by_function.counted()):
        assert arrow(kept).select(["number", "text"]).to_pylist() == wanted
        assert kept.count() == len(wanted)
    counted = by_function.counted()
    assert [counted[i] for i in range(len(wanted))] == wanted


@each_format
def test_a_filter_whose_column_is_not_delivered_is_honoured(make: Make, tmp_path: Path) -> None:
    pipe = make(tmp_path).filter([("number", ">=", ROWS - 2)]).select("text")
    assert arrow(pipe).to_pylist() == [{"text": row["text"]} for row in WANTED[-2:]]


def test_a_filter_given_to_read_is_honoured_in_every_file_format(tmp_path: Path) -> None:
    for name in ("parquet", "arrow file", "arrow stream", "feather", "jsonl", "jsonl.gz"):
        folder = tmp_path / name
        folder.mkdir()
        FORMATS[name](folder)
        url = "*.parquet" if name == "parquet" else next(folder.iterdir()).name
        pipe = flow.read(folder / url, filter=[("number", "<", 3)], columns=["text"])
        assert arrow(pipe).to_pylist() == [{"text": row["text"]} for row in WANTED[:3]], name


def test_a_filter_that_keeps_nothing_is_an_empty_epoch_and_says_so(tmp_path: Path) -> None:
    pipe = FORMATS["parquet"](tmp_path).filter([("number", "<", 0)])
    assert pipe.count() == 0
    with pytest.raises(PlanError, match="empty"):
        pipe.batch(4).loader()
