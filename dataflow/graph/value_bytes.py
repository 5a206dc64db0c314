"""The bytes of a value: the same for equal values of one kind, on every machine and in every file.

    null                                    n
    a truth value                           b  0 or 1
    a whole number, of any width            i  two's complement, as short as it can be, the lowest byte first
    a float, of any width                   f  as a double; -0.0 is 0.0, and every NaN is one
    a decimal, of any scale                 d  digits, "e", exponent, without zeros at the end
    text                                    s  UTF-8
    bytes                                   y  as they are
    a date                                  D  days since 1970-01-01 as a whole number
    a point in time, with a zone or without z or t, and nanoseconds since 1970-01-01 as a whole number
    a time of day, a span of time           c or u, and nanoseconds as a whole number
    a span of months, days and nanoseconds  m  the three as text
    a list, of any form                     l  its values
    a struct                                r  names and values
    a map                                   l  structs of `key` and `value`

What holds others has the length of each, in 8 bytes, in front of it. A dictionary, run ends and an extension type are
what they stand for; a tensor is the list of its numbers, the last axis fastest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from connectors.arrow_types import Arrow, is_list
from dataflow.errors import PlanError

__all__ = ["value_bytes"]

_NULL: Final = b"n"
_NANOSECONDS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_MILLISECONDS_A_DAY: Final = 86_400_000


def value_bytes(column: Arrow) -> list[bytes]:
    """The bytes of each value of an Arrow array.

    Raises:
        PlanError: the type has none, as a union.
    """
    kind = column.type
    if isinstance(kind, pa.FixedShapeTensorType):
        return _tensors(column)
    if isinstance(kind, pa.BaseExtensionType):
        return value_bytes(column.storage)
    if pt.is_dictionary(kind):
        return value_bytes(column.dictionary_decode())
    if pt.is_run_end_encoded(kind):
        return value_bytes(pc.call_function("run_end_decode", [column]))
    if pt.is_null(kind):
        return [_NULL] * len(column)
    if pt.is_struct(kind):
        return _structs(column)
    if is_list(kind) or pt.is_list_view(kind) or pt.is_large_list_view(kind) or pt.is_map(kind):
        return [b"l" + _framed(items) if items is not None else _NULL for items in _lists(column)]
    encode = _encoder(kind)
    return [_NULL if value is None else encode(value) for value in _plain(column)]


def _plain(column: Arrow) -> list[Any]:
    """Python's values; of times the counts, for as objects nanoseconds depend on what is installed."""
    kind = column.type
    if pt.is_temporal(kind) and not pt.is_interval(kind):
        column = column.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    values: list[Any] = column.to_pylist()
    return values


def _encoder(kind: Arrow) -> Callable[[Any], bytes]:
    """From one value as `_plain` gives it to its bytes."""
    encodings: tuple[tuple[Callable[[Arrow], bool], Callable[[Any], bytes]], ...] = (
        (pt.is_boolean, lambda value: b"b" + bytes([value])),
        (pt.is_integer, lambda value: b"i" + _whole(value)),
        (pt.is_floating, lambda value: b"f" + _double(float(value))),
        (pt.is_decimal, lambda value: b"d" + _decimal(value)),
        (_is_text, lambda value: b"s" + value.encode()),
        (_is_binary, lambda value: b"y" + value),
        (pt.is_date32, lambda value: b"D" + _whole(value)),
        (pt.is_date64, lambda value: b"D" + _whole(value // _MILLISECONDS_A_DAY)),
        (pt.is_timestamp, lambda value: (b"t" if kind.tz is None else b"z") + _nanoseconds(value, kind)),
        (pt.is_time, lambda value: b"c" + _nanoseconds(value, kind)),
        (pt.is_duration, lambda value: b"u" + _nanoseconds(value, kind)),
        (pt.is_interval, lambda value: b"m" + " ".join(map(str, value)).encode()),
    )
    for is_kind, encode in encodings:
        if is_kind(kind):
            return encode
    raise PlanError(
        f"values of type {kind} cannot be told apart by their bytes.", hint="use a column of another type"
    )


def _is_text(kind: Arrow) -> bool:
    return pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)


def _is_binary(kind: Arrow) -> bool:
    variable = pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind)
    return variable or pt.is_fixed_size_binary(kind)


def _whole(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)


def _nanoseconds(count: int, kind: Arrow) -> bytes:
    return _whole(count * _NANOSECONDS[kind.unit])


def _double(value: float) -> bytes:
    if value != value:
        return struct.pack("<Q", 0x7FF8 << 48)
    return struct.pack("<d", value + 0.0)  # -0.0 + 0.0 is 0.0


def _decimal(value: Decimal) -> bytes:
    # Not `normalize`, which rounds to the digits of the caller's context.
    sign, digits, exponent = value.as_tuple()
    written = "".join(map(str, digits)).lstrip("0")
    kept = written.rstrip("0")
    if not kept:
        return b"0e0"
    return f"{'-' if sign else ''}{kept}e{int(exponent) + len(written) - len(kept)}".encode()


def _framed(parts: Iterable[bytes]) -> bytes:
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def _lists(column: Arrow) -> list[Sequence[bytes] | None]:
    return [value_bytes(row.values) if row.is_valid else None for row in column]


def _tensors(column: Arrow) -> list[bytes]:
    kind = column.type
    order = np.arange(int(np.prod(kind.shape))).reshape(kind.shape)
    places = order.transpose(kind.permutation or range(order.ndim)).ravel().tolist()
    rows = _lists(column.storage)
    return [_NULL if items is None else b"l" + _framed(items[place] for place in places) for items in rows]


def _structs(column: Arrow) -> list[bytes]:
    names = [field.name.encode() for field in column.type]
    fields = [value_bytes(column.field(place)) for place in range(len(names))]
    rows = zip(*fields, strict=True) if fields else ([] for _ in range(len(column)))
    return [
        b"r" + _framed(part for pair in zip(names, row, strict=True) for part in pair) if valid else _NULL
        for row, valid in zip(rows, column.is_valid().to_pylist(), strict=True)
    ]
