"""Rows about which a counted filter cannot decide: the loader's policy decides, as it does where nothing is counted."""

from __future__ import annotations

import json
import traceback
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recipes import Row, fragments, json_copy

import dataflow as flow
from dataflow.errors import DataError, StageError
from dataflow.options import OnError
from loaders.ranked import RankedLoader

BAD = (3, 10, 21)


class Odd:
    """Keeps odd numbers; fails for those in `bad`, and counts how often it was asked about each."""

    def __init__(self, bad: Sequence[int] = BAD) -> None:
        self.bad, self.asked = bad, Counter[int]()

    def one(self, row: Row) -> bool:
        return bool(self.many({"x": np.array([row["x"]])})[0])

    def many(self, columns: Row) -> Any:
        self.asked.update(columns["x"].tolist())
        for value in columns["x"].tolist():
            if value in self.bad:
                raise ValueError(f"value {value} is bad")
        return columns["x"] % 2 == 1


def _rows(odd: Odd, *, batched: bool = False) -> flow.Pipeline:
    rows = fragments([8] * 5)
    return rows.filter(odd.many, batched=True) if batched else rows.filter(odd.one)


def _loader(pipe: flow.Pipeline, on_error: OnError, path: Path | None = None) -> RankedLoader[Any]:
    return pipe.loader(output="numpy", ids=True, threads=2, on_error=on_error, quarantine=path)


def _values(batches: Sequence[Row]) -> list[int]:
    return [value for batch in batches for value in batch["x"].tolist()]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# ---- raise


@pytest.mark.parametrize("batched", [False, True])
def test_raise_ends_before_anything_is_delivered_and_names_what_to_mend(batched: bool) -> None:
    odd = Odd()
    pipe = _rows(odd, batched=batched).counted().batch(4)
    with pytest.raises(StageError, match="value 3 is bad") as caught:
        _loader(pipe, "raise")
    assert isinstance(caught.value.__cause__, ValueError)
    assert "test_counted_bad_rows.py" in caught.value.location
    assert "on_error='skip'" in caught.value.hint
    assert set(odd.asked.values()) == {1}


def test_the_error_says_in_which_file_and_row_it_was(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 20)):
        pq.write_table(pa.table({"x": np.arange(first, first + 20)}), tmp_path / f"{name}.parquet")
    rows = flow.read(tmp_path / "*.parquet").filter(Odd([23]).one).counted()
    with pytest.raises(StageError, match="sample 0:23") as caught:
        rows.count()
    assert caught.value.__notes__ == ["b.parquet, row 3"]


def test_questions_without_a_policy_raise() -> None:
    rows = _rows(Odd()).counted()
    for ask in (rows.count, rows.shuffle_quality, lambda: rows[0]):
        with pytest.raises(StageError, match="value 3 is bad"):
            ask()


def test_raise_after_a_loader_that_bore_bad_rows_asks_nobody_again() -> None:
    odd = Odd()
    pipe = _rows(odd).counted().batch(4)
    with _loader(pipe, "skip"):
        asked = odd.asked.copy()
    lengths = []
    for _ in range(2):
        with pytest.raises(StageError, match="value 3 is bad") as caught:
            _loader(pipe, "raise")
        assert isinstance(caught.value.__cause__, ValueError)
        assert caught.value.__notes__ == ["in memory, row 3"]
        lengths.append(len(traceback.extract_tb(caught.value.__traceback__)))
    assert odd.asked == asked
    assert lengths[0] == lengths[1]


# ---- skip and replace


