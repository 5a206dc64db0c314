"""`parse`: lines of JSON become Arrow tables, and the lines that are wrong are told apart.

Arrow's parser does the work, without the GIL. It parses JSON values, not lines, takes bytes that are not
UTF-8 for text, and ends the process on a block that begins with `null` or nests too deep: what is handed to
it is checked for these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as paj
import pyarrow.types as pt

from connectors.arrow_types import Column, Kind, is_list
from connectors.lines import line_ends, strip_lines

__all__ = ["Part", "Unknown", "count_lines", "parse", "unparsable"]

Unknown: TypeAlias = Literal["ignore", "infer", "error"]

# Nesting that no data has: 30,000 levels overflow a stack of 8 MiB, and the time to build a type of so many
# levels grows with their square.
_MAX_LEVELS: Final = 1000
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_LONG_NUMBER: Final = re.compile(rb"[0-9]{309}")  # the largest float64 has 309 digits
_NOISE: Final = re.compile(r"^JSON parse error: |,? in row \d+$")


class Part(NamedTuple):
    """Consecutive lines that parse together, or (`table` is None) one that does not and why.

    `offset` is that of the first line within the block.
    """

    offset: int
    rows: int
    table: pa.Table | None
    error: str = ""


def parse(block: bytes, schema: pa.Schema | None, unknown: Unknown) -> Iterator[Part]:
    """Yield the rows of a block of whole lines, blank ones left out, in order and in as few parts as can be.

    Args:
        block: lines of UTF-8, each with one JSON object.
        schema: the types of the columns known; every table has exactly these; None to infer all.
        unknown: what to do with a field that the schema lacks: leave it out, have the line be wrong, or,
            without a schema, infer its type.
    """
    lines = _plain_lines(block)
    if lines is not None:
        try:
            yield Part(0, lines, _parse(block, lines, schema, unknown))
            return
        except ValueError:
            pass  # some line is wrong: find it
    yield from _bisect(strip_lines(block), schema, unknown)


def count_lines(block: bytes) -> int:
    """How many rows `parse` yields, which depends on the lines that are not blank alone."""
    lines = _plain_lines(block)
    return len(strip_lines(block)) if lines is None else lines


def _plain_lines(block: bytes) -> int | None:
    """The number of lines if each begins with a brace, which takes a tenth of looking at each line."""
    if not block.startswith(b"{"):
        return None
    ends = line_ends(block)
    rest = len(ends) - block.endswith(b"\n")
    return rest + 1 if bool((_codes(block)[ends[:rest] + 1] == ord("{")).all()) else None


def _codes(block: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(block, dtype=np.uint8)


def _bisect(lines: Sequence[tuple[int, bytes]], schema: pa.Schema | None, unknown: Unknown) -> Iterator[Part]:
    if not lines:
        return
    try:
        if not all(line.startswith(b"{") for _, line in lines):
            raise ValueError("it is not an object")
        table = _parse(b"\n".join(line for _, line in lines), len(lines), schema, unknown)
    except ValueError as error:
        if len(lines) == 1:
            yield Part(lines[0][0], 1, None, _NOISE.sub("", str(error)).rstrip("."))
            return
        middle = len(lines) // 2
        yield from _bisect(lines[:middle], schema, unknown)
        yield from _bisect(lines[middle:], schema, unknown)
    else:
        yield Part(lines[0][0], len(lines), table)


def _parse(block: bytes, lines: int, schema: pa.Schema | None, unknown: Unknown) -> pa.Table:
    """Parse lines that begin with a brace; every fault is a ValueError (as ArrowInvalid is)."""
    _check_text(block)
    _check_depth(block)
    options = paj.ParseOptions(
        explicit_schema=None if schema is None else _as_json(schema), unexpected_field_behavior=unknown
    )
    # One block, so that a type is inferred from all of it.
    whole = paj.ReadOptions(use_threads=False, block_size=len(block) + 1)
    source: Any = pa.BufferReader(block)  # the stubs of pyarrow have Python's files only
    try:
        table = paj.read_json(source, read_options=whole, parse_options=options)
        if table.num_rows != lines:
            raise ValueError("it is not one object")
        if _has_infinity(table) and _LONG_NUMBER.search(_STRING.sub(b"", block)):
            raise ValueError("a number is too large for 64 bits")
        return table if schema is None or table.schema.equals(schema) else _cast(table, schema)
    except pa.ArrowNotImplementedError as error:
        raise ValueError(str(error)) from error


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = []
    for column, field in zip(table.columns, schema, strict=True):
        if column.null_count and not field.nullable:
            raise ValueError(f"it has no value for {field.name!r}")
        # pyarrow's cast of list<struct<x: null>>, even to itself, makes an invalid array.
        columns.append(column if column.type.equals(field.type) else column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _has_infinity(table: pa.Table) -> bool:
    """Whether there is an infinite number: Arrow reads one from a long row of digits, too."""
    level: list[Column] = table.columns
    # Not by recursion: a line nests deeper than Python's stack.
    while level:
        if any(pt.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py() for column in level):
            return True
        level = [inside for column in level for inside in _inside(column)]
    return False


def _inside(column: Column) -> list[Column]:
    if pt.is_struct(column.type):
        found: list[Column] = column.flatten()
        return found
    return [pc.list_flatten(column)] if pt.is_list(column.type) else []


def _check_text(block: bytes) -> None:
    ends = pa.py_buffer(np.array([0, len(block)], dtype=np.int64).tobytes())
    text = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, pa.py_buffer(block)])
    try:
        text.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise ValueError("it is not UTF-8") from error


def _check_depth(block: bytes) -> None:
    # A line of so many levels has at least as many bytes: most blocks have no such line.
    ends = np.concatenate(([-1], line_ends(block), [len(block)]))
    for long in np.flatnonzero(np.diff(ends) > _MAX_LEVELS).tolist():
        line = block[ends[long] + 1 : ends[long + 1]]
        if line.count(b"[") + line.count(b"{") >= _MAX_LEVELS and _levels(line) >= _MAX_LEVELS:
            raise ValueError("it nests too deep")


def _levels(line: bytes) -> int:
    bare = _STRING.sub(b"", line)
    # One bit tells a bracket from a brace.
    codes = _codes(bare) | 0x20
    return int(np.cumsum((codes == ord("{")).astype(np.int64) - (codes == ord("}"))).max(initial=0))


def unparsable(schema: pa.Schema) -> str:
    """Say what keeps lines from being parsed to the types of `schema`, or nothing."""
    loose = pa.schema([field.with_nullable(True) for field in schema])
    return next(parse(b"{}", loose, "ignore")).error


def _as_json(schema: pa.Schema) -> pa.Schema:
    """The types to parse as where Arrow can only cast to those wanted."""
    return pa.schema([field.with_type(_parsed(field.type)).with_nullable(True) for field in schema])


def _parsed(kind: Kind) -> Kind:
    if pt.is_dictionary(kind):
        return _parsed(kind.value_type)
    if pt.is_date(kind):
        return pa.string()
    if pt.is_float16(kind):
        return pa.float32()
    if is_list(kind):
        return pa.list_(_parsed(kind.value_type))
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_parsed(field.type)).with_nullable(True) for field in kind.fields])
    return kind
