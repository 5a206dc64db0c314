"""Any two steps that shape the order: what comes out of them, or the error that they are. None is ignored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from recipes import Recipe, Row, fragments

import dataflow as flow
from dataflow.errors import PlanError
from dataflow.order.permute import permutation
from dataflow.order.philox import key_of

SIZES = (8, 8, 8, 8, 8)
ROWS = list(range(40))
WINDOW = 3
SCHEMA = {"x": "int64"}

# How the second step, in the column, goes with the first one, in the row:
#   .  rows as Python lists would give them, one step after the other
#   s  the rows of the source shuffled, then the other step done to each
#   c  what the first step leaves, shuffled
#   p  two passes, each shuffled in an order of its own
#   o  what the rows of every window became, shuffled
#   x  a PlanError with a hint
TABLE = """
          shuffle  full  repeat  take  skip  function  column  counted  split  flat_map  concat  zip
shuffle         x     x       p     x     x         s       s        s      s         s       x    x
full            x     x       p     x     x         s       s        s      s         s       x    x
repeat          x     x       .     x     x         .       .        .      .         .       x    x
take            c     c       .     .     .         .       .        .      .         .       .    x
skip            c     c       .     .     .         .       .        .      .         .       .    x
function        s     s       .     x     x         .       .        .      x         .       .    x
column          s     s       .     .     .         .       .        .      .         .       .    x
counted         s     s       .     .     .         .       .        .      .         .       .    x
split           s     s       .     .     .         .       .        .      .         .       .    x
flat_map        o     x       .     x     x         .       .        x      x         .       .    x
concat          c     c       .     .     .         .       .        .      .         .       .    x
zip             c     c       .     .     .         .       .        .      .         .       x    x
"""
_HEAD, *_LINES = [line.split() for line in TABLE.strip().splitlines()]
PAIRS = {(first, second): sign for first, *signs in _LINES for second, sign in zip(_HEAD, signs, strict=True)}


def _several(row: Row) -> list[Row]:
    return [{"x": row["x"]}] * (int(row["x"]) % 3)


def _is_kept(value: int) -> bool:
    return value * 7 % 5 > 1


def _half(pipe: flow.Pipeline) -> flow.Pipeline:
    return pipe.split({"a": 0.7, "b": 0.3})["a"]


STEPS: dict[str, Callable[[flow.Pipeline], flow.Pipeline]] = {
    "shuffle": lambda pipe: pipe.shuffle(WINDOW),
    "full": lambda pipe: pipe.shuffle("full"),
    "repeat": lambda pipe: pipe.repeat(2),
    "take": lambda pipe: pipe.take(20),
    "skip": lambda pipe: pipe.skip(5),
    "function": lambda pipe: pipe.filter(lambda row: _is_kept(int(row["x"]))),
    "column": lambda pipe: pipe.filter([("x", "in", [x for x in range(2000) if x % 3])]),
    "counted": lambda pipe: pipe.filter(lambda row: _is_kept(int(row["x"]))).counted(),
    "split": _half,
    "flat_map": lambda pipe: pipe.flat_map(_several, schema=SCHEMA),
    "concat": lambda pipe: flow.concat(pipe, fragments((4, 4), first=1000)),
    "zip": lambda pipe: flow.zip(pipe, fragments((12, 12, 16), first=1000, column="y")),
}


def _source() -> flow.Pipeline:
    return fragments(SIZES)


def _made(*names: str) -> flow.Pipeline:
    pipe = _source()
    for name in names:
        pipe = STEPS[name](pipe)
    return pipe


def _delivered(pipe: flow.Pipeline, epoch: int = 0) -> list[int]:
    with pipe.batch(1, remainder="keep").loader(output="numpy", threads=2) as loader:
        loader.set_epoch(epoch)
        return [value for batch in loader for value in batch["x"].tolist()]


def _listed(name: str, rows: Sequence[int]) -> list[int]:
    """What a step makes of a list of rows, or of some rows of it."""
    if name == "split":
        part = set(_delivered(_half(_source())))
        return [x for x in rows if x in part]
    plain: dict[str, Callable[[Sequence[int]], list[int]]] = {
        "repeat": lambda xs: [*xs, *xs],
        "take": lambda xs: list(xs[:20]),
        "skip": lambda xs: list(xs[5:]),
        "function": lambda xs: [x for x in xs if _is_kept(x)],
        "column": lambda xs: [x for x in xs if x % 3],
        "counted": lambda xs: [x for x in xs if _is_kept(x)],
        "flat_map": lambda xs: [x for x in xs for _ in range(x % 3)],
        "concat": lambda xs: [*xs, *range(1000, 1008)],
        "zip": list,
    }
    return plain[name](rows)


def _parted(rows: Sequence[int], first: str) -> list[int]:
    """The rows that are of one part: those that are, were they not behind `first`, or other ones of a part."""
    if first != "split":
        known = [x for x in rows if x < 1000]
        part = set(_delivered(_half(_source())))
        others = [x for x in _delivered(_made(first, "split")) if x >= 1000]
        return [x for x in known if x in part] + others
    again = _delivered(_made("split", "split"))
    assert 0 < len(again) < len(rows)
    return [x for x in rows if x in set(again)]


def _shuffled(name: str, turn: int = 0, **more: Any) -> list[int]:
    """Rows as the model of the order in `recipes.py` shuffles them in one lane."""
    recipe = Recipe(parts=more.pop("parts", (SIZES,)), window="full" if name == "full" else WINDOW, **more)
    return recipe.lane_rows(turn)[0]


_LEFT: dict[str, dict[str, Any]] = {
    "take": {"cut": ("take", 20)},
    "skip": {"cut": ("skip", 5)},
    "concat": {"parts": (SIZES, (4, 4))},
    "zip": {"parts": (SIZES, (12, 12, 16)), "joined": "zip"},
}


def _outputs_shuffled(source: Sequence[int], window: int) -> list[int]:
    """What the rows of every window of `source` became, permuted by sample id and the number among its row's."""
    found: list[int] = []
    for start in range(0, len(source), window):
        rows = source[start : start + window]
        outputs = np.array([x for x in rows for _ in range(x % 3)], np.int64)
        subs = np.array([sub for x in rows for sub in range(x % 3)], np.int64)
        found += outputs[permutation(key_of(0, 0, "shuffle.outputs"), outputs, subs)].tolist()
    return found


