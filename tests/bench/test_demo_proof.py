"""The proof of the demo holds for the same ids in the same order, and for nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from bench.demo.proof import prove

Steps = list[dict[str, Any]]
STEPS, SAVED_AT, BATCH = 9, 4, 6


def uninterrupted() -> Steps:
    return [
        {"step": step, "images": list(range(step * BATCH, step * BATCH + BATCH)), "text": [step, -step]}
        for step in range(STEPS)
    ]


def shared(world: int, steps: range) -> list[Steps]:
    """The steps as `world` ranks deliver them: contiguous shares."""
    share = BATCH // world
    return [
        [
            {
                "step": record["step"],
                "images": record["images"][rank * share : (rank + 1) * share],
                "text": record["text"] if rank == 0 else [],
            }
            for record in uninterrupted()[steps.start : steps.stop]
        ]
        for rank in range(world)
    ]


def test_the_same_ids_on_other_ranks_are_a_proof() -> None:
    proof = prove(uninterrupted(), shared(2, range(6)), shared(3, range(SAVED_AT, STEPS)), saved_at=SAVED_AT)
    assert proof.holds
    assert proof.differs is None
    assert (proof.steps_before, proof.steps_after) == (SAVED_AT, STEPS - SAVED_AT)


def test_a_step_that_a_killed_rank_no_longer_told_of_is_no_difference() -> None:
    before = shared(2, range(6))
    before[1].pop()
    assert prove(uninterrupted(), before, shared(3, range(SAVED_AT, STEPS)), saved_at=SAVED_AT).holds


@pytest.mark.parametrize("where", ["before", "redone", "after"])
def test_two_ids_that_have_changed_places_are_found(where: str) -> None:
    runs = {"before": shared(2, range(6)), "after": shared(3, range(SAVED_AT, STEPS))}
    record = {"before": runs["before"][0][1], "redone": runs["before"][0][5], "after": runs["after"][2][2]}[
        where
    ]
    kept = copy.copy(record["images"])
    record["images"][0], record["images"][1] = kept[1], kept[0]
    proof = prove(uninterrupted(), runs["before"], runs["after"], saved_at=SAVED_AT)
    assert not proof.holds
    assert proof.differs == f"step {record['step']}: other images than without the interruption"


@pytest.mark.parametrize("after", [range(SAVED_AT + 1, STEPS), range(SAVED_AT, STEPS - 1)])
def test_a_step_that_is_missing_is_found(after: range) -> None:
    proof = prove(uninterrupted(), shared(2, range(SAVED_AT)), shared(3, after), saved_at=SAVED_AT)
    assert not proof.holds
    assert "is not in both runs" in str(proof.differs)
