"""python rank_endings.py WAY RANK FOLDER: one of two ranks, which ends its first epoch in its own way.

The ways that stay behind do so until the standard input is closed.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist
from rank_jobs import pipeline

LAST_BATCH = 2


def main(way: str, rank: int, folder: Path) -> None:
    """Take a few batches, and end."""
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2, timeout=timedelta(minutes=1)
    )
    loader = pipeline("filter").loader(output="numpy")
    for number, _ in enumerate(loader):
        if number != LAST_BATCH:
            continue
        if way.startswith("stays"):
            sys.stdin.read()
        if way in ("destroys", "stays and destroys"):
            break
        if way == "raises":
            raise ValueError("mine")
        if way == "is interrupted":
            signal.raise_signal(signal.SIGINT)
        if way == "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
    # The loader is open, and its threads are ahead.
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
