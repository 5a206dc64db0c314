"""The process that knows no interruption: `python -m bench.demo.order JOB`, where JOB is a `RankJob` as JSON.

It indexes the data and goes through all steps as the only rank, without decoding or training. It prints one line
of JSON for the indexes and one for every step.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.demo.job import RankJob
from bench.demo.pipelines import image_pipeline, text_pipeline

__all__ = ["main"]


def main(arguments: Sequence[str]) -> None:
    """Index both data sets, then write down the ids of every step."""
    job = RankJob.from_json(arguments[0])
    data, size = Path(job.folder), job.size
    began = time.perf_counter()
    pipes = image_pipeline(data, size, decoded=False), text_pipeline(data, size)
    rows = [pipe.count() for pipe in pipes]
    _say({"indexed_s": time.perf_counter() - began, "images": rows[0], "text": rows[1]})
    loaders = [pipe.loader(rank=0, world_size=1, ids=True, output="numpy") for pipe in pipes]
    step = 0
    try:
        while step < job.steps:
            for images, text in zip(*loaders, strict=True):
                if step < job.steps:
                    _say({"step": step, "images": images["__id__"].tolist(), "text": text["__id__"].tolist()})
                step += 1
    finally:
        for loader in loaders:
            loader.close()


def _say(record: dict[str, Any]) -> None:
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
