"""Read: the rows of one source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

import pyarrow as pa

from connectors.contract import Connector, Json
from connectors.dataset import Dataset
from connectors.memory import InMemory
from connectors.paths import Listing, refuse_missing
from connectors.registry import check_format, check_suffixes
from connectors.store import Store
from dataflow.errors import InternalError, PlanError
from dataflow.given import check_text
from dataflow.graph.arguments import PLAIN, Argument, arguments_of, written
from dataflow.graph.columns import RESERVED, check_columns
from dataflow.graph.node import Node, Source, Traits
from dataflow.graph.registry import register
from dataflow.index.build import build_index
from dataflow.index.index import Index
from dataflow.index.open import open_index
from dataflow.ops.filter import Condition, Filter
from dataflow.ops.forms import CONDITION, FORMAT, STORAGE_OPTIONS, URLS
from dataflow.ops.select import Select

__all__ = ["FileSource", "MemorySource", "PinnedSource", "Read", "rows_of"]

Url = str | Path


@dataclass(frozen=True, kw_only=True, eq=False)
class FileSource:
    """Files at a URL; their index is opened when something first asks for it.

    That local files are there is seen at once, for that is cheap; a store is not asked.
    """

    url: Url | Sequence[Url] = field(metadata={"form": URLS})
    format: str | Connector | None = field(default=None, metadata={"form": FORMAT})
    storage_options: Mapping[str, Json] | None = field(default=None, repr=False)
    index_url: Url | None = field(default=None, metadata={"key": "index"})
    name: str | None = None
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        check_format(self.format)
        check_text("", "name", self.name)
        named = refuse_missing(self.url)
        if self.format is None:
            check_suffixes(named)

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

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        return _unopened(self)

    def written(self) -> dict[str, Json]:
        return written(self, _source_arguments())

    def __repr__(self) -> str:
        urls = [self.url] if isinstance(self.url, str | Path) else list(self.url)
        return repr(str(urls[0])) + (f" and {len(urls) - 1} more" if len(urls) > 1 else "")


@dataclass(frozen=True, kw_only=True, eq=False)
class MemorySource:
    """Rows that a connector holds in memory."""

    index_url: ClassVar[None] = None
    storage_options: ClassVar[None] = None

    connector: InMemory | Dataset
    name: str | None = None

    @cached_property
    def index(self) -> Index:
        """The index of the rows in memory."""
        listing = Listing(Store(), "", self.connector.files())
        return build_index(self.connector, listing, name=self.name or self.connector.name)

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        return _unopened(self)

    def written(self) -> dict[str, Json]:
        raise PlanError(
            f"the source {self!r} is in memory, where no spec can find it.",
            hint="write the rows to files, as Parquet, and read those",
        )

    def __post_init__(self) -> None:
        check_text("", "name", self.name)

    def __repr__(self) -> str:
        return self.name or self.connector.name


@dataclass(frozen=True, kw_only=True, eq=False)
class PinnedSource:
    """A source whose index is settled: the one that a state was saved with."""

    index_url: ClassVar[None] = None
    storage_options: ClassVar[None] = None

    index: Index

    def written(self) -> dict[str, Json]:
        raise InternalError("a source of a saved state has no spec.")


def _unopened(source: FileSource | MemorySource) -> tuple[Callable[[], object], tuple[()]]:
    """How a source is pickled: as it was written, so that its index is opened where it arrives."""
    given = [argument.name for argument in fields(source) if not argument.name.startswith("_")]
    return partial(type(source), **{name: getattr(source, name) for name in given}), ()


def _source_arguments() -> tuple[Argument, ...]:
    options = Argument(
        key="storage_options", name="storage_options", type=STORAGE_OPTIONS.type, form=STORAGE_OPTIONS
    )
    return (*arguments_of(FileSource), options)


@register("read")
@dataclass(frozen=True, kw_only=True, eq=False)
class Read(Node):
    """The rows of a source, in file order; `columns` are those that the pipeline needs, None for all.

    A column whose name is kept for batches, as ``__id__``, is refused, or left out where the pipeline has
    `chosen` others.
    """

    feeds: ClassVar[int | None] = 0

    data: Source
    columns: tuple[str, ...] | None = None
    chosen: bool = field(default=False, repr=False)

    @classmethod
    def arguments(cls) -> tuple[Argument, ...]:
        return (
            *_source_arguments(),
            Argument(key="columns", name="columns", type=tuple[str, ...] | None, form=PLAIN),
            Argument(key="filter", name="filter", type=CONDITION.type, form=CONDITION),
        )

    @classmethod
    def from_arguments(cls, inputs: tuple[Node, ...], values: Mapping[str, Any]) -> Node:
        source = {name: value for name, value in values.items() if name not in ("columns", "filter")}
        return rows_of(FileSource(**source), columns=values.get("columns"), condition=values.get("filter"))

    def written(self) -> dict[str, Json]:
        columns: list[Json] = list(self.columns or ())
        if self.chosen and not columns and not RESERVED.isdisjoint(self.data.index.schema.names):
            # Without them, what reads the spec would not know that others were chosen.
            columns = [name for name in self.data.index.schema.names if name not in RESERVED]
        return {**self.data.written(), **({"columns": columns} if columns else {})}

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
        kept = [name for name in schema.names if name not in RESERVED]
        if self.columns is None and len(kept) == len(schema.names):
            return schema
        if self.columns is None and not self.chosen:
            raise PlanError(
                f"read: the source {self.data!r} has a column "
                f"{next(name for name in schema.names if name in RESERVED)!r}, a name kept for batches.",
                hint="rename it at the source, or leave it out with columns=",
            )
        columns = kept if self.columns is None else self.columns
        check_columns("read", columns, schema)
        return pa.schema([schema.field(name) for name in columns])


def rows_of(
    source: Source, *, columns: tuple[str, ...] | None = None, condition: Condition | None = None
) -> Node:
    """The rows of a source for which a condition holds, and these of their columns; None for all.

    Raises:
        PlanError: no column is named.
    """
    made: Node = Read(data=source, chosen=columns is not None and RESERVED.isdisjoint(columns))
    if condition is not None:
        made = Filter(inputs=(made,), condition=condition)
    return made if columns is None else _chosen(columns).over(made)


def _chosen(columns: tuple[str, ...]) -> Select:
    """The step that keeps the `columns=` of `read`.

    Raises:
        PlanError: there is none.
    """
    if not columns:
        raise PlanError("read(columns=[]) names no column.", hint="leave columns= out to read all of them")
    return Select(columns=columns, asked_by="read(columns=)")
