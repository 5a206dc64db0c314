"""`Jsonl`: one JSON object a line."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from connectors.conform import conform
from connectors.contract import BadRow, Chunk, FileInfo, Fragment, Opened, Scan, Traits
from connectors.faults import changed
from connectors.forward import codec_of, pieces
from connectors.json_rows import Part, count_lines, parse, unparsable
from connectors.json_types import Conflict, depth_of, fields_in, merge
from connectors.lines import blocks, runs, strip_lines
from connectors.store import Store
from dataflow.errors import DataError, PlanError
from dataflow.wording import counted

__all__ = ["Jsonl"]

_BLOCK_BYTES: Final = 4 << 20
# Lines times fields that are built at once. A block of lines that have all their fields has far fewer; 60,000 lines of
# 5 out of 2,000 fields, 4 MB, took 1.8 GB.
_MOST_CELLS: Final = 2 << 20
_FIELD_BYTES: Final = 6  # at least, a field and its value take in a line
_MAX_FIELDS: Final = 30_000
_MAX_DEPTH: Final = 60  # Arrow's own files, in which an index keeps its schema, take 64


@dataclass(frozen=True, kw_only=True)
class Jsonl:
    """Newline-delimited JSON in UTF-8, plain or compressed as a whole (.gz, .zst).

    A row is a line that is not blank. Numbers are int64, or float64 where any of a column has a fraction or
    does not fit; NaN and Infinity are taken; text is string, but a column of nothing but ISO 8601 dates or
    times is a timestamp in UTC; objects are structs, arrays lists. A field that a line lacks is null. A
    line that is no object, has a name twice, or does not fit the types is a bad row.

    Fields:
        schema: the columns and their types; None finds them by one look at every line. With it the scan
            only counts lines. Dates, dictionaries and fixed-size lists can be had in this way.
        extra: a line with a field that `schema` lacks is a bad row, or the field is left out. (Without a
            schema there is none: every field of the files is a column.)

    Source: https://jsonlines.org, RFC 8259.
    """

    schema: pa.Schema | None = None
    extra: Literal["error", "ignore"] = "error"

    def __post_init__(self) -> None:
        if self.extra not in ("error", "ignore"):
            raise PlanError(f"Jsonl(extra={self.extra!r}) is unknown.", hint="use 'error' or 'ignore'")
        if self.schema is None:
            return
        if len(set(self.schema.names)) < len(self.schema):
            raise PlanError("Jsonl(schema=...) has a column twice.", hint="give each column once")
        reason = unparsable(self.schema)
        if reason:
            raise PlanError(
                f"Jsonl(schema=...) cannot be read from JSON: {reason}.",
                hint="give a type that JSON has, and cast in the pipeline",
            )

    @property
    def name(self) -> str:
        return "jsonl"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".ndjson.gz", ".jsonl.gz", ".json.gz", ".ndjson", ".jsonl")

    @property
    def traits(self) -> Traits:
        return Traits(row_ranges=False, single_rows=False, counts_need_scan=True)

    def scan(self, store: Store, files: Sequence[FileInfo]) -> Scan:
        """Count the lines of one file and find the types that hold all of its values.

        Raises:
            DataError: no line of the first block is a JSON object (that fits `schema`), a column has values
                of types that do not go together, or a compressed file is damaged.
            ConnectorError: the store cannot be read.
        """
        (info,) = files
        found = _Found(info.path, self.schema)
        with closing(pieces(store, info, piece_bytes=_BLOCK_BYTES)) as stream:
            for offset, block in blocks(stream, info.path):
                found.add(offset, block)
        ranges = np.array(found.ranges, dtype=np.int64).reshape(-1, 3)
        if codec_of(info.path) and len(ranges):
            ranges = np.array([(0, info.size, ranges[:, 2].sum())], dtype=np.int64)
        return Scan(
            schema=found.schema,
            file=np.zeros(len(ranges), dtype=np.int64),
            offset=ranges[:, 0].copy(),
            length=ranges[:, 1].copy(),
            rows=ranges[:, 2].copy(),
        )

    def read(
        self, opened: Opened, fragment: Fragment, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Iterator[Chunk]:
        """Yield lines as rows; columns not asked for are parsed but not built.

        Raises:
            DataError: the file is not what the index says.
            ConnectorError: the store cannot be read.
        """
        if start == stop:
            return
        info = opened.files[fragment.file]
        path, row = info.path, 0
        strict = self.schema if self.schema is not None and self.extra == "error" else schema
        lines = _MOST_CELLS // max(1, fields_in(strict))
        with closing(_blocks(opened.store, info, fragment)) as source:
            for offset, block in ((o + at, run) for o, b in source for at, run in runs(b, lambda: lines)):
                if row < start and row + (skipped := count_lines(block)) <= start:
                    row += skipped
                    continue
                if row >= stop:
                    return
                batch, wrong = self._parse(block, schema, path)
                bad = {at: _bad_row(part, offset, row + at, path) for at, part in wrong.items()}
                last = min(stop - row, batch.num_rows)
                yield from _chunks(batch, bad, max(start - row, 0), last, max_rows)
                row += batch.num_rows
        if row < stop:
            raise changed(path, f"a fragment has {row} rows, not {fragment.rows}")

    def _parse(self, block: bytes, schema: pa.Schema, path: str) -> tuple[pa.RecordBatch, dict[int, Part]]:
        """The rows of a block, a bad one as nulls, and the bad ones by row."""
        # Only a look at all the columns can tell which fields are extra.
        strict = self.schema is not None and self.extra == "error"
        tables, bad, row = [], {}, 0
        for part in parse(block, self.schema if strict else schema, "error" if strict else "ignore"):
            if part.table is None:
                bad[row] = part
                tables.append(pa.Table.from_arrays([pa.nulls(1, f.type) for f in schema], schema=schema))
            else:
                tables.append(part.table.select(schema.names))
            row += part.rows
        if not len(schema):
            # A table without columns forgets its rows when it is joined with another.
            return pa.RecordBatch.from_pydict({"rows": pa.nulls(row)}).select([]), bad
        (batch,) = pa.concat_tables(tables).combine_chunks().to_batches()
        return conform(batch, schema, file=path), bad


class _Found:
    """What a scan has found: the fragments of a file, and the types that hold all its values."""

    def __init__(self, path: str, given: pa.Schema | None) -> None:
        self.ranges: list[tuple[int, int, int]] = []
        self.schema = pa.schema([]) if given is None else given
        self._path, self._given = path, given
        self._line = 1  # of the file, at the start of the block

    def add(self, offset: int, block: bytes) -> None:
        """Take the next block of whole lines.

        Raises:
            DataError: as `Jsonl.scan`.
        """
        # With a schema given, the first block shows whether the file is what it is said to be.
        look = self._given is None or not self.ranges
        rows = self._look(offset, block) if look else count_lines(block)
        if rows:
            self.ranges.append((offset, len(block), rows))

    def _look(self, offset: int, block: bytes) -> int:
        """Parse the lines of a block, in runs that do not grow beyond what the fields found so far let be built."""
        good = rows = 0
        error = ""
        # So few that no more can be built even where each field of each line is another one.
        lines = math.isqrt(_MOST_CELLS * _FIELD_BYTES * (1 + block.count(b"\n")) // len(block)) // 4

        def most_lines() -> int:
            nonlocal lines
            lines = min(4 * max(1, lines), _MOST_CELLS // max(1, fields_in(self.schema)))
            return lines

        for at, run in runs(block, most_lines):
            for part in parse(run, self._given, "infer" if self._given is None else "ignore"):
                rows += part.rows
                if part.table is None:
                    error = error or part.error
                else:
                    good += part.rows
                    if self._given is None:
                        self._merge(part.table.schema, part, offset + at, run)
            self._line += run.count(b"\n")
        if rows and not good and not self.ranges:
            fits = "" if self._given is None else " that fits the schema given"
            raise DataError(
                f"the first line is wrong: {error}. None of the first {counted(rows, 'line')} is a JSON object{fits}."
                if rows > 1
                else f"the only line is wrong: {error}.",
                file=self._path,
                offset=offset,
                hint="check the format: JSON lines are objects, one a line, not an array",
            )
        return rows

    def _merge(self, schema: pa.Schema, part: Part, offset: int, block: bytes) -> None:
        if depth_of(schema) > _MAX_DEPTH:
            raise DataError(
                f"objects and lists lie more than {_MAX_DEPTH} deep in one another, in or behind this byte.",
                file=self._path,
                offset=offset + part.offset,
                hint="give Jsonl(schema=...) without that column",
            )
        if fields_in(schema) > _MAX_FIELDS or fields_in(self.schema) > _MAX_FIELDS:
            raise DataError(
                f"the objects have more than {_MAX_FIELDS:,} different fields, in or behind this byte.",
                file=self._path,
                offset=offset + part.offset,
                hint="names that are data make no columns: give Jsonl(schema=...) without them",
            )
        try:
            self.schema = merge(self.schema, schema)
        except Conflict as conflict:
            at = _first_with(conflict.path[0], part, block)
            line = self._line + block.count(b"\n", 0, at)
            column = ".".join(conflict.path)
            raise DataError(
                f"column {column!r} is {conflict.here} in line {line}, and {conflict.before} before.",
                file=self._path,
                offset=offset + at,
                hint="with Jsonl(schema=...) the lines that do not fit the type given are bad rows",
            ) from None


def _first_with(column: str, part: Part, block: bytes) -> int:
    """The offset in the block of the first line of `part` that has a value in a column."""
    assert part.table is not None
    valid = pa.concat_arrays([chunk.is_valid() for chunk in part.table.column(column).chunks])
    return part.offset + strip_lines(block[part.offset :])[valid.index(True).as_py()][0]


def _blocks(store: Store, info: FileInfo, fragment: Fragment) -> Generator[tuple[int, bytes], None, None]:
    path = info.path
    if codec_of(path):
        with closing(pieces(store, info, piece_bytes=_BLOCK_BYTES)) as stream:
            yield from blocks(stream, path)
        return
    block = store.read(info, fragment.offset, fragment.length).to_pybytes()
    if len(block) < fragment.length:
        raise changed(path, f"it ends before byte {fragment.offset + fragment.length}")
    rows = count_lines(block)
    if rows != fragment.rows:
        raise changed(path, f"a fragment has {rows} rows, not {fragment.rows}")
    yield fragment.offset, block


def _chunks(
    batch: pa.RecordBatch, bad: dict[int, DataError], start: int, stop: int, max_rows: int
) -> Iterator[Chunk]:
    for first in range(start, stop, max_rows):
        rows = range(first, min(first + max_rows, stop))
        wrong = tuple(BadRow(row - first, bad[row]) for row in rows if row in bad) if bad else ()
        yield Chunk(batch.slice(first, len(rows)), wrong)


def _bad_row(part: Part, offset: int, row: int, path: str) -> DataError:
    at = offset + part.offset
    if codec_of(path):
        return DataError(f"the line is wrong: {part.error}.", file=path, row=row, hint="look at that line")
    return DataError(
        f"the line is wrong: {part.error}.",
        file=path,
        offset=at,
        hint=f"`tail -c +{at + 1} FILE | head -n 1` shows it",
    )
