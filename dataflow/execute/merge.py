"""The states of ranks without a process group become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from connectors.contract import Json
from dataflow.errors import PlanError
from dataflow.execute.state import State
from dataflow.given import as_tuple

__all__ = ["merge_states"]


def merge_states(states: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """One state of those of all ranks, for ranks without a process group; it restores on any number of ranks.

    Raises:
        PlanError: there is none, or they are of different steps or pipelines; lists the step of each.
    """
    states = as_tuple("merge_states", "states", states)
    if not states:
        raise PlanError("merge_states([]) has nothing to merge.", hint="pass the state of every rank")
    read = [State.read(state) for state in states]
    if len({(state.epoch, state.step) for state in read}) > 1:
        listed = ", ".join(f"rank {rank}: epoch {s.epoch}, step {s.step}" for rank, s in enumerate(read))
        raise PlanError(
            f"the states are of different steps: {listed}.", hint="save all ranks after the same batch"
        )
    for rank, state in enumerate(read[1:], start=1):
        differ = _differences(read[0], state)
        if differ:
            raise PlanError(
                f"the states of rank 0 and rank {rank} differ in {differ}.", hint="merge states of one run"
            )
    return {**states[0], "errors": max(state.errors for state in read)}


def _differences(one: State, other: State) -> list[str]:
    """What is not alike, as it is on all ranks of a run but for their bad rows."""
    alike = (each.name for each in fields(State) if each.name != "errors")
    return [name for name in alike if getattr(one, name) != getattr(other, name)]