def _expected(first: str, second: str) -> list[int]:
    sign = PAIRS[first, second]
    if sign == ".":
        rows = _listed(first, ROWS)
        if second == "split":
            return _parted(rows, first)
        return _listed(second, rows)
    if sign == "p":
        return [*_shuffled(first, 0), *_shuffled(first, 1)]
    if sign == "c":
        return _shuffled(second, **_LEFT[first])
    if sign == "o":
        return _outputs_shuffled(ROWS, WINDOW)
    shuffle, other = (first, second) if first in ("shuffle", "full") else (second, first)
    return _listed(other, _shuffled(shuffle))


def test_the_table_has_every_pair() -> None:
    assert set(PAIRS) == set(product(STEPS, STEPS))


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda name: name)
def test_two_steps_give_the_order_of_the_table_or_a_plan_error(first: str, second: str) -> None:
    if PAIRS[first, second] == "x":
        with pytest.raises(PlanError) as caught:
            _delivered(_made(first, second))
        assert caught.value.hint
    else:
        assert _delivered(_made(first, second)) == _expected(first, second)


# ---- a shuffle on either side of flat_map


def test_shuffles_of_one_window_on_either_side_of_flat_map_permute_rows_and_then_their_outputs() -> None:
    both = _source().shuffle("full").flat_map(_several, schema=SCHEMA).shuffle(WINDOW)
    assert _delivered(both) == _outputs_shuffled(_shuffled("full"), WINDOW)
    same = _source().shuffle(8).flat_map(_several, schema=SCHEMA).shuffle(8)
    rows = Recipe(parts=(SIZES,), window=8).lane_rows(0)[0]
    assert _delivered(same) == _outputs_shuffled(rows, 8)
    in_bytes = _source().shuffle("64B").flat_map(_several, schema=SCHEMA).shuffle("64B")
    assert _delivered(in_bytes) == _delivered(same)


@pytest.mark.parametrize("window", [4, "64B"])
def test_shuffles_of_two_windows_on_either_side_of_flat_map_are_a_plan_error_when_written(
    window: Any,
) -> None:
    many = _source().shuffle(8).flat_map(_several, schema=SCHEMA)
    with pytest.raises(PlanError, match="behind flat_map") as caught:
        many.shuffle(window)
    assert "the same window" in caught.value.hint
    assert "shuffle(8)" in caught.value.hint


def test_a_second_shuffle_of_outputs_is_a_plan_error_when_written() -> None:
    once = _source().flat_map(_several, schema=SCHEMA).shuffle(WINDOW)
    for again in (once, once.map(dict, schema=SCHEMA), once.flat_map(_several, schema=SCHEMA)):
        with pytest.raises(PlanError, match="shuffle") as caught:
            again.shuffle(WINDOW)
        assert caught.value.hint


def test_a_full_shuffle_of_outputs_is_a_plan_error_when_written() -> None:
    with pytest.raises(PlanError, match="full"):
        _source().flat_map(_several, schema=SCHEMA).shuffle("full")


def test_passes_in_front_of_flat_map_are_shuffled_each_in_an_order_of_its_own() -> None:
    one = _source().flat_map(_several, schema=SCHEMA).shuffle(WINDOW)
    two = _source().repeat(2).flat_map(_several, schema=SCHEMA).shuffle(WINDOW)
    assert _delivered(two) == [*_delivered(one, 0), *_delivered(one, 1)]
    assert _delivered(one.repeat(2)) == _delivered(two)
    with pytest.raises(PlanError, match="repeat"):
        _source().flat_map(_several, schema=SCHEMA).repeat(2).shuffle(WINDOW)
