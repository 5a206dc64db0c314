"""Peak memory: within `memory_limit`, beside a DataLoader's, and flat over twenty epochs."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import dataflow as flow
from bench.case import Bar, Case, Figures, Side
from bench.measure import DATALOADER_IMPORTS, ENGINE_IMPORTS, iterate, timed
from bench.memory import tree_pss_bytes
from bench.plain import columns_in_memory, dataloader, parquet_files
from bench.rows import tokens_in_parquet

__all__ = ["CASE"]

_BATCH = 256
_LIMIT_MB = 128
_EPOCHS = 20


def _prepare(quick: bool) -> Path:
    """2.1 GB of decoded rows (quick: 0.27 GB)."""
    return tokens_in_parquet(131_072 if quick else 1_048_576, files=8, group_rows=4096)


def _dataflow(folder: Path, quick: bool) -> Figures:
    pipe = flow.read(f"{folder}/*.parquet").shuffle("32MB").seed(1).batch(_BATCH)
    with pipe.loader(threads=2, memory_limit=f"{_LIMIT_MB}MB") as loader:
        return timed(partial(iterate, loader, "tokens"))


def _dataloader(folder: Path, quick: bool) -> Figures:
    loader = dataloader(columns_in_memory(folder), batch=_BATCH)
    return timed(partial(iterate, loader, "tokens", max_batches=200))


def _epochs(folder: Path, quick: bool) -> Figures:
    """Memory at the end of every epoch over the first file: what is held must not depend on the epoch."""
    pipe = flow.read(parquet_files(folder)[0]).shuffle("32MB").seed(1).batch(_BATCH)
    held = []
    with pipe.loader(threads=2, memory_limit=f"{_LIMIT_MB}MB") as loader:
        for _ in range(_EPOCHS):
            iterate(loader, "tokens")
            held.append(tree_pss_bytes(os.getpid()))
    quarter = _EPOCHS // 4
    early, late = max(held[quarter : 2 * quarter]), max(held[-quarter:])
    return {"growth": late / early, "growth_mb": (late - early) / 1e6}


CASE = Case(
    name="memory",
    summary=f"2.1 GB of token rows with memory_limit={_LIMIT_MB} MB; {_EPOCHS} epochs over an eighth of it",
    prepare=_prepare,
    sides=(
        Side(name="dataflow", run=_dataflow, imports=ENGINE_IMPORTS, memory=True),
        Side(
            name="dataloader", run=_dataloader, imports=DATALOADER_IMPORTS, memory=True, repeats=3
        ),
        Side(name="epochs", run=_epochs, imports=ENGINE_IMPORTS, repeats=3),
    ),
    bars=(
        Bar(
            label=f"peak with memory_limit {_LIMIT_MB} MB", figure="peak_mb", side="dataflow", unit="MB",
            at_most=_LIMIT_MB * 1.1,
        ),
        Bar(label="peak of DataLoader, 2 workers", figure="peak_mb", side="dataloader", unit="MB"),
        Bar(
            label="against DataLoader", figure="peak_mb", side="dataflow", against="dataloader", how="ratio",
            at_most=0.5,
        ),
        Bar(label="epochs 16-20 against 6-10", figure="growth", side="epochs", unit="x", at_most=1.05),
        Bar(label="growth between them", figure="growth_mb", side="epochs", unit="MB"),
    ),
)  # fmt: skip
