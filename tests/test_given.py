"""Whole numbers among the values that users give: of Python, NumPy or torch, and one of Python from then on."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import dataflow as flow
from dataflow.errors import PlanError
from dataflow.given import as_whole
from dataflow.options import LoaderOptions
from loaders.arguments import GivenOptions
from loaders.membership import Membership

KINDS: list[Callable[[int], Any]] = [int, np.int8, np.uint64, np.array, torch.tensor]
kinds = pytest.mark.parametrize("kind", KINDS, ids=["int", "int8", "uint64", "array", "tensor"])
SOURCE = flow.from_arrow(pa.table({"x": list(range(8)), "l": [[1], [2], [3], [4]] * 2}))


def identity(row: Any) -> Any:
    return row


@kinds
@pytest.mark.parametrize("number", [3, 4, 100])
def test_a_whole_number_from_the_least_up_is_one_of_python(kind: Callable[[int], Any], number: int) -> None:
    found = as_whole(kind(number), "said", hint="hint", least=3, below=101)
    assert (found, type(found)) == (number, int)


@pytest.mark.parametrize(
    "value",
    [2, -3, 9, 1 << 70, 3.0, "3", None, [3], (), b"3", Decimal(3), np.float64(3), np.int64(2), np.arange(3),
     np.array(3.0), torch.tensor(3.0), object()],
)  # fmt: skip
def test_one_out_of_the_range_and_what_is_no_whole_number_is_none(value: object) -> None:
    with pytest.raises(PlanError) as caught:
        as_whole(value, "said", hint="hint", least=3, below=9)
    assert (caught.value.message, caught.value.hint) == ("said", "hint")


@pytest.mark.parametrize("value", [True, False, np.True_, np.array(True), torch.tensor(True)])
def test_a_truth_value_is_no_number(value: object) -> None:
    with pytest.raises(PlanError):
        as_whole(value, "said", hint="hint")


# Of each step that takes a whole number, how it is given, and the field that holds it.
STEPS: dict[str, tuple[Callable[[Any], flow.Pipeline], str]] = {
    "take": (lambda n: SOURCE.take(n), "rows"),
    "skip": (lambda n: SOURCE.skip(n), "rows"),
    "repeat": (lambda n: SOURCE.repeat(n), "passes"),
    "shuffle": (lambda n: SOURCE.shuffle(n), "window"),
    "pad": (lambda n: SOURCE.pad({"l": n}), "lengths"),
    "map": (lambda n: SOURCE.map(identity, batched=True, batch_size=n), "batch_size"),
    "filter": (lambda n: SOURCE.filter(identity, batched=True, batch_size=n), "batch_size"),
    "batch": (lambda n: SOURCE.batch(n), "size"),
    "global batch": (lambda n: SOURCE.batch(global_size=n), "global_size"),
    "lanes": (lambda n: SOURCE.batch(4, lanes=n), "lanes"),
}


@kinds
@pytest.mark.parametrize("step", STEPS)
def test_a_step_holds_a_number_of_python_which_json_has_a_form_for(
    step: str, kind: Callable[[int], Any]
) -> None:
    made, field = STEPS[step]
    held = getattr(made(kind(2)).node, field)
    assert json.dumps(held) == json.dumps(getattr(made(2).node, field))
    assert type(held) in (int, dict)


@kinds
def test_a_seed_is_a_number_of_python(kind: Callable[[int], Any]) -> None:
    seed = SOURCE.seed(kind(2)).seed_value
    assert (seed, type(seed)) == (2, int)


@kinds
def test_a_loaders_options_are_numbers_of_python(kind: Callable[[int], Any]) -> None:
    made = GivenOptions(
        threads=kind(2), prefetch=kind(3), epochs=kind(4), max_errors=kind(5), on_error="skip",
        memory_limit=kind(100),
    ).settled()  # fmt: skip
    found = (made.threads, made.prefetch, made.epochs, made.errors.max_errors, made.memory_limit)
    assert found == (2, 3, 4, 5, 100)
    assert {type(number) for number in found} == {int}
    assert isinstance(made, LoaderOptions)
    world = Membership(rank=kind(1), world_size=kind(2)).world()
    assert (type(world.rank), type(world.size)) == (int, int)
    assert (world.rank, world.size) == (1, 2)


@kinds
def test_a_loader_takes_one_for_epoch_and_lag_and_a_state_may_hold_one(kind: Callable[[int], Any]) -> None:
    with SOURCE.batch(kind(2)).loader(output="numpy", threads=kind(1)) as loader:
        loader.set_epoch(kind(1))
        running = iter(loader)
        next(running)
        behind = loader.state_dict()
        next(running)
        assert loader.state_dict(kind(1)) == behind
        assert json.loads(json.dumps(behind)) == behind
        assert (behind["epoch"], behind["step"]) == (1, 1)
        loader.load_state_dict({**behind, "step": kind(2), "errors": kind(3)})
        restored = loader.state_dict()
        assert json.loads(json.dumps(restored)) == {**behind, "step": 2, "errors": 3}
        assert next(iter(loader))["x"].tolist() == [4, 5]


@kinds
def test_a_row_and_a_number_of_ranks_may_be_asked_for_with_one(kind: Callable[[int], Any]) -> None:
    assert SOURCE[kind(3)]["x"] == 3
    ranks = SOURCE.batch(4).outline(world_size=kind(2)).ranks
    assert ranks is not None
    assert (ranks.world_size, type(ranks.world_size)) == (2, int)
