"""Calling a user's functions: over the rows or the columns of a block, and saying where they failed."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.stop import stop_of_thread
from connectors.tensors import has_nulls, shape_of, to_numpy
from dataflow.errors import DataError, StageError
from dataflow.graph.block import BadSample, Block, Column
from dataflow.graph.rows import each_row, listed
from dataflow.wording import text_of

__all__ = [
    "Stopped",
    "bad_row",
    "call_rows",
    "check_wanted",
    "columns_view",
    "fail",
    "first_id",
    "forget_frames",
    "function_name",
    "stage_error",
    "sub_number",
]

_PROJECT: Final = Path(__file__).parents[2]
_NOT_THE_USERS: Final = (
    f"{Path(os.__file__).parent}{os.sep}",
    *(f"{_PROJECT / package}{os.sep}" for package in ("dataflow", "connectors", "loaders", "bench")),
    "<frozen ",
)


def function_name(function: object) -> str:
    """`module:qualified.name` of a function, as a spec names it."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or type(function).__module__}:{name}"


def stage_error(operator: str, error: Exception, *, sample_id: int | None = None) -> StageError | DataError:
    """`error` as a StageError that names operator, sample and the user's line; `error` is its cause."""
    if isinstance(error, StageError | DataError):
        return error
    location = _location(error)
    row = "" if sample_id is None else f", sample {sample_id >> 40}:{sample_id & (1 << 40) - 1}"
    wrapped = StageError(
        f"{type(error).__name__}: {text_of(error)}{row}",
        operator=operator,
        location=location,
        hint="mend the function, or let the loader skip such rows with on_error='skip'",
    )
    wrapped.__cause__ = error
    return wrapped


def _location(error: Exception) -> str:
    """The innermost line that raised and is in no library; where all are, the innermost."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_the_users(frame.filename)] or frames
    return f"{own[-1].filename}:{own[-1].lineno}" if own else ""


def _is_the_users(filename: str) -> bool:
    installed = {"site-packages", "dist-packages"} & set(Path(filename).parts)
    return not installed and not filename.startswith(_NOT_THE_USERS)


def fail(operator: str, error: Exception, *, sample_id: int | None = None) -> NoReturn:
    """Raise `error` as `stage_error` makes it."""
    wrapped = stage_error(operator, error, sample_id=sample_id)
    if wrapped is error:
        raise error
    raise wrapped from error


def forget_frames(error: BaseException | None) -> None:
    """Drop the tracebacks of an error that is kept, and of all that led to it: their frames would keep whole
    windows in memory."""
    seen: set[int] = set()
    links = [error]
    while links:
        link = links.pop()
        if link is None or id(link) in seen:  # causes can go round in a circle
            continue
        seen.add(id(link))
        link.__traceback__ = None
        links += [link.__cause__, link.__context__]
        if isinstance(link, BaseExceptionGroup):
            links += link.exceptions


class Stopped(BaseException):
    """Nobody wants what this thread works at any more. No Exception: it is the fault of no row."""


def check_wanted() -> None:
    """Called between two calls of a user's function, which may be slow.

    Raises:
        Stopped: the loader was closed.
    """
    if stop_of_thread().is_set():
        raise Stopped


def call_rows(
    function: Callable[..., object], block: Block, operator: str, extra: Iterable[tuple[object, ...]] = ()
) -> tuple[list[object], list[BadSample]]:
    """Call `function` once a row; a row that fails gives None and a BadSample.

    `extra` has further positional arguments for every row, or is empty.
    """
    results: list[object] = []
    bad: list[BadSample] = []
    rows = each_row(block.columns, block.rows)
    arguments: Sequence[tuple[object, ...]] = list(extra) or [()] * block.rows
    for place, (row, more) in enumerate(zip(rows, arguments, strict=True)):
        check_wanted()
        try:
            results.append(function(row, *more))
        except Exception as error:
            bad.append(bad_row(block, place, operator, error))
            results.append(None)
    return results, bad


def bad_row(block: Block, row: int, operator: str, error: Exception) -> BadSample:
    """Row `row` of a block, which an operator could not make because of `error`."""
    sample = first_id(block, row)
    return BadSample(int(block.origin[row]), sample, operator, stage_error(operator, error, sample_id=sample))


def sub_number(block: Block, row: int) -> int:
    """What tells a row apart from others of its sample: the sub-numbers of all flat_maps, as one number."""
    if block.ids.ndim == 1:
        return 0
    number = 0
    for part in block.ids[row, 1:].tolist():
        number = (number << 20) + part & (1 << 64) - 1
    return number


def first_id(block: Block, row: int) -> int:
    """The sample id of a row; the first of them behind `zip` and `flat_map`."""
    return int(block.ids[row]) if block.ids.ndim == 1 else int(block.ids[row, 0])


def columns_view(block: Block) -> dict[str, npt.NDArray[np.generic] | list[object]]:
    """The columns for a batched function: arrays (rows, *shape) where dense and without nulls, else lists.

    Times are datetime64 and timedelta64, as single rows have them.

    They are copies: it may be called again for the same rows, and what it writes shall be seen nowhere else.
    """
    return {name: _view(column) for name, column in block.columns.items()}


def _view(column: Column) -> npt.NDArray[np.generic] | list[object]:
    if isinstance(column, np.ndarray):
        return column.copy()
    if pa.types.is_temporal(column.type) and column.null_count == 0 and not pa.types.is_time(column.type):
        return np.array(column.to_numpy(zero_copy_only=False))
    if shape_of(column.type) is not None and not has_nulls(column):
        return to_numpy(column).copy()
    return [row["value"] for row in listed({"value": column}, len(column))]
