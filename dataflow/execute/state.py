"""What a loader's state holds, and how the states of ranks become one.

version   of this layout
epoch     of the next batch
step      of the next batch
batch     B, the rows of a global batch
lanes     how many
windows   the rows of each shuffle window
sources   name, number, content hash, rows and files of each
shape     one hash for each thing that shapes the order
errors    bad rows delivered or left out on this rank
cursors, turn   behind row-changing operators: row and sub-number of each lane, and whose turn it is
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from connectors.contract import Json
from dataflow.errors import PlanError
from dataflow.execute.compile import Plan
from dataflow.execute.shape import hashed
from dataflow.given import as_tuple, is_whole
from dataflow.index.identity import identity

__all__ = [
    "VERSION",
    "base_state",
    "check_place",
    "check_state",
    "merge_states",
]

VERSION = 1
_FIELDS = ("version", "epoch", "step", "batch", "lanes", "windows", "sources", "shape")


def base_state(plan: Plan, batch: int, lanes: int, shape: Mapping[str, str]) -> dict[str, Json]:
    """The part of a state that no step changes."""
    return {
        "version": VERSION,
        "batch": batch,
        "lanes": lanes,
        "windows": list(plan.windows),
        "sources": [identity(source.index, source.number) for source in plan.sources],
        "shape": dict(shape),
    }


def check_state(state: Mapping[str, Json]) -> None:
    """It is a state of this layout.

    Raises:
        PlanError: it is none, or of another version.
    """
    missing = [name for name in _FIELDS if name not in state] if isinstance(state, Mapping) else list(_FIELDS)
    if missing:
        raise PlanError(
            f"this is no state of a loader: it lacks {missing}.", hint="pass what state_dict() returned"
        )
    if state["version"] != VERSION:
        raise PlanError(
            f"the state has version {state['version']}, and this Dataflow writes {VERSION}.",
            hint="load it with the version of Dataflow that saved it",
        )
    _refuse_place(state)


def _refuse_place(state: Mapping[str, Json]) -> None:
    for name, least in (("epoch", 0), ("step", 0), ("batch", 1), ("lanes", 1)):
        value = state[name]
        if not is_whole(value, least):
            raise PlanError(f"the state has {name}={value!r}.", hint="pass what state_dict() returned")
    for name, kind, inside in (("windows", list, int), ("sources", list, dict), ("shape", dict, str)):
        value = state[name]
        if not isinstance(value, kind) or not all(isinstance(one, inside) for one in value):
            raise PlanError(f"the state has {name}={value!r}.", hint="pass what state_dict() returned")


def check_place(state: Mapping[str, Json], steps: int) -> None:
    """The step is one of the epoch's `steps`.

    Raises:
        PlanError: it is not.
    """
    if not 0 <= cast(int, state["step"]) < steps:
        raise PlanError(
            f"the state is at step {state['step']}, and an epoch has {steps}.",
            hint="pass what state_dict() returned",
        )


def merge_states(states: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """One state of those of all ranks, for ranks without a process group; it restores on any number of ranks.

    Raises:
        PlanError: there is none, or they are of different steps or pipelines; lists the step of each.
    """
    states = as_tuple("merge_states", "states", states)
    if not states:
        raise PlanError("merge_states([]) has nothing to merge.", hint="pass the state of every rank")
    for state in states:
        check_state(state)
    places = [(state["epoch"], state["step"]) for state in states]
    if len(set(places)) > 1:
        listed = ", ".join(f"rank {rank}: epoch {e}, step {s}" for rank, (e, s) in enumerate(places))
        raise PlanError(
            f"the states are of different steps: {listed}.", hint="save all ranks after the same batch"
        )
    first = {key: value for key, value in states[0].items() if key != "errors"}
    for rank, state in enumerate(states[1:], start=1):
        other = {key: value for key, value in state.items() if key != "errors"}
        if hashed(other) != hashed(first):
            differ = sorted(key for key in {*first, *other} if first.get(key) != other.get(key))
            raise PlanError(
                f"the states of rank 0 and rank {rank} differ in {differ}.", hint="merge states of one run"
            )
    errors = [int(state.get("errors", 0)) for state in states]
    return {**first, "errors": max(errors)}
