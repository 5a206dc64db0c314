"""Where a loader stands: epoch, step, remaining, and what `for`, break, set_epoch and a second iterator do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recipes import Recipe, fragments, json_copy, loaders

from dataflow.errors import LoaderClosed, PlanError
from dataflow.execute.loader import Loader

KNOWN = Recipe(parts=((13, 20),), window=5, batch=4, lanes=2)
UNKNOWN = Recipe(parts=((13, 20, 40),), window=5, batch=4, lanes=2, function="filter")
both = pytest.mark.parametrize("recipe", [KNOWN, UNKNOWN], ids=["known", "unknown"])


def _loader(recipe: Recipe) -> Loader[Any]:
    return loaders(recipe.pipe(), 1)[0]


def _take(loader: Loader[Any], count: int) -> list[list[int]]:
    """The first batches of one `for` that then breaks."""
    found = []
    for batch in loader:
        found.append(batch["x"].tolist())
        if len(found) == count:
            break
    return found


def _expected(recipe: Recipe, epoch: int) -> list[list[int]]:
    return [batch.values for batch in recipe.batches(epoch)]


@both
def test_epoch_and_step_say_what_the_next_batch_will_be(recipe: Recipe) -> None:
    with _loader(recipe) as loader:
        for epoch in range(2):
            last = len(_expected(recipe, epoch)) - 1
            for number, _ in enumerate(loader):
                next_place = (epoch, number + 1) if number < last else (epoch + 1, 0)
                assert (loader.epoch, loader.step) == next_place
                state = loader.state_dict()
                assert (state["epoch"], state["step"]) == next_place
            assert number == last


@both
def test_one_for_is_one_epoch_and_the_next_is_the_next_epoch(recipe: Recipe) -> None:
    with _loader(recipe) as loader:
        for epoch in range(3):
            assert _take(loader, -1) == _expected(recipe, epoch)


@both
def test_for_after_break_is_the_next_epoch_from_its_start(recipe: Recipe) -> None:
    with _loader(recipe) as loader:
        assert _take(loader, 3) == _expected(recipe, 0)[:3]
        assert _take(loader, -1) == _expected(recipe, 1)
        assert _take(loader, 1) == _expected(recipe, 2)[:1]
        assert _take(loader, 1) == _expected(recipe, 3)[:1]


def _train_and_fail(loader: Loader[Any]) -> None:
    for _ in loader:
        raise ZeroDivisionError


@both
def test_a_break_behind_the_last_batch_is_the_end_of_the_epoch(recipe: Recipe) -> None:
    with _loader(recipe) as loader:
        assert _take(loader, len(_expected(recipe, 0))) == _expected(recipe, 0)
        assert _take(loader, -1) == _expected(recipe, 1)


@both
def test_an_exception_in_the_training_loop_ends_the_epoch_as_break_does(recipe: Recipe) -> None:
    with _loader(recipe) as loader:
        with pytest.raises(ZeroDivisionError):
            _train_and_fail(loader)
        assert loader.step == 1
        assert _take(loader, -1) == _expected(recipe, 1)


@both
def test_the_first_for_after_a_restore_finishes_the_epoch_and_the_next_is_whole(recipe: Recipe) -> None:
    with _loader(recipe) as loader:
        _take(loader, 2)
        state = json_copy(loader.state_dict())
        _take(loader, 4)
        loader.load_state_dict(state)
        assert _take(loader, -1) == _expected(recipe, 0)[2:]
        assert _take(loader, -1) == _expected(recipe, 1)


@both
def test_set_epoch_equal_to_the_restored_one_keeps_the_position(recipe: Recipe) -> None:
    with _loader(recipe) as loader:
        loader.set_epoch(2)
        _take(loader, 3)
        state = json_copy(loader.state_dict())
    with _loader(recipe) as loader:
        loader.load_state_dict(state)
        loader.set_epoch(2)
        assert (loader.epoch, loader.step) == (2, 3)
        assert _take(loader, -1) == _expected(recipe, 2)[3:]


@both
def test_set_epoch_to_any_other_starts_it_at_0_whatever_was_read_ahead(recipe: Recipe) -> None:
    with _loader(recipe) as loader:
        _take(loader, 3)
        state = json_copy(loader.state_dict())
        for epoch in (4, 0, 4, 5, 1):
            loader.set_epoch(epoch)
            assert (loader.epoch, loader.step) == (epoch, 0)
            assert _take(loader, 2) == _expected(recipe, epoch)[:2]
        loader.load_state_dict(state)
        loader.set_epoch(3)
        assert _take(loader, -1) == _expected(recipe, 3)


@both
def test_set_epoch_of_an_epoch_that_was_broken_off_starts_it_again(recipe: Recipe) -> None:
    with _loader(recipe) as loader:
        _take(loader, 3)
        loader.set_epoch(0)
        assert _take(loader, -1) == _expected(recipe, 0)


@both
def test_the_usual_loop_with_set_epoch_resumes_exactly(recipe: Recipe) -> None:
    with _loader(recipe) as loader:
        _take(loader, -1)
        _take(loader, 2)
        state = json_copy(loader.state_dict())
    found: list[list[int]] = []
    with _loader(recipe) as loader:
        loader.load_state_dict(state)
        for epoch in range(loader.epoch, 4):
            loader.set_epoch(epoch)
            found += _take(loader, -1)
    assert found == [*_expected(recipe, 1)[2:], *_expected(recipe, 2), *_expected(recipe, 3)]


@pytest.mark.parametrize("epoch", [-1, 1.0, "1", None, True])
def test_set_epoch_to_what_is_no_epoch_is_a_plan_error(epoch: Any) -> None:
    with _loader(KNOWN) as loader, pytest.raises(PlanError, match="no epoch"):
        loader.set_epoch(epoch)


def test_len_and_remaining_count_a_whole_epoch_and_what_this_for_yields() -> None:
    with _loader(KNOWN) as loader:
        assert (len(loader), loader.remaining) == (8, 8)
        for number, _ in enumerate(loader):
            if number == 5:
                break
            assert loader.remaining == 7 - number
        _take(loader, 3)
        assert loader.remaining == 8  # the next `for` is a whole epoch
        state = json_copy(loader.state_dict())
        loader.load_state_dict(state)
        assert (len(loader), loader.remaining) == (8, 5)
        assert len(_take(loader, -1)) == 5
        assert (len(loader), loader.remaining) == (8, 8)


def test_len_of_a_row_changing_pipeline_is_a_type_error() -> None:
    with _loader(UNKNOWN) as loader:
        with pytest.raises(TypeError, match="counted"):
            len(loader)
        with pytest.raises(TypeError, match="counted"):
            _ = loader.remaining
        assert len(list(loader)) == len(_expected(UNKNOWN, 0))


def test_an_epoch_of_which_a_function_leaves_nothing_is_over_and_the_next_one_is_due() -> None:
    keep = [True]

    def kept(row: dict[str, Any]) -> bool:
        return keep[0] or int(row["x"]) < 5

    pipe = fragments((20, 20)).filter(kept).batch(4)
    with loaders(pipe, 1)[0] as loader:
        assert len(_take(loader, 3)) == 3
        state = json_copy(loader.state_dict())
        keep[0] = False
        loader.load_state_dict(state)
        assert _take(loader, -1) == []
        assert (loader.epoch, loader.step) == (1, 0)
        assert _take(loader, -1) == [[0, 1, 2, 3]]


@both
def test_a_second_live_iterator_closes_the_first(recipe: Recipe) -> None:
    with _loader(recipe) as loader:
        first = iter(loader)
        next(first)
        second = iter(loader)
        with pytest.raises(LoaderClosed, match="another one was begun"):
            next(first)
        assert next(second)["x"].tolist() == _expected(recipe, 1)[0]


@both
def test_an_iterator_that_gave_nothing_yet_is_closed_by_a_second_which_begins_the_same_epoch(
    recipe: Recipe,
) -> None:
    with _loader(recipe) as loader:
        first, second = iter(loader), iter(loader)
        assert next(second)["x"].tolist() == _expected(recipe, 0)[0]
        with pytest.raises(LoaderClosed):
            next(first)


@both
def test_an_iterator_is_closed_by_load_state_dict_and_set_epoch(recipe: Recipe) -> None:
    with _loader(recipe) as loader:
        start = json_copy(loader.state_dict())
        running = iter(loader)
        next(running)
        loader.load_state_dict(start)
        with pytest.raises(LoaderClosed):
            next(running)
        assert (loader.epoch, loader.step) == (0, 0)
        running = iter(loader)
        assert next(running)["x"].tolist() == _expected(recipe, 0)[0]
        loader.set_epoch(3)
        with pytest.raises(LoaderClosed):
            next(running)
        assert _take(loader, 1) == _expected(recipe, 3)[:1]


@both
def test_an_exhausted_iterator_stays_exhausted(recipe: Recipe) -> None:
    with _loader(recipe) as loader:
        running = iter(loader)
        assert len(list(running)) == len(_expected(recipe, 0))
        assert list(running) == []
        assert (loader.epoch, loader.step) == (1, 0)


@both
@given(
    moves=st.lists(
        st.tuples(st.sampled_from(["take", "set_epoch", "restore", "iter"]), st.integers(0, 6)), max_size=8
    )
)
@settings(max_examples=15)
def test_any_sequence_of_moves_leaves_the_loader_where_the_rules_say(
    recipe: Recipe, moves: list[tuple[str, int]]
) -> None:
    saved: list[tuple[int, int, Any]] = []
    epoch, step, settled = 0, 0, True
    with _loader(recipe) as loader:
        for move, number in moves:
            if move == "take":
                if not settled:
                    epoch, step = epoch + 1, 0
                want = _expected(recipe, epoch)[step : step + number + 1]
                assert _take(loader, number + 1) == want
                step += len(want)
                settled = step == len(_expected(recipe, epoch))
                if settled:
                    epoch, step = epoch + 1, 0
            elif move == "set_epoch":
                loader.set_epoch(number)
                if not settled or number != epoch:
                    epoch, step, settled = number, 0, True
            elif move == "restore" and saved:
                epoch, step, state = saved[number % len(saved)]
                loader.load_state_dict(state)
                settled = True
            elif move == "iter":
                iter(loader)
                if not settled:
                    epoch, step, settled = epoch + 1, 0, True
            assert (loader.epoch, loader.step) == (epoch, step)
            saved.append((epoch, step, json_copy(loader.state_dict())))


@both
def test_lag_gives_the_states_of_the_last_64_delivered_batches_across_epochs(recipe: Recipe) -> None:
    states: list[Any] = []
    with _loader(recipe) as loader:
        states.append(loader.state_dict())
        while len(states) < 80:
            for _ in loader:
                states.append(loader.state_dict())
        for lag in range(65):
            assert loader.state_dict(lag=lag) == states[-1 - lag]
        with pytest.raises(PlanError, match="64"):
            loader.state_dict(lag=65)


def test_lag_counts_delivered_batches_and_not_the_moves_between_them() -> None:
    with _loader(KNOWN) as loader:
        _take(loader, 3)
        _take(loader, 1)
        # To deliver the last batch again one must go to (1, 0), the last two (0, 2), the last three (0, 1).
        places = [(s["epoch"], s["step"]) for s in (loader.state_dict(lag) for lag in range(4))]
        assert places == [(1, 1), (1, 0), (0, 2), (0, 1)]
    with _loader(KNOWN) as loader:
        _take(loader, 3)
        loader.set_epoch(6)
        loader.set_epoch(7)
        places = [(s["epoch"], s["step"]) for s in (loader.state_dict(lag) for lag in range(3))]
        assert places == [(7, 0), (0, 2), (0, 1)]


@pytest.mark.parametrize("lag", [-1, 1, 0.5, None, "1"])
def test_a_lag_that_is_not_kept_is_a_plan_error(lag: Any) -> None:
    with _loader(KNOWN) as loader, pytest.raises(PlanError, match="lag"):
        loader.state_dict(lag=lag)


def test_a_trainer_that_holds_batches_resumes_with_the_first_it_has_not_trained_on() -> None:
    with _loader(KNOWN) as loader:
        running = iter(loader)
        for _ in range(5):
            next(running)
        state = json_copy(loader.state_dict(lag=2))
        loader.load_state_dict(state)
        assert _take(loader, 1) == _expected(KNOWN, 0)[3:4]


def test_a_loader_shows_what_users_need_and_nothing_else() -> None:
    with _loader(KNOWN) as loader:
        assert {name for name in dir(loader) if not name.startswith("_")} == {
            "close", "epoch", "load_state_dict", "rank", "remaining", "report", "set_epoch", "state_dict", "stats",
            "step", "world_size",
        }  # fmt: skip


def test_an_epoch_that_no_state_could_hold_is_refused() -> None:
    last = 2**63 - 2
    pipe = Recipe(parts=((4,),), batch=4).pipe()
    (loader,) = loaders(pipe, 1)
    with loader:
        for epoch in (last + 1, 2**63, 2**200):
            with pytest.raises(PlanError, match=r"set_epoch\(\d+\) is no epoch") as caught:
                loader.set_epoch(epoch)
            assert f"to {last:,}" in caught.value.hint
        assert loader.epoch == 0
        loader.set_epoch(last)
        states = [loader.state_dict(), *(loader.state_dict() for _ in loader)]
    assert [state["epoch"] for state in states] == [last, last + 1]
    for state in states:
        (other,) = loaders(pipe, 1)
        with other:
            other.load_state_dict(state)
            assert other.state_dict() == state


@pytest.mark.parametrize("lag", ["a", 1.0, None, True, -1])
def test_a_lag_that_is_no_number_of_batches_says_so(lag: Any) -> None:
    (loader,) = loaders(Recipe(parts=((4,),), batch=4).pipe(), 1)
    with loader, pytest.raises(PlanError, match=r"state_dict\(lag=.*\) is no number of batches") as caught:
        loader.state_dict(lag)
    assert "from 0" in caught.value.hint


def test_a_lag_of_more_batches_than_were_delivered_says_how_many_there_are() -> None:
    (loader,) = loaders(Recipe(parts=((400,),), batch=4).pipe(), 1)
    with loader:
        with pytest.raises(PlanError, match=r"lag=1\): no batch was delivered yet") as caught:
            loader.state_dict(1)
        assert "lag=0" in caught.value.hint
        for _ in loader:
            pass
        with pytest.raises(
            PlanError, match=r"lag=65\): the places of the last 64 batches are kept"
        ) as caught:
            loader.state_dict(65)
        assert "within 64 batches" in caught.value.hint
