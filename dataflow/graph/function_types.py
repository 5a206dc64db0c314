"""The columns that a function gives, found out from the first rows that it returned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from connectors.arrow_types import Arrow, is_ragged
from connectors.tensors import shape_of
from dataflow.errors import PlanError
from dataflow.graph.block import as_arrow
from dataflow.graph.image_column import IMAGE_DTYPES, ImageType
from dataflow.graph.rows import Row, plain_value
from dataflow.wording import text_of

__all__ = ["check_keys", "infer_schema", "infer_type", "kept_types"]


def infer_schema(rows: Sequence[Row], operator: str, before: pa.Schema | None = None) -> pa.Schema:
    """The schema of the rows that a function returned; `before` is that of the rows that it was given.

    A type is as `infer_type` says. What the function was given as a list column, and returns under the same name
    with the same values, stays one, whatever the lengths of the first rows; and what is null in all of them keeps
    the type that it had.

    Raises:
        PlanError: the rows have different keys, or a value has no Arrow type.
    """
    names = list(rows[0])
    for row in rows:
        if set(row) != set(names):
            now, first = sorted(map(str, row)), sorted(map(str, names))
            raise PlanError(
                f"{operator}: the function returned the keys {now}, and before {first}.",
                hint="return the same keys for every row",
            )
    check_keys(names, operator)
    kinds = {name: infer_type([row[name] for row in rows], name, operator) for name in names}
    return pa.schema(list(kept_types(kinds, before).items()))


def check_keys(names: Iterable[object], operator: str) -> None:
    """What a function returned has names of columns for keys.

    Raises:
        PlanError: a key is no string.
    """
    for name in names:
        if not isinstance(name, str):
            raise PlanError(
                f"{operator}: the function returned the key {name!r}.", hint="name columns by strings"
            )


def kept_types(kinds: Mapping[str, Arrow], before: pa.Schema | None) -> dict[str, Arrow]:
    """The types of what a function returned, those of `before` where they say the same and more."""
    given = {} if before is None else {field.name: field.type for field in before}
    return {name: _said_before(kind, given.get(name)) or kind for name, kind in kinds.items()}


def _said_before(kind: Arrow, given: Arrow) -> Arrow:
    """`given` where a few values of it would have been taken for a `kind`, else None."""
    if given is None or kind == given or pa.types.is_null(kind):
        return given
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(given):
        # What functions are given of a timestamp with a time zone is the time in UTC.
        return given if kind.unit == given.unit and kind.tz is None else None
    if isinstance(given, ImageType):
        return given if given.holds(kind) else None
    if shape_of(given) is not None and shape_of(given) == shape_of(kind):
        # Arrays say neither that their numbers are bfloat16, nor how their axes shall lie in memory.
        return given if isinstance(given, pa.FixedShapeTensorType) else None
    if not is_ragged(given):
        return None
    dense = shape_of(kind)
    if dense is not None and dense[1]:
        return given if shape_of(given.value_type) == (dense[0], dense[1][1:]) else None
    return given if is_ragged(kind) and _said_before(kind.value_type, given.value_type) else None


def infer_type(values: Sequence[object], name: str, operator: str) -> Arrow:
    """The type of the values that a function returned for column `name`.

    Arrays of one dtype and one shape give a fixed-shape column; arrays of one or two axes of which the first has
    several lengths, and Python lists, give a list column; arrays of bytes of three axes and several shapes are images;
    the rest is what Arrow infers.

    Raises:
        PlanError: they have no common type.
    """
    try:
        present: list[Any] = [plain_value(value) for value in values if value is not None]
        arrays = [v for v in present if isinstance(v, np.ndarray | np.generic) and v.dtype.kind in "biufMm"]
        if arrays and len(arrays) == len(present):
            dtype = np.result_type(*arrays)
            shapes = {array.shape for array in arrays}
            if len(shapes) == 1:
                return as_arrow(np.zeros((1, *shapes.pop()), dtype)).type
            if {len(shape) for shape in shapes} in ({1}, {2}) and len({shape[1:] for shape in shapes}) == 1:
                return pa.list_(as_arrow(np.zeros((1, *shapes.pop()[1:]), dtype)).type)
            if {len(shape) for shape in shapes} == {3} and dtype in IMAGE_DTYPES:
                channels = {np.shape(array)[-1] for array in arrays}
                return ImageType(str(dtype), channels.pop() if len(channels) == 1 else None)
            raise ValueError(f"shapes {sorted(shapes)} differ")
        return pa.array(present).type
    except Exception as error:
        # What is returned is the user's, and may fail in any way when it is looked at.
        hint = f"give the type: schema={{'{name}': ...}}, or return arrays of one shape"
        if any(
            hasattr(value, "__array_interface__") and not isinstance(value, np.ndarray) for value in values
        ):
            hint = f"return the pixels, as {{'{name}': np.asarray(image)}}"
        raise PlanError(
            f"{operator}: the values returned for {name!r} have no common type: {text_of(error)}", hint=hint
        ) from error
