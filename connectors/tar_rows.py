"""`Payloads` and `to_chunk`: the members of some samples become Arrow columns."""

from __future__ import annotations

import re
from array import array
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from connectors.arrow_types import Column
from connectors.conform import conform
from connectors.contract import BadRow, Chunk
from connectors.tar_members import Member
from dataflow.errors import DataError

__all__ = ["KEY", "Payloads", "to_chunk"]

KEY = "__key__"

# By row: the element of the payload array that a column has there, or None.
Places: TypeAlias = list[int | None]

_INT64 = range(-(1 << 63), 1 << 63)
# The length is bounded because int() of a long text takes quadratic time.
_INTEGER = re.compile(rb"\s*[+-]?[0-9]{1,20}\s*")


@dataclass(frozen=True, slots=True)
class Payloads:
    """The keys of some samples, and which of `elements` (large_binary) each column of each sample is."""

    keys: Sequence[str]
    places: Sequence[dict[str, int]]
    elements: Column

    @classmethod
    def in_place(
        cls, buffer: pa.Buffer, offset: int, samples: Sequence[tuple[str, dict[str, Member]]]
    ) -> Payloads:
        """Payloads that lie in `buffer`, the bytes of the archive at `offset`: nothing is copied.

        The array is the payloads (even elements) and what lies between them (odd elements), so that a
        `take` copies each payload once, without the GIL; after it the buffer is needed no more.
        """
        ends = [end - offset for _, f in samples for m in f.values() for end in (m.data, m.data + m.size)]
        offsets = pa.py_buffer(array("q", ends))
        elements = pa.Array.from_buffers(pa.large_binary(), len(ends) - 1, [None, offsets, buffer])
        return cls([key for key, _ in samples], _number_places(samples, 2), elements)

    @classmethod
    def copied(cls, samples: Sequence[tuple[str, dict[str, bytes]]]) -> Payloads:
        """Payloads that were read one by one."""
        elements = pa.array([value for _, f in samples for value in f.values()], pa.large_binary())
        return cls([key for key, _ in samples], _number_places(samples, 1), elements)


def to_chunk(
    payloads: Payloads, types: pa.Schema, required: Container[str], schema: pa.Schema, path: str
) -> Chunk:
    """Return the samples as rows of `schema`; `types` has the type that each of its columns is decoded to.

    A sample that lacks a column of `required`, or has a value that cannot be decoded, is a bad row.
    """
    places: dict[str, Places] = {n: [row.get(n) for row in payloads.places] for n in types.names}
    bad: dict[int, DataError] = {}
    for name, elements in places.items():
        if name in required and None in elements:
            for row, place in enumerate(elements):
                if place is None:
                    bad.setdefault(row, _lacks(payloads.keys[row], name, path))
    # A column that no sample has is left to `conform`, which makes nulls of whatever type is asked for.
    places = {name: elements for name, elements in places.items() if any(e is not None for e in elements)}
    decoded: dict[str, Column] = {}
    for field in types:
        if field.name in places and not pt.is_large_binary(field.type):
            taken = payloads.elements.take(pa.array(places[field.name], pa.int64()))
            decoded[field.name], wrong = _decode(taken, field.type)
            for row in wrong:
                bad.setdefault(row, _undecodable(payloads.keys[row], field, taken[row].as_py(), path))
    good = pa.array([row not in bad for row in range(len(payloads.keys))], pa.bool_()) if bad else None
    columns: dict[str, Column] = {KEY: _only(good, pa.array(payloads.keys, pa.string()))}
    for name, elements in places.items():
        if name in decoded:
            columns[name] = _only(good, decoded[name])
        else:
            kept = [None if row in bad else place for row, place in enumerate(elements)] if bad else elements
            columns[name] = payloads.elements.take(pa.array(kept, pa.int64()))
    batch = pa.RecordBatch.from_pydict(columns)
    return Chunk(conform(batch, schema, file=path), tuple(BadRow(row, bad[row]) for row in sorted(bad)))


def _number_places(samples: Sequence[tuple[str, dict[str, Any]]], step: int) -> list[dict[str, int]]:
    elements = count(0, step)
    return [{column: next(elements) for column in fields} for _, fields in samples]


def _only(good: Column | None, column: Column) -> Column:
    return column if good is None else pc.if_else(good, column, pa.scalar(None, column.type))


def _decode(taken: Column, kind: pa.DataType) -> tuple[Column, list[int]]:
    """Decode binaries to `kind`, string or int64; rows that cannot be are null and listed."""
    if pt.is_string(kind):
        try:
            return taken.cast(kind), []
        except pa.ArrowInvalid:
            pass  # some row is not UTF-8: the rows one by one tell which
    values: list[str | int | None] = []
    wrong = []
    for row, raw in enumerate(taken.to_pylist()):
        try:
            values.append(raw if raw is None else raw.decode() if pt.is_string(kind) else _integer(raw))
        except ValueError:
            values.append(None)
            wrong.append(row)
    return pa.array(values, kind), wrong


def _integer(raw: bytes) -> int:
    if not _INTEGER.fullmatch(raw):
        raise ValueError("not an integer")
    value = int(raw)
    if value not in _INT64:
        raise ValueError("more than 64 bits")
    return value


def _lacks(key: str, column: str, path: str) -> DataError:
    return DataError(
        f"the sample {key!r} has no {column!r}.",
        file=path,
        hint=f'Tar(optional=("{column}",)) makes it null',
    )


def _undecodable(key: str, field: pa.Field[Any], raw: bytes, path: str) -> DataError:
    shown = repr(raw[:40])[1:] + ("..." if len(raw) > 40 else "")
    kind, option = ("UTF-8 text", "text") if pt.is_string(field.type) else ("a 64-bit integer", "integers")
    return DataError(
        f"{field.name!r} of the sample {key!r} is {shown}, which is not {kind}.",
        file=path,
        hint=f"Tar({option}=...) without {field.name.rpartition('.')[2]!r} reads it as bytes",
    )
