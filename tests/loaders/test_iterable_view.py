"""The loader as a torch IterableDataset, for trainers that insist on one."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

import dataflow as flow
from loaders.torch import TorchLoader


def _loader() -> TorchLoader:
    return flow.from_columns({"x": np.arange(40)}).shuffle(8).batch(4).loader()


def _values(batches: Any) -> list[list[int]]:
    return [batch["x"].tolist() for batch in batches]


def test_a_data_loader_over_the_view_gives_the_batches_of_the_loader() -> None:
    with _loader() as loader:
        want = _values(loader)
    with _loader() as loader:
        view = loader.as_iterable_dataset()
        assert isinstance(view, IterableDataset)
        found = list(DataLoader(view, batch_size=None, num_workers=0))
        assert _values(found) == want
        assert all(isinstance(batch["x"], torch.Tensor) for batch in found)


def test_the_view_has_the_state_of_the_loader() -> None:
    with _loader() as loader:
        want = _values(loader)
    with _loader() as loader:
        view = loader.as_iterable_dataset()
        assert len(_values(islice(iter(view), 3))) == 3
        state = json.loads(json.dumps(view.state_dict()))
        assert state == loader.state_dict()
    with _loader() as loader:
        view = loader.as_iterable_dataset()
        view.load_state_dict(state)
        assert _values(DataLoader(view, batch_size=None, num_workers=0)) == want[3:]


def test_the_epoch_of_the_view_is_that_of_the_loader() -> None:
    with _loader() as loader:
        loader.set_epoch(3)
        want = _values(loader)
    with _loader() as loader:
        view = loader.as_iterable_dataset()
        view.set_epoch(3)
        assert loader.epoch == 3
        assert _values(DataLoader(view, batch_size=None, num_workers=0)) == want


def test_the_length_of_the_view_is_that_of_the_loader() -> None:
    with _loader() as loader:
        assert len(loader.as_iterable_dataset()) == len(loader) == 10


def test_a_data_loader_over_the_loader_itself_is_an_error_that_names_the_view() -> None:
    with _loader() as loader:
        with pytest.raises(TypeError, match=r"loader\.as_iterable_dataset\(\), batch_size=None"):
            list(DataLoader(loader, batch_size=None))  # type: ignore[arg-type]
        assert len(_values(loader)) == 10


def test_a_loader_says_what_it_is_and_where_it_stands() -> None:
    with _loader() as loader:
        next(iter(loader))
        assert repr(loader) == "<TorchLoader: global batch of 4 rows, rank 0 of 1, epoch 0, step 1>"
