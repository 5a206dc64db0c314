"""Reading lines of JSON, beside `json.loads` line by line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import dataflow as flow
from bench.case import Figures
from bench.data import data_set
from bench.measure import timed
from bench.side_by_side import Engine, Peer, side_by_side

__all__ = ["CASE"]

_BATCH = 256
_FILES = 4


def _prepare(quick: bool) -> Path:
    rows = 40_000 if quick else 400_000

    def make(folder: Path) -> None:
        rng = np.random.default_rng(0)
        words = np.array(["the", "of", "stream", "a", "window", "order", "lane", "and", "row", "batch"])
        for number in range(_FILES):
            with (folder / f"lines-{number}.jsonl").open("w") as file:
                for row in range(rows // _FILES):
                    text = " ".join(rng.choice(words, 40))
                    print(json.dumps({"row": row, "text": text, "score": float(rng.random())}), file=file)

    return data_set("lines", make, rows=rows, version=1)


def _pipe(folder: Path) -> flow.Pipeline:
    return flow.read(f"{folder}/*.jsonl").batch(_BATCH)


def _python(folder: Path, quick: bool) -> Figures:
    def work() -> tuple[int, int]:
        rows = batches = 0
        held = []
        for file in sorted(folder.glob("*.jsonl")):
            with file.open("rb") as lines:
                for line in lines:
                    held.append(json.loads(line))
                    if len(held) == _BATCH:
                        made = {name: [row[name] for row in held] for name in held[0]}
                        rows += len(np.array(made["score"]))
                        batches += 1
                        held = []
        return rows, batches

    return timed(work)


CASE = side_by_side(
    name="jsonl",
    summary="400,000 lines of JSON of about 250 bytes, in file order, batches of 256",
    prepare=_prepare,
    engine=Engine(pipe=_pipe, column="score", connector="connectors.jsonl"),
    peer=Peer(name="python", run=_python, how="json.loads, 1 thread", tool="json.loads"),
)
