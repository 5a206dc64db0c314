"""The ways to begin a pipeline: files, rows in memory, or other pipelines joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from connectors.contract import Connector, Json
from connectors.dataset import Dataset, MapStyle
from connectors.memory import InMemory
from connectors.memory import from_arrow as table_in_memory
from connectors.memory import from_columns as columns_in_memory
from dataflow.errors import PlanError
from dataflow.fluent import Pipeline
from dataflow.given import as_dict, as_names, as_path, as_tuple
from dataflow.graph.node import Node, makes_batches
from dataflow.ops.concat import Concat
from dataflow.ops.filter import Condition
from dataflow.ops.read import FileSource, MemorySource, Read, Url, rows_of
from dataflow.ops.zip import Zip
from dataflow.optimize.place import check_place

__all__ = ["concat", "from_arrow", "from_columns", "from_dataset", "read", "zip"]


def read(
    url: Url | Sequence[Url], *, format: str | Connector | None = None,
    columns: Sequence[str] | None = None, filter: Condition | None = None,
    storage_options: Mapping[str, Json] | None = None, index: Url | None = None, name: str | None = None,
) -> Pipeline:  # fmt: skip
    """Read files at a URL: one, a list, a folder, a glob or {000..099} pattern, on any fsspec store.

    Args:
        format: "parquet", "arrow", "tar", "jsonl", "folder" or a connector; by default told by file names.
        columns: those to read; all by default.
        filter: as `Pipeline.filter`.
        storage_options: for fsspec.
        index: where the index of the files is kept, for a fleet to share.
        name: of the source, in states and quarantine files.

    Raises:
        ConnectorError: a local path or pattern stands for no file; a store is asked when columns are.
        PlanError: an argument is wrong.
    """
    chosen = None if columns is None else as_names("read", "columns", columns)
    options = (
        None
        if storage_options is None
        else as_dict("storage_options", storage_options, hint="as {'anon': True}")
    )
    source = FileSource(
        url=_urls(url),
        format=format,
        storage_options=options,
        index_url=None if index is None else as_path("read(index=)", index),
        name=name,
    )
    pipe = Pipeline(rows_of(source, columns=chosen, condition=filter))
    if chosen is not None or filter is not None:
        pipe.schema  # noqa: B018 - wrong columns fail here; without any, a store is not asked yet
    return pipe


def _urls(url: object) -> str | Path | tuple[str | Path, ...]:
    """One URL, or several."""
    if isinstance(url, Iterable) and not isinstance(url, str | bytes | PathLike | Mapping):
        return tuple(as_path("read", each) for each in as_tuple("read", "url", url))
    return as_path("read", url)


def from_arrow(rows: Any, *, name: str | None = None) -> Pipeline:
    """Read a pyarrow Table, RecordBatch or reader, or any object of Arrow's C stream; nothing is copied."""
    return _from_memory(table_in_memory(rows), name)


def from_columns(columns: Mapping[str, Any], *, name: str | None = None) -> Pipeline:
    """Read columns in memory: arrays (rows, *shape), tensors, lists."""
    return _from_memory(columns_in_memory(columns), name)


def from_dataset(
    dataset: MapStyle,
    *,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    name: str | None = None,
) -> Pipeline:
    """Read any object with `__len__` and `__getitem__`, as a map-style torch Dataset.

    Every row has the columns of row 0, or of `schema`: one that lacks a column or has another is a bad row.
    """
    chosen = None if columns is None else as_names("from_dataset", "columns", columns)
    return _from_memory(Dataset(data=dataset, columns=chosen, schema=schema), name)


def _from_memory(connector: InMemory | Dataset, name: str | None) -> Pipeline:
    return Pipeline(Read(data=MemorySource(connector=connector, name=name)))


def concat(*pipelines: Pipeline) -> Pipeline:
    """The rows of the first, then those of the second, and so on."""
    return _joined("concat", pipelines, Concat)


def zip(*pipelines: Pipeline) -> Pipeline:
    """Row i of every pipeline side by side as row i; all have the same number of rows."""
    return _joined("zip", pipelines, Zip)


def _joined(name: str, pipelines: Sequence[Pipeline], kind: type[Node]) -> Pipeline:
    if not pipelines:
        raise PlanError(f"{name}() has nothing to join.", hint=f"as {name}(a, b)")
    for pipe in pipelines:
        if not isinstance(pipe, Pipeline):
            raise PlanError(
                f"{name}: {pipe!r} is no pipeline.", hint=f"as {name}(a, b), or {name}(*pipes) of a list"
            )
        if pipe.seed_value is not None:
            raise PlanError(
                f"{name}: an input has a seed of its own.", hint=f"set it behind: {name}(...).seed(n)"
            )
        if makes_batches(pipe.node):
            raise PlanError(f"{name}: an input makes batches.", hint=f"batch behind it: {name}(...).batch(n)")
    node = kind(inputs=tuple(pipe.node for pipe in pipelines))
    check_place(node)
    made = Pipeline(node)
    made.schema  # noqa: B018 - wrong columns fail here
    return made
