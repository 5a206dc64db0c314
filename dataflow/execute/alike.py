"""Whether ranks run one order: the numbers that they exchange would else be those of different streams."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence

from connectors.contract import Json
from dataflow.errors import RankError
from dataflow.execute.shape import hashed

__all__ = ["check_alike", "differences", "spoken"]

AllGather = Callable[[Sequence[int]], list[list[int]]]
Facts = dict[str, Json]

_DIGEST_BYTES = 7  # what a signed number of 64 bits holds without its sign


def check_alike(all_gather: AllGather, state: Mapping[str, Json], *, hint: str) -> None:
    """Every rank's state is the same; each tells its digest, and all of it only where these differ.

    Raises:
        RankError: on all ranks alike; says what differs and between which of them.
    """
    told = spoken(state)
    heads = all_gather([_number(told), len(told)])
    if all(head == heads[0] for head in heads):
        return
    longest = max(length for _, length in heads)
    # One number a byte, and spaces behind the shorter ones, which JSON passes over.
    rows = all_gather(list(told.ljust(longest)))
    raise RankError(differences({rank: bytes(row) for rank, row in enumerate(rows)}), hint=hint)


def spoken(state: Mapping[str, Json]) -> bytes:
    """What a rank tells of its state: short, and the same where the order and the place in it are the same."""
    return json.dumps(_facts(state), sort_keys=True).encode()


def differences(told: Mapping[int, bytes]) -> str:
    """A sentence about what parts ranks that are not alike, of what each of them told.

    As "ranks [0, 2] and [1] differ in batch (12, 24), seed": the facts that part the same ranks, side by side.
    """
    facts: dict[int, Facts] = {rank: json.loads(each) for rank, each in told.items()}
    parted: dict[tuple[tuple[int, ...], ...], list[str]] = {}
    for name in sorted({name for each in facts.values() for name in each}):
        ranks: dict[Json, list[int]] = {}
        for rank, each in facts.items():
            ranks.setdefault(each.get(name), []).append(rank)
        if len(ranks) > 1:
            parted.setdefault(tuple(map(tuple, ranks.values())), []).append(_named(name, list(ranks)))
    listed = "; ".join(
        f"ranks {' and '.join(str(list(ranks)) for ranks in parts)} differ in {', '.join(names)}"
        for parts, names in parted.items()
    )
    return f"the ranks of a loader are not alike: {listed}."


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


def _named(name: str, values: Sequence[Json]) -> str:
    """The fact, with its values where they mean something."""
    if all(isinstance(value, int) for value in values):
        return f"{name} ({', '.join(map(str, values))})"
    return name
