"""Arguments of torch's DataLoader: an error says what does the same here."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from torch.utils.data import DataLoader

import dataflow as flow
from dataflow.errors import PlanError
from loaders.foreign_names import same_here

PIPE: Any = flow.from_arrow(pa.table({"x": [1, 2, 3]})).batch(1)
OURS = set(inspect.signature(flow.Pipeline.loader).parameters)


@pytest.mark.parametrize(
    ("name", "value", "here"),
    [
        ("num_workers", 4, "threads="),
        ("batch_size", 32, ".batch(size)"),
        ("shuffle", True, ".shuffle(window)"),
        ("drop_last", True, "remainder='drop'"),
        ("pin_memory", True, "device='cuda'"),
        ("collate_fn", list, "collate="),
        ("prefetch_factor", 2, "prefetch="),
        ("seed", 1, ".seed(n)"),
    ],
)
def test_the_name_that_torch_has_is_answered_with_the_one_here(name: str, value: object, here: str) -> None:
    with pytest.raises(PlanError, match=f"no argument '{name}'") as caught:
        PIPE.loader(**{name: value})
    assert here in caught.value.hint


def test_every_argument_of_the_dataloader_is_answered() -> None:
    theirs = set(inspect.signature(DataLoader.__init__).parameters) - {"self"}
    assert [name for name in sorted(theirs - OURS) if not same_here(name)] == []


def test_what_is_said_to_be_unknown_is_no_argument_here() -> None:
    assert [name for name in OURS if same_here(name)] == []


def test_any_other_name_has_the_near_ones() -> None:
    with pytest.raises(PlanError, match="no argument 'thread'") as caught:
        PIPE.loader(thread=2)
    assert caught.value.hint == "did you mean 'threads'?"


def test_a_spec_answers_alike_and_names_the_line(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "data.parquet")
    spec = tmp_path / "pipe.yaml"
    spec.write_text(
        f"version: 1\npipeline:\n  - read: {{url: '{tmp_path}/data.parquet'}}\nloader:\n  num_workers: 4\n"
    )
    with pytest.raises(PlanError, match=r"^pipe\.yaml:5: loader has no key 'num_workers'") as caught:
        flow.load_spec(spec)
    assert caught.value.hint == "use threads="


@pytest.mark.parametrize(
    ("verb", "name", "value", "hint"),
    [
        ("batch", "batch_size", 32, "it is the first argument: batch(32)"),
        ("batch", "drop_last", True, "use remainder='drop'"),
        ("batch", "lane", 2, "'lanes'"),
        ("shuffle", "buffer_size", 1000, "shuffle(10_000)"),
        ("shuffle", "seed", 1, ".seed(n)"),
        ("shuffle", "windows", 1, "'window'"),
    ],
)
def test_the_verbs_answer_alike(verb: str, name: str, value: object, hint: str) -> None:
    pipe = flow.from_columns({"x": [1]})
    with pytest.raises(PlanError, match=rf"^{verb}\(\) has no argument '{name}'") as caught:
        getattr(pipe, verb)(**{name: value})
    assert hint in caught.value.hint
