"""Parquet: a fragment is a row group. Format: https://parquet.apache.org/docs/file-format/ ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyarrow.types as pt

from connectors.arrow_types import Kind
from connectors.conform import conform, conformed, plain, rows_alone
from connectors.contract import Chunk, FileInfo, Fragment, Opened, Scan, Traits
from connectors.faults import changed, reading
from connectors.kept import Kept
from connectors.parquet_decoded import Decoded
from connectors.parquet_footer import Footer, Projection, Projector, read_footer
from connectors.store import Store
from dataflow.errors import DataError

__all__ = ["Parquet"]


# Decoded bytes of one slice. A row group of 300 MB took 0.6 s in slices of 2 MB, 1.2 s in 32 MB and 3.3 s at
# once, when all that is decoded comes from fresh pages; memory was 40 MB, 250 MB and 1.3 GB.
SLICE_BYTES = 2 << 20
SLICE_BYTES_PER_COLUMN = 16 << 10
# A slice that is so many times as large as it should be is followed by smaller ones.
FAR = 4
# Rows of a slice where the footer does not say how large they are, and no row group like it has been read.
UNKNOWN_ROWS = 128
# Rows that are read, or cannot be, together: what lies in front of a damage is decoded so many at a time, which takes
# long for single rows.
UNIT_ROWS = 16
# What the buffers of all columns of a streamed row group take together, and one of them at most.
BUFFERS_BYTES = 32 << 20
BUFFER_BYTES = 256 << 10
# Of a streamed column of text: its dictionary and a page, each of 1 MB and once more as compressed, and a buffer.
KEPT_BYTES = 3 << 20
FOOTERS_BYTES = 64 << 20
# A file up to this size is read whole: to ask for its footer and for each of its columns takes longer.
SMALL_FILE_BYTES = 256 << 10


@dataclass(frozen=True, kw_only=True)
class Parquet:
    """Parquet files. Dictionary columns are delivered as their values.

    Columns, and fields of structs, that are not asked for are not read. The calling thread decodes alone,
    without the GIL: a small row group at once, a larger one in slices of a few megabytes. Rows before `start`
    are decoded and dropped. Of a row group that is damaged, the rows in front of that are read, but for fewer than
    16.
    """

    # A file of a thousand row groups has a footer that takes longer to parse than one of its groups to read.
    _footers: Kept[Footer] = field(
        default_factory=lambda: Kept(FOOTERS_BYTES), init=False, repr=False, compare=False
    )
    _projector: Projector = field(default_factory=Projector, init=False, repr=False, compare=False)
    _decoded: Decoded = field(default_factory=Decoded, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        return "parquet"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".parquet", ".pq")

    @property
    def traits(self) -> Traits:
        return Traits(row_ranges=False, single_rows=False, kept_bytes=KEPT_BYTES)

    def scan(self, store: Store, files: Sequence[FileInfo]) -> Scan:
        """See `Connector`; reads the footers only. `offset` is the number of the row group."""
        schemas: list[pa.Schema] = []
        groups: list[tuple[int, ...]] = []
        for info in files:
            footer = self._footer(store, info)
            with reading(info.path, "Parquet"):
                schemas.append(plain(footer.schema, file=info.path))
            groups.append(footer.rows)
        counts = np.array([len(group) for group in groups], np.int64)
        return Scan(
            schema=pa.unify_schemas(schemas, promote_options="permissive"),
            file=np.repeat(np.arange(len(files)), counts),
            offset=np.concatenate([np.arange(0), *map(np.arange, counts)]),
            length=np.ones(counts.sum(), np.int64),
            rows=np.array([rows for group in groups for rows in group], np.int64),
        )

    def read(
        self, opened: Opened, fragment: Fragment, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Iterator[Chunk]:
        """See `Connector`."""
        info = opened.files[fragment.file]
        if start == stop:
            return
        whole = opened.store.read(info) if info.size <= SMALL_FILE_BYTES else None
        footer = self._footer(opened.store, info, whole)
        group = fragment.offset
        if group >= len(footer.rows) or footer.rows[group] != fragment.rows:
            raise changed(info.path, f"row group {group} with {fragment.rows} rows is not in it")
        with reading(info.path, "Parquet"):
            wanted = self._projector.find(footer, group, schema)
            if not wanted.leaves:
                yield from _without_columns(stop - start, schema, max_rows, info.path)
                return
            slice_bytes = max(SLICE_BYTES, SLICE_BYTES_PER_COLUMN * len(wanted.leaves))
            part = _Part(opened, info, whole, footer, group, wanted.leaves, slice_bytes)
            hidden = wanted.most_bytes > slice_bytes
            loose_bytes = self._decoded.row_bytes(wanted) if hidden else wanted.loose_bytes
            fitting = UNKNOWN_ROWS
            if loose_bytes is not None:
                fitting = max(1, int(slice_bytes / max(1, wanted.dense_bytes + loose_bytes)))
            size = min(max_rows, fitting)
            at_once = start == 0 and stop == fragment.rows <= min(max_rows, 2 * size)
            if size > UNIT_ROWS:
                size -= size % UNIT_ROWS
            size = min(size, -(-stop // UNIT_ROWS) * UNIT_ROWS)
            batches = _at_once(part, size) if at_once else _whole_units(_stream(part, size), part.rows)
            if hidden:
                batches = self._noted(batches, wanted)
            yield from _cut(batches, schema, start, stop, max_rows, info.path)

    def prune(
        self, opened: Opened, fragments: Sequence[Fragment], expression: pc.Expression
    ) -> npt.NDArray[np.bool_]:
        """For each fragment, False where the statistics of its row group prove that no row matches.

        Statistics leave NaN out, so that an expression on a floating column proves nothing.
        """
        keep = np.ones(len(fragments), np.bool_)
        by_file: dict[int, list[int]] = {}
        for place, fragment in enumerate(fragments):
            by_file.setdefault(fragment.file, []).append(place)
        for file, places in by_file.items():
            footer = self._footer(opened.store, opened.files[file])
            kept = _matching_groups(footer, expression)
            if kept is not None:
                keep[places] = [fragments[place].offset in kept for place in places]
        return keep

    def _noted(self, batches: Iterator[pa.RecordBatch], wanted: Projection) -> Iterator[pa.RecordBatch]:
        """The batches; what their rows decoded to is kept, also where not all of them are asked for."""
        rows = nbytes = 0
        try:
            for batch in batches:
                rows, nbytes = rows + batch.num_rows, nbytes + batch.nbytes
                yield batch
        finally:
            if rows:
                self._decoded.note(wanted, nbytes / rows - wanted.dense_bytes)

    def _footer(self, store: Store, info: FileInfo, whole: pa.Buffer | None = None) -> Footer:
        def make() -> tuple[Footer, int]:
            footer = read_footer(store, info, whole)
            return footer, footer.nbytes

        return self._footers.get(store, info, make)


class _Part(NamedTuple):
    """The leaf columns of one row group that are wanted; `whole` is the file's content where that has been read.

    `slice_bytes` are what a slice of it should decode to.
    """

    opened: Opened
    info: FileInfo
    whole: pa.Buffer | None
    footer: Footer
    group: int
    leaves: list[str]
    slice_bytes: int

    @property
    def rows(self) -> int:
        return self.footer.rows[self.group]

    @property
    def is_near(self) -> bool:
        """Whether it is on the local disk or in memory."""
        return self.whole is not None or self.opened.store.is_local

    def source(self) -> pa.NativeFile:
        if self.whole is not None:
            return pa.BufferReader(self.whole)
        return self.opened.store.open(self.info, read_ahead=False)


class _Reader:
    """An open file."""

    def __init__(self, part: _Part, buffer_bytes: int = 0) -> None:
        # On a remote store pre_buffer fetches the columns together; on the disk it would be one more copy.
        self._file = pq.ParquetFile(
            part.source(),
            metadata=part.footer.metadata,
            pre_buffer=not part.is_near,
            buffer_size=buffer_bytes,
        )

    def table(self, part: _Part) -> pa.Table:
        """The rows of a row group."""
        return self._file.read_row_group(part.group, columns=part.leaves, use_threads=False)

    def batches(self, part: _Part, size: int) -> Iterator[pa.RecordBatch]:
        """The rows of a row group, `size` at a time."""
        return self._file.iter_batches(size, [part.group], columns=part.leaves, use_threads=False)

    def close(self) -> None:
        self._file.close(force=True)


def _at_once(part: _Part, size: int) -> Iterator[pa.RecordBatch]:
    try:
        if part.is_near and part.whole is None:
            # To open the file once more took a tenth of the time that a row group of 2 MB does.
            store = part.opened.store
            key = "parquet", store, part.info
            fresh = partial(store.refuse_changed, part.info)
            with part.opened.readers.lend(key, lambda: _Reader(part), fresh) as reader:
                table = reader.table(part)
        else:
            with closing(_Reader(part)) as reader:
                table = reader.table(part)
    except pa.ArrowNotImplementedError:
        # More than 2 GB of nested values: smaller batches fit.
        yield from _whole_units(_stream(part, size), part.rows)
        return
    except (pa.ArrowException, OSError) as error:
        if not _is_damage(error):
            raise
        yield from _whole_units(_stream(part, UNIT_ROWS), part.rows)
        return
    yield from table.to_batches()


def _stream(part: _Part, size: int) -> Iterator[pa.RecordBatch]:
    """The rows of a row group, `size` at a time; fewer where that is far more than a slice should be, or over 2 GB of
    nested values, or where the row group is damaged: all whole units in front of that come before the error."""
    with closing(_Reader(part, min(BUFFER_BYTES, max(1 << 14, BUFFERS_BYTES // len(part.leaves))))) as reader:
        done, in_units = 0, size == UNIT_ROWS
        while True:
            try:
                for batch in _skip(reader.batches(part, size), done):
                    done += batch.num_rows
                    yield batch
                    if size > 1 and batch.nbytes > FAR * part.slice_bytes:
                        # What lies in front is decoded once more, to be dropped.
                        fitting = batch.num_rows * part.slice_bytes // batch.nbytes
                        size = max(1, min(size // 2, fitting))
                        break
                else:
                    return
            except pa.ArrowNotImplementedError:
                if size == 1:
                    raise
                size = max(1, size // 2)
            except (pa.ArrowException, OSError) as error:
                if in_units or not _is_damage(error):
                    raise
                size, in_units = UNIT_ROWS, True


def _is_damage(error: Exception) -> bool:
    """Whether the content is at fault and not the store, whose errors have a number or are our own."""
    return not isinstance(error, OSError) or (type(error) is OSError and error.errno is None)


def _whole_units(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows, of `rows` in all, each when its whole unit has been decoded: those in front of a damage are then
    the same, however many are decoded at a time."""
    held: list[pa.RecordBatch] = []
    row = 0
    for batch in batches:
        row += batch.num_rows
        begun = 0 if row == rows else row % UNIT_ROWS
        if begun >= batch.num_rows:
            held.append(batch)  # it ends no unit
            continue
        yield from held
        yield batch.slice(0, batch.num_rows - begun)
        held = [batch.slice(batch.num_rows - begun)] if begun else []
    yield from held


