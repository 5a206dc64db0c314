"""What an operator contributes to the contract test: some `CASES` in one file of `operator_cases/`.

    # tests/contracts/operator_cases/take.py
    CASES = [OperatorCase(operator="take", about="some rows", build=lambda folder: dense(folder).take(9))]

`cases()` finds the files; nothing needs to be listed anywhere. Functions that pipelines call stand at the top of such
a file, where specs and pickles find them.
"""

from __future__ import annotations

import importlib
import io
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from PIL import Image

import dataflow as flow

__all__ = ["OperatorCase", "cases", "dense", "gaps", "nested", "pictures", "write_sources"]

# Three fragments, so that lanes begin and end inside of them.
_GROUPS = (5, 3, 7)
_ROWS = sum(_GROUPS)


@dataclass(frozen=True, kw_only=True)
class OperatorCase:
    """One way to use one operator.

    `operator` is its registered name. `build(folder)` gives a pipeline over the sources that `write_sources` has
    written there; the last step of that name is looked at, and batches are made only where the operator makes them.
    """

    operator: str
    about: str
    build: Callable[[Path], flow.Pipeline]

    def __str__(self) -> str:
        return f"{self.operator}-{self.about}"


def cases() -> list[OperatorCase]:
    """Every one of `CASES` in `operator_cases/`, by file name."""
    folder = Path(__file__).with_name("operator_cases")
    names = sorted(module.name for module in pkgutil.iter_modules([str(folder)]))
    found = [case for name in names for case in importlib.import_module(f"operator_cases.{name}").CASES]
    if not all(isinstance(case, OperatorCase) for case in found):
        raise TypeError(f"a file in {folder} has CASES that are no OperatorCase")
    return found


def dense(folder: Path) -> flow.Pipeline:
    """Columns of every shape, without a null."""
    return flow.read(folder / "dense.arrow")


def gaps(folder: Path) -> flow.Pipeline:
    """Columns with nulls, and with nulls inside lists."""
    return flow.read(folder / "gaps.arrow")


def pictures(folder: Path) -> flow.Pipeline:
    """Files of images of many sizes, boxes, a point and a mask of each, images of one size, and labels."""
    return flow.read(folder / "pictures.arrow")


def nested(folder: Path) -> flow.Pipeline:
    """Structs, some of them null, with a null in some of their fields."""
    return flow.read(folder / "nested.arrow")


def write_sources(folder: Path) -> None:
    """Write what `dense`, `gaps`, `pictures` and `nested` read."""
    _write(folder / "dense.arrow", _dense())
    _write(folder / "gaps.arrow", _gaps())
    _write(folder / "pictures.arrow", _pictures())
    _write(folder / "nested.arrow", _nested())


def _write(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        start = 0
        for rows in _GROUPS:
            writer.write_table(table.slice(start, rows))
            start += rows


def _dense() -> pa.Table:
    numbers = np.arange(_ROWS)
    images = np.arange(_ROWS * 4, dtype=np.uint8).reshape(_ROWS, 2, 2)
    return pa.table(
        {
            "x": numbers,
            "label": pa.array(numbers * 7 % 5, pa.int32()),
            "level": pa.array(numbers / 8, pa.float32()),
            "text": [f"row {'é' * (number % 4)}" for number in range(_ROWS)],
            "words": pa.array([list(range(number % 4)) for number in range(_ROWS)], pa.list_(pa.int32())),
            "pair": pa.array([[number, -number] for number in range(_ROWS)], pa.list_(pa.int16(), 2)),
            "image": pa.FixedShapeTensorArray.from_numpy_ndarray(images),
            "time": pa.array(numbers * 1_000, pa.timestamp("ms")),
        }
    )


def _gaps() -> pa.Table:
    numbers = range(_ROWS)
    return pa.table(
        {
            "x": np.arange(_ROWS),
            "number": pa.array([None if number % 3 == 0 else number for number in numbers], pa.int64()),
            "text": [None if number % 4 == 0 else f"row {number}" for number in numbers],
            "words": pa.array([_ragged(number) for number in numbers], pa.list_(pa.float32())),
            "pair": pa.array(
                [None if number % 5 == 1 else [number, None if number % 5 == 2 else 1] for number in numbers],
                pa.list_(pa.int16(), 2),
            ),
        }
    )


def _ragged(number: int) -> list[float | None] | None:
    if number % 6 == 5:
        return None
    return [None if place == 1 and number % 4 == 2 else number / 4 for place in range(number % 4)]


def _pictures() -> pa.Table:
    rng = np.random.default_rng(5)
    sizes = [(9 + number % 4, 12 - number % 3) for number in range(_ROWS)]
    images = rng.integers(0, 256, (_ROWS, 8, 10, 3), np.uint8)
    boxes = [[[1, 2, 5 + place, 8] for place in range(number % 3)] for number in range(_ROWS)]
    return pa.table(
        {
            "file": [_png(rng.integers(0, 256, (*size, 3), np.uint8)) for size in sizes],
            "mask": [_png(rng.integers(0, 5, size, np.uint8)) for size in sizes],
            "boxes": pa.array(boxes, pa.list_(pa.list_(pa.float32(), 4))),
            "point": pa.array([[number / 2, 3] for number in range(_ROWS)], pa.list_(pa.float32(), 2)),
            "image": pa.FixedShapeTensorArray.from_numpy_ndarray(images),
            "label": np.arange(_ROWS) % 4,
        }
    )


def _nested() -> pa.Table:
    rows = [
        None
        if number % 5 == 4
        else {"bytes": b"%d" % number, "path": None if number % 3 else f"{number}.jpg"}
        for number in range(_ROWS)
    ]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    pairs = pa.array([{"left": number, "right": [number] * 2} for number in range(_ROWS)])
    return pa.table({"x": np.arange(_ROWS), "file": pa.array(rows, kind), "pair": pairs})


def _png(pixels: npt.NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()
