"""python machine_rank.py RANK MEETING FOLDER: one of two ranks, which leaves its batches in the folder as JSON."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist
from rank_jobs import whole_epochs


def main(rank: int, meeting: str, folder: Path) -> None:
    """Meet the other rank at a URL, and take all batches."""
    dist.init_process_group(
        "gloo", init_method=meeting, rank=rank, world_size=2, timeout=timedelta(minutes=1)
    )
    found = whole_epochs("filter", rank)
    (folder / f"{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
