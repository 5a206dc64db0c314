"""The contract between a data format and everything above it.

A connector answers two questions about files of one format: which *fragments* a file has (the
smallest pieces that can be read alone), and what the rows of one fragment are. It knows nothing of
epochs, shuffles, ranks or operators.

To add a format, write one file in this folder that implements `Connector` and add one line to
`connectors/registry.py`, or register a class under the entry point group ``dataflow.connectors``.
`tests/contracts/test_connectors.py` runs every connector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.file_info import FileInfo
from connectors.readers import Readers
from connectors.store import Store

__all__ = [
    "Adapts",
    "BadRow",
    "Chooses",
    "Chunk",
    "Connector",
    "FileInfo",
    "Fragment",
    "Opened",
    "Prunes",
    "Scan",
    "Traits",
]

Int64s = npt.NDArray[np.int64]
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Fragment(NamedTuple):
    """The smallest piece that can be read alone.

    `file` is a number in the file list. `offset` and `length` are the connector's own: bytes, a row
    group number, a slice of a file list.
    """

    file: int
    offset: int
    length: int
    rows: int


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan of one file (or, for `Traits.scans == "listing"`, of the whole list) has found.

    The arrays are parallel, one entry a fragment, in row order. `file` counts within the files that were
    handed to `scan`. `meta` is kept in the index and handed back at every read. `remarks` are for people: what is
    odd in the file, as a sentence that begins behind "the file has", and is the same for many files.
    """

    schema: pa.Schema
    file: Int64s
    offset: Int64s
    length: Int64s
    rows: Int64s
    meta: Mapping[str, Json] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be decoded: `row` counts within the chunk, `error` is what the user shall see."""

    row: int
    error: Exception


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of one fragment.

    A bad row keeps its place: its values are nulls (whatever the schema says), and `bad` has its error.
    """

    batch: pa.RecordBatch
    bad: tuple[BadRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What the engine asks a connector about itself."""

    row_ranges: bool  # rows start..stop of a fragment cost about their share of the fragment
    single_rows: bool  # one row costs about its share: `shuffle("full")` is allowed
    scans: Literal["file", "listing"] = "file"  # what one call of `scan` is given
    counts_need_scan: bool = False  # scanning reads the whole file, not a footer
    kept_bytes: int = 0  # a column, held by a reader that waits within a fragment, beside its last chunk


@dataclass(frozen=True, slots=True)
class Opened:
    """The files of one source at read time: store, file list, and the `meta` of the index.

    A connector may leave readers of local files in `readers`; whoever made this closes them.
    """

    store: Store
    files: Sequence[FileInfo]
    meta: Mapping[str, Json]
    readers: Readers = field(default_factory=Readers, compare=False, repr=False)


@runtime_checkable
class Connector(Protocol):
    """One file format. Implementations are frozen dataclasses whose fields are the format's options."""

    @property
    def name(self) -> str:
        """The name that `format=` and a spec use."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Lower-case file name endings that choose this connector, longest match first."""

    @property
    def traits(self) -> Traits: ...

    def scan(self, store: Store, files: Sequence[FileInfo]) -> Scan:
        """List the fragments.

        Raises:
            DataError: the file is wrong, truncated, empty where the format needs a header, or of another
                format; names path and offset.
            ConnectorError: the store cannot be read.
        """

    def read(
        self, opened: Opened, fragment: Fragment, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Iterator[Chunk]:
        """Yield rows `start` to `stop` of the fragment, in order, in chunks of at most `max_rows` rows.

        Every batch has exactly `schema` (a subset of the index's schema, in the order asked for): a column
        that this file lacks is null, a narrower type is widened. Memory in use stays near one chunk.

        Which rows cannot be read depends on the fragment and `schema` alone, not on `start`, `stop` and `max_rows`:
        what is wrong with single rows is said in `Chunk.bad`. An error says that from some row on the fragment
        cannot be read: all rows in front of that row are yielded first, and a read of any behind it raises, too.

        Raises:
            DataError: as `scan`; also where the file is not what the index says.
            ConnectorError: the store cannot be read.
        """


@runtime_checkable
class Adapts(Protocol):
    """A connector whose files differ in what is cheap."""

    def traits_of(self, meta: Mapping[str, Json]) -> Traits:
        """The traits where the scans of all files of a source together have found `meta`."""


@runtime_checkable
class Chooses(Protocol):
    """A connector that takes only some files of a listing; the index has no others."""

    def takes(self, path: str) -> bool:
        """Whether the file has rows, told by its name alone."""


@runtime_checkable
class Prunes(Protocol):
    """A connector that can tell from statistics that a fragment has no row which matches a filter."""

    def prune(
        self, opened: Opened, fragments: Sequence[Fragment], expression: pc.Expression
    ) -> npt.NDArray[np.bool_]:
        """For each fragment, False where surely no row matches. Reads no rows.

        Raises:
            DataError, ConnectorError: as `Connector.scan`.
        """
