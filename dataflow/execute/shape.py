"""What shapes the order of rows: the hash of each thing, which a state keeps, and in what two orders differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, cast

from connectors.contract import Json
from dataflow.errors import PlanError
from dataflow.execute.compile import Plan
from dataflow.execute.state import State
from dataflow.graph.node import Node, walk
from dataflow.wording import counted

__all__ = ["Shape", "compare_shape", "hashed", "order_shape"]

_SEED: Final = "seed"
_WINDOWS: Final = "windows"
_PLACES: Final = "order of the steps"
# Of these a hash tells the value, for there are few.
_CHOICES: Final = {"remainder": ("drop", "pad", "keep"), "on_error": ("skip", "keep")}


@dataclass(frozen=True)
class Shape:
    """The things that shape the order by name: their values, and where they are steps, how these are written."""

    facts: Mapping[str, Sequence[Json]]
    steps: Mapping[str, str]

    @cached_property
    def hashes(self) -> dict[str, str]:
        """One short hash for each."""
        return {name: hashed(value) for name, value in sorted(self.facts.items())}


def order_shape(below_batch: Node, plan: Plan, batching: Mapping[str, Json]) -> Shape:
    """What shapes the order of the rows that come out of `below_batch`, and how they are batched."""
    facts: dict[str, list[Json]] = {
        _SEED: [plan.seed],
        _WINDOWS: list(plan.windows),
        **{k: [v] for k, v in batching.items()},
    }
    steps: dict[str, list[str]] = {}
    for step in walk(below_batch):
        fact = step.order_fact()
        if fact is not None:
            facts.setdefault(step.kind, []).append(fact)
            steps.setdefault(step.kind, []).append(step.label())
    facts[_PLACES] = [_outline(below_batch)]
    return Shape(facts, {kind: ", ".join(labels) for kind, labels in steps.items()})


def _outline(node: Node) -> Json:
    """The steps that shape the order, each over those that feed it."""
    feeds = [_outline(feed) for feed in node.inputs]
    fact = node.order_fact()
    if fact is None and len(feeds) == 1:
        return feeds[0]
    return [node.kind, fact, *feeds]


def hashed(value: object) -> str:
    """A short hash of plain data."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=4).hexdigest()


def compare_shape(state: State, now: Shape) -> None:
    """What shapes the order is as it was when `state` was saved.

    Raises:
        PlanError: names what differs, with the values of then and of now where a state keeps them; or the state's
            windows are not those that it has the hash of.
    """
    saved = state.shape
    differ = {name for name in {*saved, *now.hashes} if saved.get(name) != now.hashes.get(name)}
    if not differ:
        _refuse_other_windows(state, now)
        return
    if differ - {_SEED, _WINDOWS, _PLACES, *_CHOICES}:
        # A step that is another one is so in its place too.
        differ.discard(_PLACES)
    told = "; ".join(_difference(name, state, saved.get(name), now) for name in sorted(differ))
    raise PlanError(
        f"the state is of another order: {told}.",
        hint="use the steps and the seed of the pipeline that saved it (the state has hashes of them, not the "
        "values); map, columns and loader options may change, but for on_error='skip'",
    )


def _refuse_other_windows(state: State, now: Shape) -> None:
    """The windows of a state of this order are those of the order."""
    if list(state.windows) != list(now.facts[_WINDOWS]):
        raise PlanError(
            f"the state has {_windows(state.windows)}, and by its hash of them {_windows(now.facts[_WINDOWS])}.",
            hint="pass what state_dict() returned",
        )


def _difference(name: str, state: State, was: str | None, now: Shape) -> str:
    """In what one thing differs, `was` being its hash in the state."""
    if name == _SEED:
        return f"another seed then, seed({now.facts[name][0]}) here"
    if name == _WINDOWS:
        return f"{_windows(state.windows)} then, {_windows(now.facts[name])} here"
    if name == "on_error":
        # Of the others none shapes the order.
        return (
            "on_error='skip' here, not then"
            if now.facts[name][0] == "skip"
            else "on_error='skip' then, not here"
        )
    if name in _CHOICES:
        before = next((value for value in _CHOICES[name] if hashed([value]) == was), "another")
        return f"{name} {before!r} then, {now.facts[name][0]!r} here"
    if name == _PLACES:
        return "the steps in another order then"
    if was is None:
        return f"no {name} then, {now.steps[name]} here"
    return f"{f'another {name}' if name in now.steps else name} then, {now.steps.get(name, 'none')} here"


def _windows(rows: Sequence[Json]) -> str:
    windows = [counted(each, "row") for each in cast(Sequence[int], rows)]
    return f"windows of {', '.join(windows)}" if windows else "no windows"
