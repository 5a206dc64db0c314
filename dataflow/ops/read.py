"""Read: the rows of one source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock

import pyarrow as pa

from connectors.contract import Connector, Json
from connectors.dataset import Dataset
from connectors.memory import InMemory
from connectors.paths import Listing
from connectors.store import Store
from dataflow.graph.columns import check_columns
from dataflow.graph.node import Node, Source, Traits
from dataflow.graph.registry import register
from dataflow.index.build import build_index
from dataflow.index.index import Index
from dataflow.index.open import open_index

__all__ = ["FileSource", "MemorySource", "PinnedSource", "Read"]

Url = str | Path


@dataclass(frozen=True, kw_only=True, eq=False)
class FileSource:
    """Files at a URL; their index is opened when something first asks for it."""

    url: Url | Sequence[Url]
    format: str | Connector | None = None
    storage_options: Mapping[str, Json] | None = field(default=None, repr=False)
    index_url: Url | None = None
    name: str | None = None
    _lock: Lock = field(default_factory=Lock, repr=False)

    @cached_property
    def _opened(self) -> Index:
        return open_index(
            self.url,
            format=self.format,
            storage_options=self.storage_options,
            index=self.index_url,
            name=self.name,
        )

    @property
    def index(self) -> Index:
        """The index, built or loaded once.

        Raises:
            ConnectorError, DataError: the files cannot be found or read.
        """
        with self._lock:
            return self._opened

    def __repr__(self) -> str:
        urls = [self.url] if isinstance(self.url, str | Path) else list(self.url)
        return repr(str(urls[0])) + (f" and {len(urls) - 1} more" if len(urls) > 1 else "")


@dataclass(frozen=True, kw_only=True, eq=False)
class MemorySource:
    """Rows that a connector holds in memory."""

    connector: InMemory | Dataset
    name: str | None = None

    @cached_property
    def index(self) -> Index:
        """The index of the rows in memory."""
        listing = Listing(Store(), "", self.connector.files())
        return build_index(self.connector, listing, name=self.name or self.connector.name)

    def __repr__(self) -> str:
        return self.name or self.connector.name


@dataclass(frozen=True, kw_only=True, eq=False)
class PinnedSource:
    """A source whose index is settled: the one that a state was saved with."""

    index: Index


@register("read")
@dataclass(frozen=True, kw_only=True, eq=False)
class Read(Node):
    """The rows of a source, in file order; `columns` are those that the pipeline needs, None for all."""

    data: Source
    columns: tuple[str, ...] | None = None

    @property
    def source(self) -> Source:
        return self.data

    @property
    def traits(self) -> Traits:
        return Traits(reads=frozenset(), writes=None, keeps_columns=False)

    def with_source(self, source: Source) -> Node:
        return replace(self, data=source)

    def narrowed(self, wanted: frozenset[str]) -> Node:
        schema = self.schema
        return (
            self if schema is None else replace(self, columns=tuple(n for n in schema.names if n in wanted))
        )

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        schema = self.data.index.schema
        if self.columns is None:
            return schema
        check_columns("read", self.columns, schema)
        return pa.schema([schema.field(name) for name in self.columns])
