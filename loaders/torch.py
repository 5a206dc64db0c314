"""Batches as dicts of torch tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch.utils.data import IterableDataset

from connectors.bfloat16 import is_bfloat16
from connectors.contract import Json
from dataflow.errors import PlanError
from dataflow.execute.assemble import HostBatch
from loaders.plain import dense_or_listed, extras
from loaders.ranked import RankedLoader

__all__ = ["Batch", "IterableView", "TorchLoader", "converter", "device_of", "named_device"]

Batch = dict[str, torch.Tensor | list[Any]]


def named_device(device: Any) -> torch.device:
    """The device of that name.

    Raises:
        PlanError: torch knows none of that name.
    """
    try:
        return torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise PlanError(
            f"device={device!r} is no device: {error}", hint="as 'cuda', 'cuda:1' or 'cpu'"
        ) from error


def device_of(device: torch.device | str | int | None) -> torch.device | None:
    """The device of that name, where one is named.

    Raises:
        PlanError: torch knows none of that name, or this machine has none.
    """
    if device is None:
        return None
    found = named_device(device)
    if found.type == "cuda" and not torch.cuda.is_available():
        raise PlanError(f"device={device!r}, and torch sees no GPU.", hint="leave device= out, or use 'cpu'")
    return found


def converter(
    *, device: torch.device | None, ids: bool, collate: Callable[[dict[str, Any]], Any] | None
) -> Callable[[HostBatch, pa.Schema | None], Any]:
    """What makes a batch of a rank's rows."""
    return partial(_converted, device=device, ids=ids, collate=collate)


def _converted(
    batch: HostBatch,
    schema: pa.Schema | None = None,
    *,
    device: torch.device | None,
    ids: bool,
    collate: Callable[[dict[str, Any]], Any] | None,
) -> Any:
    made: Batch = {}
    for name, column in batch.columns.items():
        if isinstance(column, torch.Tensor):  # images that were made on a GPU
            made[name] = column
            continue
        values = dense_or_listed(name, column, batch)
        if isinstance(values, np.ndarray):
            made[name] = _tensor(values, name, schema)
        elif values and isinstance(values[0], np.ndarray):
            made[name] = [torch.from_numpy(value) for value in values]
        else:
            made[name] = values
    for name, array in extras(batch, ids=ids).items():
        made[name] = torch.from_numpy(array)
    if device is not None and device.type != "cpu":
        made = {name: _moved(value, device) for name, value in made.items()}
    return made if collate is None else collate(made)


def _tensor(values: npt.NDArray[Any], name: str, schema: pa.Schema | None) -> torch.Tensor:
    if values.dtype == np.uint16 and schema is not None and is_bfloat16(schema.field(name).type):
        return torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)


def _moved(value: torch.Tensor | list[Any], device: torch.device) -> torch.Tensor | list[Any]:
    if isinstance(value, torch.Tensor):
        return value.to(device, non_blocking=True)
    return [item.to(device, non_blocking=True) if isinstance(item, torch.Tensor) else item for item in value]


class TorchLoader(RankedLoader[Any]):
    """A loader of dicts of tensors, one row of a batch in axis 0.

    Numbers and fixed shapes are tensors that may be written to, their axes in memory as the column has them (as for
    channels_last); strings and bytes are lists; ragged columns are lists of 1-d tensors.
    """

    def as_iterable_dataset(self) -> IterableView:
        """This loader as a `torch.utils.data.IterableDataset` with state, for trainers that insist on one.

        Give it to a DataLoader with `batch_size=None, num_workers=0`: it makes batches on threads of its own.
        """
        return IterableView(self)

    def __getitem__(self, place: object) -> NoReturn:
        # What has none is taken by a DataLoader for a data set of single rows, and fails in it.
        raise TypeError(
            "a loader has no single rows, it gives batches. "
            "hint: iterate it; for a DataLoader, DataLoader(loader.as_iterable_dataset(), batch_size=None)"
        )


class IterableView(IterableDataset[Any]):
    """One loader seen as an IterableDataset; the state is the loader's, and so is what it says of workers."""

    def __init__(self, loader: TorchLoader) -> None:
        super().__init__()
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return iter(self._loader)

    def __len__(self) -> int:
        return len(self._loader)

    def state_dict(self) -> dict[str, Json]:
        """The loader's state."""
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Json], *, new_files: bool = False) -> None:
        """Restore the loader."""
        self._loader.load_state_dict(state, new_files=new_files)

    def set_epoch(self, epoch: int) -> None:
        """Set the loader's epoch."""
        self._loader.set_epoch(epoch)