def _skip(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if rows < batch.num_rows:
            yield batch.slice(rows)
        rows = max(0, rows - batch.num_rows)


def _cut(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, start: int, stop: int, max_rows: int, path: str
) -> Iterator[Chunk]:
    """Rows `start` to `stop` of the batches as chunks of the wanted schema."""
    position = 0
    for batch in batches:
        first, last = max(start - position, 0), min(stop - position, batch.num_rows)
        position += batch.num_rows
        for row in range(first, last, max_rows):
            yield conformed(batch.slice(row, min(max_rows, last - row)), schema, file=path)
        if position >= stop:
            return
    if position < stop:
        raise DataError(f"a row group ends at row {position}, before row {stop}.", file=path)


def _without_columns(rows: int, schema: pa.Schema, max_rows: int, path: str) -> Iterator[Chunk]:
    """Rows none of whose columns this file has."""
    for row in range(0, rows, max_rows):
        yield Chunk(conform(rows_alone(min(max_rows, rows - row)), schema, file=path))


def _matching_groups(footer: Footer, expression: pc.Expression) -> set[int] | None:
    """The row groups that may have matching rows; None where the statistics cannot tell."""
    known = pa.schema([column for column in footer.schema if not _has_floats(column.type)])
    copy = pa.BufferOutputStream()
    footer.metadata.write_metadata_file(copy)
    source: Any = pa.BufferReader(copy.getvalue())
    fragment: Any = ds.ParquetFileFormat().make_fragment(source)
    try:
        return {group.id for group in fragment.subset(expression, schema=known).row_groups}
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        # A column that the file lacks or whose statistics are not to be trusted, or types that a cast joins.
        return None


def _has_floats(kind: Kind) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _has_floats(kind.storage_type)
    if pt.is_dictionary(kind):
        return _has_floats(kind.value_type)
    return pt.is_floating(kind) or any(_has_floats(kind.field(k).type) for k in range(kind.num_fields))
