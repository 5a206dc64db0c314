"""JPEGs of 500 x 400 to tensors of 224 x 224: beside decoding alone, a DataLoader, and DALI on the processor.

The bars are for epochs behind the first two.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

import dataflow as flow
from bench.case import Bar, Case, Figures, Need, Side
from bench.dali_images import DaliLoader
from bench.image_files import Format, jpegs_in, photographs_on_disk
from bench.measure import DATALOADER_IMPORTS, ENGINE_IMPORTS, iterate, timed, timed_when_warm
from bench.plain import WORKERS
from bench.plain_images import decode_all, image_dataloader

__all__ = ["CASE"]

Dtype = Literal["float32", "uint8"]

_BATCH = 64
_SIDE = 224
_THREADS = WORKERS
# Batches made ahead where memory is measured: each worker of a DataLoader makes two.
_AHEAD = 2 * WORKERS
_ENGINE_IMPORTS = (*ENGINE_IMPORTS, "connectors.tar", "dataflow.ops.images.pixels.run")
_DATALOADER_IMPORTS = (*DATALOADER_IMPORTS, "PIL.JpegImagePlugin")


def _prepare(quick: bool) -> Path:
    return photographs_on_disk(128 if quick else 2048)


def _epochs(quick: bool) -> int:
    return 1 if quick else 2


def _pipeline(folder: Path, format: Format, dtype: Dtype) -> flow.Pipeline:
    rows = flow.read(f"{folder}/{format}")
    if format == "tar":
        rows = rows.rename({"jpg": "image", "cls": "label"})
    pipe = (
        rows.select("image", "label")
        .shuffle("16MB")
        .decode_image("image")
        .random_resized_crop("image", _SIDE)
        .random_flip("image")
    )
    if dtype == "float32":
        pipe = pipe.normalize("image", flow.IMAGENET_MEAN, flow.IMAGENET_STD)
    return pipe.batch(_BATCH)


def _dataflow(folder: Path, quick: bool, *, format: Format, dtype: Dtype) -> Figures:
    with _pipeline(folder, format, dtype).loader(threads=_THREADS) as loader:
        return timed_when_warm(lambda count: iterate(loader, "image", epochs=count), _epochs(quick))


def _decode(folder: Path, quick: bool) -> Figures:
    jpegs = [file.read_bytes() for file, _ in jpegs_in(folder)]

    def epochs(count: int) -> tuple[int, int]:
        rows = decode_all(jpegs, threads=_THREADS, passes=count, piece=_BATCH)
        return rows, rows // _BATCH

    return timed_when_warm(epochs, _epochs(quick))


def _dataloader(folder: Path, quick: bool) -> Figures:
    loader = image_dataloader(jpegs_in(folder), side=_SIDE, batch=_BATCH)
    return timed_when_warm(lambda count: iterate(loader, "image", epochs=count), 1)


def _dali(folder: Path, quick: bool) -> Figures:
    loader = DaliLoader(folder / "files", side=_SIDE, batch=_BATCH, threads=_THREADS)
    return timed_when_warm(lambda count: iterate(loader, "image", epochs=count), _epochs(quick))


def _dataflow_memory(folder: Path, quick: bool) -> Figures:
    with _pipeline(folder, "parquet", "float32").loader(threads=_THREADS, prefetch=_AHEAD) as loader:
        return timed(partial(iterate, loader, "image", epochs=2))


def _dataloader_memory(folder: Path, quick: bool) -> Figures:
    loader = image_dataloader(jpegs_in(folder), side=_SIDE, batch=_BATCH)
    return timed(partial(iterate, loader, "image", epochs=1))


def _side(format: Format, dtype: Dtype) -> Side:
    return Side(
        name=f"{format}_{dtype}",
        run=partial(_dataflow, format=format, dtype=dtype),
        imports=_ENGINE_IMPORTS,
    )


def _rate(label: str, side: str) -> Bar:
    return Bar(label=label, figure="rows_per_s", side=side, unit="images/s")


def _against(label: str, side: Side, other: str, at_least: float | None = None) -> Bar:
    return Bar(
        label=label, figure="rows_per_s", side=side.name, against=other, how="ratio", at_least=at_least
    )


_PARQUET, _TAR = _side("parquet", "float32"), _side("tar", "float32")
_PARQUET_PIXELS, _TAR_PIXELS = _side("parquet", "uint8"), _side("tar", "uint8")

CASE = Case(
    name="images",
    summary=f"2,048 JPEGs of 500 x 400, random crops of {_SIDE}, shuffled, batches of {_BATCH}, two threads",
    prepare=_prepare,
    needs=(Need("sklearn", "demo"), Need("PIL", "image"), Need("simplejpeg", "image")),
    sides=(
        _PARQUET,
        _PARQUET_PIXELS,
        _TAR,
        _TAR_PIXELS,
        Side(name="decode", run=_decode, imports=("simplejpeg",)),
        Side(name="dataloader", run=_dataloader, imports=_DATALOADER_IMPORTS, repeats=3),
        Side(
            name="dali", run=_dali, imports=("nvidia.dali.plugin.pytorch",), repeats=3,
            needs=(Need("nvidia.dali", "dali"),),
        ),
        Side(name="memory", run=_dataflow_memory, imports=_ENGINE_IMPORTS, memory=True, repeats=3),
        Side(
            name="dataloader_memory", run=_dataloader_memory, imports=_DATALOADER_IMPORTS, memory=True,
            repeats=3,
        ),
    ),
    bars=(
        _rate(f"dataflow, {_THREADS} threads, float32 from Parquet", _PARQUET.name),
        _rate(f"dataflow, {_THREADS} threads, uint8 from Parquet", _PARQUET_PIXELS.name),
        _rate(f"decoding alone, {_THREADS} threads", "decode"),
        _rate(f"DataLoader, {WORKERS} workers, float32", "dataloader"),
        _rate(f"DALI, {_THREADS} threads, float32", "dali"),
        _against("float32 from Parquet against decoding alone", _PARQUET, "decode", 0.72),
        _against("float32 from tar against decoding alone", _TAR, "decode", 0.72),
        _against("uint8 from Parquet against decoding alone", _PARQUET_PIXELS, "decode", 0.78),
        _against("uint8 from tar against decoding alone", _TAR_PIXELS, "decode", 0.78),
        _against("float32 from Parquet against DataLoader", _PARQUET, "dataloader", 2.3),
        _against("float32 from tar against DataLoader", _TAR, "dataloader", 2.3),
        _against("float32 from Parquet against DALI", _PARQUET, "dali", 1.5),
        _against("float32 from tar against DALI", _TAR, "dali", 1.5),
        Bar(
            label="processor time against DataLoader", figure="cpu_us_per_batch", side=_PARQUET.name,
            against="dataloader", how="ratio", at_most=0.6,
        ),
        Bar(
            label="processor time against decoding alone", figure="cpu_us_per_batch", side=_PARQUET.name,
            against="decode", how="ratio",
        ),
        Bar(label=f"peak memory, {_AHEAD} batches ahead", figure="peak_mb", side="memory", unit="MB"),
        Bar(
            label="peak memory against DataLoader", figure="peak_mb", side="memory", against="dataloader_memory",
            how="ratio", at_most=0.5,
        ),
    ),
)  # fmt: skip