@pytest.mark.parametrize("batched", [False, True])
def test_skip_delivers_counts_and_writes_down_what_it_does_where_nothing_is_counted(
    tmp_path: Path, batched: bool
) -> None:
    found = {}
    for name in ("counted", "as it runs"):
        rows = _rows(Odd(), batched=batched)
        pipe = (rows.counted() if name == "counted" else rows).batch(4, remainder="keep")
        with _loader(pipe, "skip", tmp_path / name) as loader:
            values = _values(list(loader))
            errors = loader.stats()["errors"]
        lines = [(line["id"], line["operator"].partition(":")[2]) for line in _lines(tmp_path / name)]
        found[name] = (values, errors, lines)
    assert found["counted"] == found["as it runs"]
    assert found["counted"] == (
        [x for x in range(1, 40, 2) if x not in BAD], 3, [(x, "Odd.many)" if batched else "Odd.one)") for x in BAD]
    )  # fmt: skip


def test_skip_resumes_exactly_at_every_stop() -> None:
    pipe = _rows(Odd()).counted().shuffle(16).batch(4, lanes=2, remainder="keep")
    with _loader(pipe, "skip") as loader:
        whole, states = [], []
        for batch in loader:
            whole.append(batch["x"].tolist())
            states.append(json_copy(loader.state_dict()))
    assert sorted(chain.from_iterable(whole)) == [x for x in range(1, 40, 2) if x not in BAD]
    assert states[-1]["errors"] == 3
    for stop, state in enumerate(states[:-1]):
        with _loader(pipe, "skip") as loader:
            loader.load_state_dict(state)
            assert [batch["x"].tolist() for batch in loader] == whole[stop + 1 :]
            assert loader.state_dict()["errors"] == 3


@pytest.mark.parametrize("batched", [False, True])
def test_replace_puts_a_row_that_is_kept_in_the_place_of_each_and_the_length_is_known(
    tmp_path: Path, batched: bool
) -> None:
    pipe = _rows(Odd(), batched=batched).counted().batch(11)
    with _loader(pipe, "replace", tmp_path / "bad.jsonl") as loader:
        assert len(loader) == 2 - 1  # 20 odd rows and 10, about which nobody knows
        (batch,) = loader
    want = [x for x in range(40) if x % 2 or x == 10]
    assert batch["__id__"].tolist() == want[:11]
    for id_, value, by in zip(
        *(batch[name].tolist() for name in ("__id__", "x", "__replaced_by__")), strict=True
    ):
        assert value == (by if id_ in BAD else id_)
        assert value % 2
        assert value not in BAD
    assert [line["row"] for line in _lines(tmp_path / "bad.jsonl")] == [x for x in BAD if x in want[:11]]


def test_a_row_that_the_filter_cannot_decide_about_never_steps_in_for_another() -> None:
    def broken(row: Row) -> Row:
        if row["x"] % 5 == 1:
            raise ValueError("bad too")
        return row

    kept = range(1, 40, 2)
    bad = [x for x in kept if x % 5 == 3]
    pipe = _rows(Odd(bad)).counted().map(broken, schema={"x": "int64"}).batch(20)
    with _loader(pipe, "replace") as loader:
        (batch,) = loader
    assert batch["__id__"].tolist() == list(kept)
    assert set(batch["x"].tolist()) == {x for x in kept if x % 5 not in (1, 3)}


def test_a_condition_reads_its_columns_again_where_it_left_rows_open() -> None:
    odd = Odd()
    wide = flow.from_columns({"x": np.arange(40), "y": np.arange(40) * 10})
    pipe = wide.filter(odd.one).counted().select("y").batch(4, remainder="keep")
    with _loader(pipe, "skip") as loader:
        found = [value for batch in loader for value in batch["y"].tolist()]
    assert found == [10 * x for x in range(1, 40, 2) if x not in BAD]


def test_rows_are_asked_about_again_only_where_some_were_left_open() -> None:
    clean, open_ = Odd(bad=()), Odd()
    for odd in (clean, open_):
        pipe = _rows(odd).counted().batch(4)
        with _loader(pipe, "replace") as loader:
            list(loader)
    assert set(clean.asked.values()) == {1}
    # What is certain to be left out is not read again.
    assert all(times == 1 for x, times in open_.asked.items() if x % 2 == 0 and x not in BAD)


