"""What a pipeline delivers, gathered for comparison; and the same rows written in every format."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import torch

import dataflow as flow

__all__ = [
    "FORMATS",
    "ROWS",
    "arrow",
    "ids",
    "numpy",
    "parquet",
    "plain",
    "rows_then_rest",
    "tar",
    "torch_of",
]

Output = Literal["torch", "numpy", "arrow"]
ROWS = 41


def batches(pipe: flow.Pipeline, output: Output, **options: Any) -> list[Any]:
    """Every batch of one epoch."""
    with pipe.loader(output=output, **options) as loader:
        return list(loader)


def arrow(pipe: flow.Pipeline, size: int = 4, **options: Any) -> pa.Table:
    """One epoch, in file order, as an Arrow table."""
    return pa.Table.from_batches(batches(pipe.batch(size, remainder="keep"), "arrow", **options))


def numpy(pipe: flow.Pipeline, column: str, size: int = 4, **options: Any) -> Any:
    """One column of an epoch in file order, as NumPy batches give it: an array, or a list."""
    parts = [batch[column] for batch in batches(pipe.batch(size, remainder="keep"), "numpy", **options)]
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else list(chain(*parts))


def torch_of(pipe: flow.Pipeline, column: str, size: int = 4, **options: Any) -> Any:
    """One column of an epoch in file order, as torch batches give it: a tensor, or a list."""
    parts = [batch[column] for batch in batches(pipe.batch(size, remainder="keep"), "torch", **options)]
    return torch.cat(parts) if isinstance(parts[0], torch.Tensor) else list(chain(*parts))


def ids(found: Iterable[Mapping[str, Any]]) -> list[int]:
    """The sample ids of NumPy or torch batches that have them."""
    return [int(id_) for batch in found for id_ in batch["__id__"]]


def plain(batch: Mapping[str, Any]) -> dict[str, Any]:
    """A NumPy batch as Python values, to compare."""
    return {
        name: value.tolist()
        if isinstance(value, np.ndarray)
        else [item.tolist() if isinstance(item, np.ndarray) else item for item in value]
        for name, value in batch.items()
    }


def rows_then_rest(pipe: flow.Pipeline, stop: int) -> tuple[list[Any], list[Any]]:
    """The batches before `stop`, and those that a second loader gives from the state saved there."""
    with pipe.loader(output="numpy", ids=True) as loader:
        begun = [plain(batch) for batch in islice(iter(loader), stop)]
        state = json.loads(json.dumps(loader.state_dict()))
    with pipe.loader(output="numpy", ids=True) as loader:
        loader.load_state_dict(state)
        return begun, [plain(batch) for batch in loader]


def parquet(path: Path, columns: Mapping[str, Any] | pa.Table, group: int = 4) -> Path:
    """Write a Parquet file with row groups of `group` rows."""
    table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    pq.write_table(table, path, row_group_size=group)
    return path


def tar(path: Path, members: Iterable[tuple[str, bytes]]) -> Path:
    """Write a tar archive of regular files."""
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def _table() -> pa.Table:
    return pa.table({"number": pa.array(range(ROWS), pa.int64()), "text": [f"row {i}" for i in range(ROWS)]})


def _parquet(folder: Path) -> flow.Pipeline:
    table = _table()
    parquet(folder / "a.parquet", table.slice(0, 9), group=4)
    parquet(folder / "b.parquet", table.slice(9), group=7)
    return flow.read(folder / "*.parquet")


def _arrow_file(folder: Path) -> flow.Pipeline:
    return _written(folder / "a.arrow", pa.ipc.new_file)


def _arrow_stream(folder: Path) -> flow.Pipeline:
    return _written(folder / "a.arrows", pa.ipc.new_stream)


def _written(
    file: Path, new: Callable[[str, pa.Schema], pa.RecordBatchFileWriter | pa.RecordBatchStreamWriter]
) -> flow.Pipeline:
    table = _table()
    with new(str(file), table.schema) as out:
        for start, rows in ((0, 5), (5, 11), (16, 25)):
            out.write_table(table.slice(start, rows))
    return flow.read(file)


def _feather(folder: Path) -> flow.Pipeline:
    feather.write_feather(_table(), str(folder / "a.feather"), compression="zstd", chunksize=6)
    return flow.read(folder / "a.feather")


def _lines() -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in _table().to_pylist())


def _jsonl(folder: Path) -> flow.Pipeline:
    (folder / "a.jsonl").write_bytes(_lines())
    return flow.read(folder / "a.jsonl")


def _jsonl_gz(folder: Path) -> flow.Pipeline:
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(_lines()))
    return flow.read(folder / "a.jsonl.gz")


def _tar_members() -> list[tuple[str, bytes]]:
    return [
        (f"s{row['number']:03}.{kind}", content.encode())
        for row in _table().to_pylist()
        for kind, content in (("cls", str(row["number"])), ("txt", row["text"]))
    ]


def _tar(folder: Path) -> flow.Pipeline:
    tar(folder / "a.tar", _tar_members()[:30])
    tar(folder / "b.tar", _tar_members()[30:])
    return flow.read(folder / "{a,b}.tar").select("cls", "txt").rename({"cls": "number", "txt": "text"})


def _tar_gz(folder: Path) -> flow.Pipeline:
    packed = gzip.compress(tar(folder / "a.tar", _tar_members()).read_bytes())
    (folder / "a.tar.gz").write_bytes(packed)
    return flow.read(folder / "a.tar.gz").select("cls", "txt").rename({"cls": "number", "txt": "text"})


def _folder(folder: Path) -> flow.Pipeline:
    for row in _table().to_pylist():
        (folder / f"{row['number']:03}.png").write_bytes(row["text"].encode())

    def parsed(row: dict[str, Any]) -> dict[str, Any]:
        return {"number": int(row["path"].partition(".")[0]), "text": row["bytes"].decode()}

    return flow.read(folder, format="folder").map(parsed, schema={"number": "int64", "text": "string"})


def _from_arrow(folder: Path) -> flow.Pipeline:
    return flow.from_arrow(_table())


def _from_columns(folder: Path) -> flow.Pipeline:
    return flow.from_columns({"number": np.arange(ROWS), "text": _table()["text"].to_pylist()})


def _from_dataset(folder: Path) -> flow.Pipeline:
    return flow.from_dataset(_table().to_pylist())


FORMATS: dict[str, Callable[[Path], flow.Pipeline]] = {
    "parquet": _parquet,
    "arrow file": _arrow_file,
    "arrow stream": _arrow_stream,
    "feather": _feather,
    "jsonl": _jsonl,
    "jsonl.gz": _jsonl_gz,
    "tar": _tar,
    "tar.gz": _tar_gz,
    "folder": _folder,
    "from_arrow": _from_arrow,
    "from_columns": _from_columns,
    "from_dataset": _from_dataset,
}
