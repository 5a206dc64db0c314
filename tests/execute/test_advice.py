"""Which stage is said to limit a run: told from counters alone, so that no test depends on time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from recipes import Recipe, loaders

from dataflow.execute import metrics
from dataflow.execute.advice import advice
from dataflow.execute.metrics import Meters

ELAPSED_S = 10.0
THREADS = 2


def stages(**busy_s: float) -> dict[str, dict[str, int | float]]:
    """Counters of stages that were busy so long; that of `deliver` may be added to."""
    return {name: {"busy_s": seconds, "wait_s": 0.0, "start_s": 0.0} for name, seconds in busy_s.items()}


def verdict(found: dict[str, dict[str, int | float]], **deliver: float) -> tuple[str, str]:
    found["deliver"].update(deliver)
    return advice(found, ELAPSED_S, THREADS)


def test_a_slow_loop_is_the_limit_however_long_the_first_batch_took() -> None:
    limit, hint = verdict(stages(read=3.0, map=1.0, deliver=0.1), start_s=4.0, wait_s=0.06)
    assert limit == "the training loop"
    assert "behind the first batch it was waited for 1.0% of the time" in hint


@pytest.mark.parametrize(("busy_s", "hint"), [(6.0, "threads= or a faster store"), (18.0, "more cores")])
def test_slow_reading_is_the_limit_where_the_loop_waits_again_and_again(busy_s: float, hint: str) -> None:
    limit, said = verdict(stages(order=0.1, read=busy_s, map=1.0, deliver=0.1), start_s=0.5, wait_s=8.0)
    assert limit == "read"
    assert hint in said


def test_a_slow_operator_is_the_limit_where_the_loop_waits_for_it() -> None:
    limit, hint = verdict(stages(read=2.0, map=15.0, deliver=0.1), start_s=0.5, wait_s=7.0)
    assert limit == "map"
    assert "make map cheaper" in hint


def test_bringing_rows_into_order_is_the_limit_where_it_is_most_of_the_work() -> None:
    limit, hint = verdict(stages(read=2.0, arrange=9.0, deliver=0.1), wait_s=7.0)
    assert limit == "arrange"
    assert "fewer lanes" in hint


def test_a_run_that_was_over_with_its_first_batch_has_no_other_verdict() -> None:
    limit, hint = verdict(stages(read=9.0, deliver=0.1), start_s=9.5, wait_s=0.4)
    assert limit == "the start"
    assert "9.50 of 10.00 s" in hint
    assert "run it longer" in hint


def test_nothing_is_the_limit_of_what_has_not_run() -> None:
    assert advice({}, 0.0, THREADS)[0] == "nothing yet"


def test_the_wait_for_a_first_batch_is_kept_apart_from_other_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((0.0, 3.0, 10.0, 12.0))
    monkeypatch.setattr(metrics, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    meters = Meters()
    with meters.waiting("deliver", first=True):
        pass
    with meters.waiting("deliver"):
        pass
    deliver = meters.snapshot()["deliver"]
    assert (deliver["start_s"], deliver["wait_s"]) == (3.0, 2.0)


def test_a_loader_never_counts_its_first_batch_as_a_wait() -> None:
    (loader,) = loaders(Recipe(parts=((40,),), batch=4).pipe(), 1)
    with loader:
        next(iter(loader))
        found: Any = loader.stats()["stages"]
        assert found["deliver"]["wait_s"] == 0.0
        next(iter(loader))  # breaking off begins anew
        found = loader.stats()["stages"]
    assert found["deliver"]["wait_s"] == 0.0