def test_filters_behind_one_that_left_rows_open_are_not_asked_about_those() -> None:
    first, second = Odd(), Odd(bad=())
    rows = _rows(first).counted().filter(second.one).counted()
    with _loader(rows.batch(4, remainder="keep"), "skip") as loader:
        assert _values(list(loader)) == [x for x in range(1, 40, 2) if x not in BAD]
        assert loader.stats()["errors"] == 3
    assert not second.asked.keys() & set(BAD)
    assert set(second.asked.values()) == {1}


def test_a_condition_on_columns_behind_it_still_gives_a_known_length() -> None:
    pipe = _rows(Odd()).counted().filter([("x", ">", 9)]).take(10).batch(10)
    with _loader(pipe, "replace") as loader:
        assert len(loader) == 1
        (batch,) = loader
    # Whether 3 is kept by the first is not known, so that the second cannot be asked about it.
    assert batch["__id__"].tolist() == [3, 10, *range(11, 27, 2)]
    assert set(batch["x"].tolist()) <= set(range(11, 27, 2)) - set(BAD)


def test_a_condition_that_changes_its_mind_makes_the_row_bad() -> None:
    asked = Counter[int]()

    def fickle(row: Row) -> bool:
        asked[int(row["x"])] += 1
        if row["x"] == 3:
            raise ValueError("bad")
        return bool(row["x"] != 5 or asked[5] == 1)

    pipe = fragments([8]).filter(fickle).counted().batch(2, remainder="keep")
    with _loader(pipe, "skip") as loader:
        assert _values(list(loader)) == [0, 1, 2, 4, 6, 7]
        assert loader.stats()["errors"] == 2
    asked.clear()
    with _loader(fragments([8]).filter(fickle).counted().batch(8), "replace") as loader:
        (batch,) = loader
    assert batch["__id__"].tolist() == list(range(8))
    assert not {3, 5} & set(batch["x"].tolist())


# ---- rows that are bad before the filter sees them


def _with_a_corrupt_group(path: Path) -> flow.Pipeline:
    """Rows 0 to 399 in row groups of 100, of which the second cannot be decoded."""
    pq.write_table(pa.table({"x": np.arange(400)}), path, row_group_size=100, use_dictionary=False)
    content = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    content[start : start + 40] = b"\xff" * 40
    path.write_bytes(content)
    return flow.read(path)


def test_rows_that_cannot_be_read_are_the_only_ones_that_are_kept_unseen(tmp_path: Path) -> None:
    rows = _with_a_corrupt_group(tmp_path / "a.parquet").filter(Odd(bad=()).one).counted()
    with _loader(rows.batch(10, remainder="keep"), "skip", tmp_path / "bad.jsonl") as loader:
        assert _values(list(loader)) == [x for x in range(1, 400, 2) if not 100 <= x < 200]
    assert [line["row"] for line in _lines(tmp_path / "bad.jsonl")] == list(range(100, 200))
    with pytest.raises(DataError, match=r"a\.parquet"):
        rows.count()


@pytest.mark.parametrize("batched", [False, True])
def test_rows_that_a_function_in_front_cannot_make_are_the_only_ones_that_are_kept_unseen(
    batched: bool,
) -> None:
    broken = Odd()

    def one(row: Row) -> Row:
        broken.one(row)
        return {"x": row["x"]}

    def many(columns: Row) -> Row:
        broken.many(columns)
        return {"x": columns["x"]}

    rows = fragments([8] * 5)
    made = rows.map(many if batched else one, schema={"x": "int64"}, batched=batched)
    pipe = made.filter(Odd(bad=()).one).counted().batch(4, remainder="keep")
    with _loader(pipe, "skip") as loader:
        assert _values(list(loader)) == [x for x in range(1, 40, 2) if x not in BAD]
        assert loader.stats()["errors"] == 3
