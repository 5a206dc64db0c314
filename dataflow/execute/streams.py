"""Reading fragments piece by piece: what a reader has decoded past one span waits for the next one.

A fragment larger than a window is read in slices, one a window, and its decoder goes on where the last
slice ended. A small fragment at a window's border is decoded once for both windows.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from connectors.contract import BadRow, Chunk, Opened
from connectors.faults import changed
from connectors.readers import Readers
from dataflow.errors import DataError
from dataflow.index.index import Index
from dataflow.order.windows import Span

__all__ = ["Chain", "OpenStreams"]

# Ends that nothing has gone on from: of lanes' last fragments, and of runs that were broken off.
_MOST_ENDS = 256


# Fragments of which it is known from where on they cannot be read.
_MOST_DAMAGED = 256

_Place = tuple[int, tuple[str, ...], int, int]


def _place(index: Index, schema: pa.Schema, fragment: int, row: int) -> _Place:
    """A row of a fragment as one reader sees it: another one of the same source may decode other columns."""
    return id(index), tuple(schema.names), fragment, row


@dataclass
class _Paused:
    """A reader at source row `row`: decoded rows that nobody has taken yet, then the rest of the fragment."""

    row: int
    ahead: Chunk | None
    rest: Iterator[Chunk]

    def close(self) -> None:
        """Give back what the connector holds; a third party's iterator may hold nothing."""
        if isinstance(self.rest, Generator):
            self.rest.close()


class OpenStreams:
    """Readers of fragments, paused between two spans; thread-safe.

    Args:
        slice_bytes: decoded bytes that a reader yields at a time.
        limit: readers kept paused, the longest unused is closed.
        open_files: local files that stay open for the next fragment, of all sources together.
    """

    def __init__(self, slice_bytes: int, limit: int, open_files: int = 0) -> None:
        self.chain = Chain()
        self._slice_bytes, self._limit = slice_bytes, limit
        self._paused: OrderedDict[_Place, _Paused] = OrderedDict()
        self._sources: dict[int, Opened] = {}
        self._readers = Readers(open_files)
        self._damaged: OrderedDict[_Place, tuple[int, DataError]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, index: Index, schema: pa.Schema, span: Span) -> Generator[tuple[Chunk, int], None, None]:
        """The rows of a span, chunk by chunk, each with the source row of its first row. Close it.

        Raises:
            DataError: the fragment has fewer rows than the index says, or cannot be decoded from here on; all rows
                in front of that have been given.
        """
        first = int(index.starts[span.fragment])
        stop = int(index.starts[span.fragment + 1])
        self._refuse_damaged(index, schema, span)
        if index.traits.row_ranges or (span.lo, span.hi) == (first, stop):
            reader = self._open(index, schema, span, span.lo - first, span.hi - first)
        else:
            reader = self._resume(index, schema, span, stop - first)
        paused = False
        try:
            while reader.row < span.hi:
                chunk = reader.ahead or next(reader.rest, None)
                if chunk is None:
                    path = index.files[index.fragment(span.fragment).file].path
                    raise changed(path, f"a fragment has {reader.row - first} rows, not {stop - first}")
                taken, reader.ahead = _split(chunk, span.hi - reader.row)
                at, reader.row = reader.row, reader.row + taken.batch.num_rows
                yield taken, at
            paused = reader.row < stop and not index.traits.row_ranges
        except DataError as error:
            self._note_damage(index, schema, span, reader.row, error)
            raise
        finally:
            if paused:
                self._pause(index, schema, span, reader)
            else:
                reader.close()

    def _refuse_damaged(self, index: Index, schema: pa.Schema, span: Span) -> None:
        """Raise again what came of reading a fragment, for rows behind that: it takes long to decode up to there."""
        if not self._damaged:
            return
        with self._lock:
            row, error = self._damaged.get(_place(index, schema, span.fragment, 0), (span.hi, None))
        if error is not None and row <= span.lo:
            raise error

    def _note_damage(self, index: Index, schema: pa.Schema, span: Span, row: int, error: DataError) -> None:
        place = _place(index, schema, span.fragment, 0)
        with self._lock:
            self._damaged[place] = min(row, self._damaged.get(place, (row, error))[0]), error
            while len(self._damaged) > _MOST_DAMAGED:
                self._damaged.popitem(last=False)

    def _open(self, index: Index, schema: pa.Schema, span: Span, start: int, stop: int) -> _Paused:
        width = sum(index.row_bytes.get(name, 8.0) for name in schema.names)
        max_rows = max(1, int(self._slice_bytes / max(width, 1e-9)))
        fragment = index.fragment(span.fragment)
        rest = index.connector.read(self._opened(index), fragment, schema, start, stop, max_rows)
        return _Paused(int(index.starts[span.fragment]) + start, None, iter(rest))

    def _opened(self, index: Index) -> Opened:
        """The files of a source, with the readers of this run."""
        opened = self._sources.get(id(index))
        if opened is None:
            opened = self._sources[id(index)] = replace(index.opened, readers=self._readers)
        return opened

    def _resume(self, index: Index, schema: pa.Schema, span: Span, rows: int) -> _Paused:
        """A reader of the whole rest of the fragment from the span's first row on."""
        with self._lock:
            held = self._paused.pop(_place(index, schema, span.fragment, span.lo), None)
        first = int(index.starts[span.fragment])
        return held if held is not None else self._open(index, schema, span, span.lo - first, rows)

    def _pause(self, index: Index, schema: pa.Schema, span: Span, reader: _Paused) -> None:
        with self._lock:
            self._paused[_place(index, schema, span.fragment, span.hi)] = reader
        self._keep(self._limit)

    def _keep(self, most: int) -> None:
        """Close the paused readers that are more than `most`."""
        unused = []
        with self._lock:
            while len(self._paused) > most:
                unused.append(self._paused.popitem(last=False)[1])
        for reader in unused:
            reader.close()

    def close(self) -> None:
        """Close all paused readers, and the files."""
        self._limit = 0
        self._keep(0)
        with self._lock:
            self._damaged.clear()
        self._readers.close()


class Chain:
    """Who reads which part of a fragment: the reader of a part waits for that of the part before, whose decoder it
    goes on with. Used by one thread."""

    def __init__(self) -> None:
        self._ends: OrderedDict[_Place, threading.Event] = OrderedDict()

    def link(
        self, index: Index, schema: pa.Schema, span: Span
    ) -> tuple[threading.Event | None, threading.Event]:
        """What the reader of a part waits for, and what it sets when it is done."""
        before = self._ends.pop(_place(index, schema, span.fragment, span.lo), None)
        done = self._ends[_place(index, schema, span.fragment, span.hi)] = threading.Event()
        while len(self._ends) > _MOST_ENDS:
            self._ends.popitem(last=False)
        return before, done


def _split(chunk: Chunk, rows: int) -> tuple[Chunk, Chunk | None]:
    """The first `rows` rows of a chunk, and the others where there are any."""
    if chunk.batch.num_rows <= rows:
        return chunk, None
    head = Chunk(chunk.batch.slice(0, rows), tuple(bad for bad in chunk.bad if bad.row < rows))
    behind = tuple(BadRow(bad.row - rows, bad.error) for bad in chunk.bad if bad.row >= rows)
    return head, Chunk(chunk.batch.slice(rows), behind)
