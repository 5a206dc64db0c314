"""Whether ranks run one order: the numbers that they exchange would else be those of different streams."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence

from connectors.contract import Json
from dataflow.errors import RankError
from dataflow.execute.shape import hashed

__all__ = ["check_alike"]

AllGather = Callable[[Sequence[int]], list[list[int]]]
Facts = dict[str, Json]

_DIGEST_BYTES = 7  # what a signed number of 64 bits holds without its sign


def check_alike(all_gather: AllGather, state: Mapping[str, Json], *, hint: str) -> None:
    """Every rank's state is the same; each tells its digest, and all of it only where these differ.

    Raises:
        RankError: on all ranks alike; says what differs and between which of them.
    """
    told = json.dumps(_facts(state), sort_keys=True).encode()
    heads = all_gather([_number(told), len(told)])
    if all(head == heads[0] for head in heads):
        return
    longest = max(length for _, length in heads)
    # One number a byte, and spaces behind the shorter ones, which JSON passes over.
    rows = all_gather(list(told.ljust(longest)))
    raise RankError(f"the ranks of a loader are not alike: {_differences(rows)}.", hint=hint)


def _facts(state: Mapping[str, Json]) -> Facts:
    """What a state says, by name: numbers as they are, all else as a short hash."""
    facts = dict(state)
    shape, sources = facts.pop("shape"), facts.pop("sources")
    assert isinstance(shape, dict)
    assert isinstance(sources, list)
    # Nodes may have a source at different paths, of which its name is made.
    facts["sources"] = [_nameless(source) for source in sources]
    facts |= shape
    return {name: value if isinstance(value, int) else hashed(value) for name, value in facts.items()}


def _nameless(source: Json) -> Json:
    assert isinstance(source, dict)
    return {key: value for key, value in source.items() if key != "name"}


def _number(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest())


def _differences(rows: Sequence[Sequence[int]]) -> str:
    """As "ranks [0, 2] and [1] differ in batch (12, 24), seed": the facts that part the ranks alike, side by side."""
    told: list[Facts] = [json.loads(bytes(row)) for row in rows]
    parted: dict[tuple[tuple[int, ...], ...], list[str]] = {}
    for name in sorted({name for facts in told for name in facts}):
        ranks: dict[Json, list[int]] = {}
        for rank, facts in enumerate(told):
            ranks.setdefault(facts.get(name), []).append(rank)
        if len(ranks) > 1:
            parted.setdefault(tuple(map(tuple, ranks.values())), []).append(_named(name, list(ranks)))
    return "; ".join(
        f"ranks {' and '.join(str(list(ranks)) for ranks in parts)} differ in {', '.join(names)}"
        for parts, names in parted.items()
    )


def _named(name: str, values: Sequence[Json]) -> str:
    """The fact, with its values where they mean something."""
    if all(isinstance(value, int) for value in values):
        return f"{name} ({', '.join(map(str, values))})"
    return name
