"""What a loader's state holds.

version   of this layout
epoch     of the next batch
step      of the next batch
batch     B, the rows of a global batch
lanes     how many
windows   the rows of each shuffle window
sources   name, number, content hash, rows and files of each
shape     one hash for each thing that shapes the order
errors    bad rows delivered or left out on this rank; 0 where it is not there
cursors, turn   behind row-changing operators: row and sub-number of each lane, and whose turn it is
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from connectors.contract import Json
from dataflow.errors import PlanError
from dataflow.execute.compile import Plan
from dataflow.given import as_whole
from dataflow.index.identity import Identity, identity

__all__ = ["NUMBERS_BELOW", "VERSION", "Deal", "State", "base_state"]

VERSION: Final = 1
NUMBERS_BELOW: Final = 1 << 63  # of all that a state holds
_FIELDS: Final = ("version", "epoch", "step", "batch", "lanes", "windows", "sources", "shape")
_HINT: Final = "pass what state_dict() returned"


@dataclass(frozen=True, kw_only=True)
class Deal:
    """Where the deal of an epoch stands: row and sub-number of the cursor of every lane, and the lane that goes on."""

    cursors: tuple[tuple[int, int], ...]
    turn: int

    @classmethod
    def read(cls, state: Mapping[str, Json], lanes: int) -> Self:
        """The deal that a state, or that part of one, holds.

        Raises:
            PlanError: it has not a cursor for each of the lanes, or its turn is that of none.
        """
        cursors = [
            _numbers(f"cursors[{lane}]", each) for lane, each in _items("cursors", state.get("cursors"))
        ]
        if len(cursors) != lanes or any(len(cursor) != 2 for cursor in cursors):
            raise PlanError(
                f"the state has cursors={_short(state['cursors'])}: none for each of its lanes, of which there are "
                f"{lanes}.",
                hint=_HINT,
            )
        turn = _whole("turn", state.get("turn"), 0)
        if turn >= lanes:
            raise PlanError(f"the state has turn={turn}, and there are {lanes} lanes, from 0.", hint=_HINT)
        return cls(cursors=tuple((row, sub) for row, sub in cursors), turn=turn)


@dataclass(frozen=True, kw_only=True)
class State:
    """A state that was read, whose parts have their types; `deal` is None where lengths were known."""

    epoch: int
    step: int
    batch: int
    lanes: int
    windows: tuple[int, ...]
    sources: tuple[Identity, ...]
    shape: Mapping[str, str]
    errors: int
    deal: Deal | None

    @classmethod
    def read(cls, state: Mapping[str, Json]) -> Self:
        """The state that `state_dict()` returned.

        Raises:
            PlanError: it is none, of another version, or damaged: names the part and what it has there.
        """
        _refuse_other_layouts(state)
        lanes = _whole("lanes", state["lanes"], 1)
        return cls(
            epoch=_whole("epoch", state["epoch"], 0),
            step=_whole("step", state["step"], 0),
            batch=_whole("batch", state["batch"], 1),
            lanes=lanes,
            windows=_numbers("windows", state["windows"], 1),
            sources=tuple(
                _source(f"sources[{at}]", each) for at, each in _items("sources", state["sources"])
            ),
            shape={name: _text(f"shape[{name!r}]", value) for name, value in _named("shape", state["shape"])},
            errors=_whole("errors", state.get("errors", 0), 0),
            deal=Deal.read(state, lanes) if "cursors" in state else None,
        )

    def check_step(self, steps: int) -> None:
        """The step is one of the epoch's `steps`.

        Raises:
            PlanError: it is not.
        """
        if self.step >= steps:
            raise PlanError(f"the state is at step {self.step}, and an epoch has {steps}.", hint=_HINT)


def base_state(plan: Plan, batch: int, lanes: int, shape: Mapping[str, str]) -> dict[str, Json]:
    """The part of a state that no step changes."""
    return {
        "version": VERSION,
        "batch": batch,
        "lanes": lanes,
        "windows": list(plan.windows),
        "sources": [identity(source.index, source.number).fields() for source in plan.sources],
        "shape": dict(shape),
    }


def _refuse_other_layouts(state: Mapping[str, Json]) -> None:
    missing = [name for name in _FIELDS if name not in state] if isinstance(state, Mapping) else list(_FIELDS)
    if missing:
        raise PlanError(f"this is no state of a loader: it lacks {missing}.", hint=_HINT)
    if isinstance(state["version"], bool) or state["version"] != VERSION:
        raise PlanError(
            f"the state has version {_short(state['version'])}, and this Dataflow writes {VERSION}.",
            hint="load it with the version of Dataflow that saved it",
        )


def _source(where: str, value: Json) -> Identity:
    found = dict(_named(where, value))
    return Identity(
        name=_text(f"{where}['name']", found.get("name")),
        number=_whole(f"{where}['number']", found.get("number"), 0),
        hash=_hash(f"{where}['hash']", found.get("hash")),
        rows=_whole(f"{where}['rows']", found.get("rows"), 0),
        files=_whole(f"{where}['files']", found.get("files"), 0),
    )


def _whole(where: str, value: Json, least: int) -> int:
    said = f"the state has {where}={_short(value)}, no whole number from {least} up."
    return as_whole(value, said, hint=_HINT, least=least, below=NUMBERS_BELOW)


def _numbers(where: str, value: Json, least: int = 0) -> tuple[int, ...]:
    return tuple(_whole(f"{where}[{at}]", each, least) for at, each in _items(where, value))


def _items(where: str, value: Json) -> list[tuple[int, Json]]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise PlanError(f"the state has {where}={_short(value)}, no list.", hint=_HINT)
    return list(enumerate(value))


def _named(where: str, value: Json) -> list[tuple[str, Json]]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise PlanError(f"the state has {where}={_short(value)}, no values by name.", hint=_HINT)
    return list(value.items())


def _text(where: str, value: Json) -> str:
    if not isinstance(value, str):
        raise PlanError(f"the state has {where}={_short(value)}, no text.", hint=_HINT)
    return value


def _hash(where: str, value: Json) -> str:
    # It becomes a part of the file name under which the index is looked up.
    if not isinstance(value, str) or re.fullmatch("[0-9a-f]+", value) is None:
        raise PlanError(f"the state has {where}={_short(value)}, no hash.", hint=_HINT)
    return value


def _short(value: Json) -> str:
    return reprlib.repr(value)
