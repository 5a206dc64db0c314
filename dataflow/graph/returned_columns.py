"""Rows that a function returned as columns of exactly its schema; which of them do not fit it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from connectors.arrow_types import Arrow
from connectors.fitting import fitted, infinities
from connectors.tensors import shape_of
from dataflow.errors import StageError
from dataflow.graph.block import Column, as_arrow, joined
from dataflow.graph.function_types import infer_type
from dataflow.graph.image_column import ImageType, image_column
from dataflow.graph.rows import Row, plain_value
from dataflow.wording import text_of

__all__ = ["as_column", "fitting_columns", "misfit", "type_of"]


def fitting_columns(
    groups: Sequence[Sequence[Row]], schema: pa.Schema, operator: str
) -> tuple[dict[str, Column], dict[int, StageError]]:
    """The rows of all groups as columns of exactly `schema`, and the errors of the groups that do not fit it.

    A group is left out as a whole where one of its rows does not fit; its error stands under its place.
    """
    try:
        return _columns([row for group in groups for row in group], schema, operator), {}
    except StageError as error:
        if len(groups) == 1:
            return _columns([], schema, operator), {0: error}
    middle = len(groups) // 2
    head, faults = fitting_columns(groups[:middle], schema, operator)
    tail, others = fitting_columns(groups[middle:], schema, operator)
    columns = {name: joined([head[name], tail[name]]) for name in schema.names}
    return columns, {**faults, **{middle + place: error for place, error in others.items()}}


def _columns(rows: Sequence[Row], schema: pa.Schema, operator: str) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for field in schema:
        try:
            columns[field.name] = _fitted([row[field.name] for row in rows], field.type)
        except Exception as error:
            # What is returned is the user's, and may fail in any way when it is looked at.
            lacks = isinstance(error, KeyError) and any(field.name not in row for row in rows)
            raise (_lacking(field.name, operator) if lacks else misfit(field, error, operator)) from error
    for row in rows:
        if len(row) != len(schema):
            others = sorted(map(str, set(row) - set(schema.names)))
            raise StageError(
                f"the function returned {others}, which its schema does not have.",
                operator=operator, hint="return the same keys for every row, or give schema={...}",
            )  # fmt: skip
    return columns


def _lacking(name: str, operator: str) -> StageError:
    return StageError(
        f"the function returned no {name!r}, which its schema has.", operator=operator,
        hint="return the same keys for every row, None where there is no value",
    )  # fmt: skip


def misfit(field: pa.Field[Any], error: Exception, operator: str) -> StageError:
    """The error of values that a function returned and that are none of their column."""
    kind: Arrow = field.type
    dense = shape_of(kind)
    fits, more = "...", ""
    if dense is not None and len(dense[1]) == 1:
        fits, more = f"'list<{kind.value_type}>'", ", which pad({...}) behind it brings to one length"
    return StageError(
        f"the function returned for column {field.name!r} what is no {kind}: {text_of(error)}", operator=operator,
        hint="all rows have the type that schema= gives, or without it that of the first rows; for one that all "
        f"values fit, give schema={{'{field.name}': {fits}}}{more}",
    )  # fmt: skip


def _fitted(values: Sequence[object], kind: pa.DataType) -> Column:
    plain = [plain_value(value) for value in values]
    if isinstance(kind, ImageType):
        return image_column([None if value is None else np.asarray(value) for value in plain], kind)
    return fitted(plain, kind)


def type_of(values: Any, name: str, operator: str) -> Arrow:
    """The type of a whole column that a function returned: an array of NumPy or Arrow, or one value a row.

    Raises:
        PlanError: the values have no common type.
    """
    if isinstance(values, pa.ChunkedArray | pa.Array):
        return values.type
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return as_arrow(values).type
    return infer_type(list(values), name, operator)


def as_column(values: Any, kind: pa.DataType) -> Column:
    """A whole column that a function returned, as one of a type. It is a copy: the function may return the same
    memory for the next block.

    Raises:
        TypeError, ValueError, pyarrow.ArrowException: a value does not fit it, or what looking at it raised.
    """
    if isinstance(values, pa.ChunkedArray):
        return _cast(pa.concat_arrays(values.chunks) if values.num_chunks else values.combine_chunks(), kind)
    if isinstance(values, pa.Array):
        return _cast(pa.concat_arrays([values]), kind)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        values = values.copy()
        if shape_of(kind) == (values.dtype, values.shape[1:]):
            return values
        return _cast(as_arrow(values), kind)
    return _fitted(list(values), kind)


def _cast(column: Arrow, kind: pa.DataType) -> Arrow:
    made = column.cast(kind)
    if made.type != column.type and infinities(made) != infinities(column):
        raise ValueError(f"a value is too large for {kind}")
    return made
