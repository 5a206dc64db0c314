"""The part of torch.distributed's store in which the ranks of one group leave what is Dataflow's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

__all__ = ["group_store"]

# Torch's own types stay out of this file, as in membership.py.
Store = Any


def group_store(ranks: Sequence[int]) -> Store:
    """The store of these ranks of the default group.

    Raises:
        ValueError: the default group is not initialised, or was destroyed.
    """
    from torch.distributed.distributed_c10d import PrefixStore, _get_default_store

    name = hashlib.sha256(json.dumps(list(ranks)).encode()).hexdigest()[:16]
    return PrefixStore(f"dataflow/{name}", _get_default_store())
