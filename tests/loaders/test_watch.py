"""Ranks that exchange nothing see of each other, without waiting, whether they run one order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch._C._distributed_c10d import HashStore

from dataflow.errors import RankError
from dataflow.execute.alike import spoken
from loaders.notes import Notes
from loaders.watch import Watch

RANKS = (4, 5, 7)
STATE: dict[str, Any] = {
    "version": 1,
    "batch": 12,
    "shape": {"seed": "a"},
    "sources": [],
    "epoch": 0,
    "step": 0,
}


class _CountedStore:
    """A store that counts what it is asked."""

    def __init__(self) -> None:
        self._store, self.asked = HashStore(), 0

    def __getattr__(self, name: str) -> Any:
        self.asked += 1
        return getattr(self._store, name)


def _watch(store: Callable[[], Any], rank: int, name: str = "0", **other: Any) -> Watch:
    watch = Watch()
    watch.begin(_notes(store, rank, name, **other))
    return watch


def _notes(store: Callable[[], Any], rank: int, name: str = "0", **other: Any) -> Notes:
    state = {**STATE, **other}
    order = f"seed {state['shape']['seed']}, {state['batch']} rows"
    return Notes(store, name, RANKS, rank, order, spoken(state))


def _pass(watch: Watch) -> None:
    """Take notice of a batch, and let the look that it asks for come to its end."""
    watch.pass_batch()
    watch.close()


def test_ranks_that_are_alike_look_until_all_were_seen_and_never_again() -> None:
    store = _CountedStore()
    watches = [_watch(lambda: store, rank) for rank in RANKS]
    for watch in (*watches, *watches):
        _pass(watch)
    asked = store.asked
    for watch in watches * 100:
        _pass(watch)
    assert store.asked == asked


def test_a_rank_that_never_comes_is_looked_for_ever_more_rarely() -> None:
    store = _CountedStore()
    watches = [_watch(lambda: store, rank) for rank in RANKS[:2]]
    _pass(watches[1])
    asked = []
    for _ in range(1024):
        before = store.asked
        _pass(watches[0])
        asked.append(store.asked > before)
    assert [batch for batch, looked in enumerate(asked, 1) if looked] == [2**power for power in range(11)]


@pytest.mark.parametrize(
    ("other", "named"),
    [({"batch": 24}, "batch (12, 24)"), ({"shape": {"seed": "b"}}, "seed"), ({"step": 3}, "step (0, 3)")],
)
def test_every_rank_that_sees_an_unlike_one_is_told_at_its_next_batch(
    other: dict[str, Any], named: str
) -> None:
    store = HashStore()
    watches = [_watch(lambda: store, 4), _watch(lambda: store, 7, **other), _watch(lambda: store, 5)]
    for watch in (*watches, watches[0]):
        _pass(watch)
    for watch in watches:
        with pytest.raises(RankError, match="of a loader are not alike") as caught:
            watch.pass_batch()
        assert f"and [7] differ in {named}." in str(caught.value)
        assert "load the same state on all or on none" in str(caught.value.hint)


def test_one_that_comes_when_another_has_ended_sees_what_that_one_ran() -> None:
    store = HashStore()
    _pass(_watch(lambda: store, 4))
    late = _watch(lambda: store, 5, step=7)
    _pass(late)
    with pytest.raises(RankError, match=r"ranks \[4\] and \[5\] differ in step \(0, 7\)"):
        late.pass_batch()


def test_what_a_look_finds_is_told_once_even_behind_the_next_begin() -> None:
    store = HashStore()
    _pass(_watch(lambda: store, 4))
    late = _watch(lambda: store, 5, step=7)
    _pass(late)
    late.begin(_notes(lambda: store, 5, "1"))
    with pytest.raises(RankError):
        late.pass_batch()
    _pass(late)
    _pass(late)


def test_a_rank_that_has_a_loader_more_than_the_others_is_like_them_in_those_that_they_have() -> None:
    store = HashStore()
    seeds = {4: "cab", 5: "ab", 7: "ab"}
    begins = [
        _watch(lambda: store, rank, str(number), shape={"seed": seed})
        for rank, own in seeds.items()
        for number, seed in enumerate(own)
    ]
    for watch in begins * 3:
        _pass(watch)


def test_begins_of_other_names_are_not_compared() -> None:
    store = HashStore()
    watches = [_watch(lambda: store, rank, name, epoch=int(name)) for name in "01" for rank in RANKS]
    for watch in watches * 2:
        _pass(watch)


def test_a_store_that_is_gone_ends_the_looking() -> None:
    asked = []

    def gone(error: Exception) -> Any:
        asked.append(error)
        raise error

    for error in (RuntimeError("Broken pipe"), ValueError("Default process group has not been initialized")):
        watch = _watch(lambda error=error: gone(error), 4)  # type: ignore[misc]
        for _ in range(8):
            _pass(watch)
    assert len(asked) == 2
