"""A state that was damaged on its way: whatever is wrong in it is an error that names it, and the loader stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from recipes import Recipe, json_copy, loaders
from typer.testing import CliRunner

import dataflow as flow
from dataflow.cli import app
from dataflow.errors import DataError, PlanError
from dataflow.execute.loader import Loader
from dataflow.execute.state import State

KNOWN = Recipe(parts=((13, 20),), window=5, batch=4, lanes=2)
UNKNOWN = Recipe(parts=((13, 20, 40),), window=5, batch=4, lanes=2, function="filter")
RECIPES = {"known": KNOWN, "unknown": UNKNOWN}
both = pytest.mark.parametrize("name", RECIPES)

GONE = object()
WRONG: list[Any] = [GONE, None, -1, True, 1.5, "x", "", [], [[]], [None], {}, {"x": {}}, 1e400, 1 << 70, "\0"]
# A run that began without `errors`, or was saved by a Dataflow that did not count them, goes on.
MAY_BE_GONE = {("errors",)}
Path_ = tuple[str | int, ...]


def _saved(name: str) -> tuple[Loader[Any], dict[str, Any], list[list[int]]]:
    """A loader, the state behind its second batch, and the batches that come then."""
    (loader,) = loaders(RECIPES[name].pipe(), 1)
    running = iter(loader)
    for _ in islice(running, 2):
        pass
    state = json_copy(loader.state_dict())
    return loader, state, [batch["x"].tolist() for batch in islice(running, 2)]


def _places(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Every place in a state, inner ones included."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _places(inner, (*path, key))


def _damaged(state: dict[str, Any], path: Path_, wrong: Any) -> dict[str, Any]:
    made = deepcopy(state)
    holder: Any = made
    for key in path[:-1]:
        holder = holder[key]
    if wrong is GONE:
        del holder[path[-1]]
    else:
        holder[path[-1]] = wrong
    return made


def _same(one: Any, other: Any) -> bool:
    # As JSON: for Python True is 1.
    return json.dumps(one) == json.dumps(other)


def _is_right(path: Path_, wrong: Any) -> bool:
    """Whether what was put there may as well be right, and says nothing of the order."""
    if wrong is GONE:
        return path in MAY_BE_GONE
    return path[0] == "sources" and path[-1] == "name" and isinstance(wrong, str)


@both
def test_whatever_is_wrong_in_a_state_is_an_error_and_the_loader_stays_where_it_is(name: str) -> None:
    loader, state, _ = _saved(name)
    with loader:
        for path in _places(state):
            for wrong in WRONG:
                damaged = _damaged(state, path, wrong)
                if _same(damaged, state) or _is_right(path, wrong):
                    continue
                with pytest.raises((PlanError, DataError)) as caught:
                    loader.load_state_dict(damaged)
                assert caught.value.hint, (path, wrong)
                assert (loader.epoch, loader.step) == (0, 4)


@both
def test_states_that_are_damaged_do_not_merge_by_an_error_of_pythons_own(name: str) -> None:
    loader, state, _ = _saved(name)
    loader.close()
    for path in _places(state):
        for wrong in WRONG:
            damaged = _damaged(state, path, wrong)
            if not _same(damaged, state) and not _is_right(path, wrong):
                with pytest.raises(PlanError):
                    flow.merge_states([state, damaged])


@both
def test_the_state_itself_goes_on_and_is_saved_as_it_was(name: str) -> None:
    loader, state, rest = _saved(name)
    with loader:
        loader.load_state_dict(state)
        assert json_copy(loader.state_dict()) == state
        assert [batch["x"].tolist() for batch in islice(loader, 2)] == rest


@both
def test_one_that_counts_no_bad_rows_has_had_none(name: str) -> None:
    loader, state, rest = _saved(name)
    with loader:
        loader.load_state_dict(_damaged(state, ("errors",), GONE))
        assert loader.state_dict()["errors"] == 0
        assert [batch["x"].tolist() for batch in islice(loader, 2)] == rest


def test_a_state_is_read_into_types() -> None:
    loader, state, _ = _saved("unknown")
    loader.close()
    read = State.read(state)
    assert (read.epoch, read.step, read.batch, read.lanes, read.errors) == (0, 2, 4, 2, 0)
    assert read.windows == (5,)
    assert [source.fields() for source in read.sources] == state["sources"]
    assert read.shape == state["shape"]
    assert read.deal is not None
    assert [list(cursor) for cursor in read.deal.cursors] == state["cursors"]
    assert read.deal.turn == state["turn"]


@pytest.mark.parametrize(
    ("path", "wrong", "said"),
    [
        (("epoch",), GONE, "this is no state of a loader: it lacks ['epoch']"),
        (("version",), 2, "the state has version 2, and this Dataflow writes 1"),
        (("step",), -1, "the state has step=-1, no whole number from 0 up"),
        (("lanes",), 0, "the state has lanes=0, no whole number from 1 up"),
        (("batch",), True, "the state has batch=True, no whole number from 1 up"),
        (("errors",), "x", "the state has errors='x', no whole number from 0 up"),
        (("windows",), {}, "the state has windows={}, no list"),
        (("windows", 0), None, "the state has windows[0]=None, no whole number from 1 up"),
        (("sources", 0), {}, "the state has sources[0]['name']=None, no text"),
        (("sources", 0), [], "the state has sources[0]=[], no values by name"),
        (("sources", 0, "hash"), GONE, "the state has sources[0]['hash']=None, no hash"),
        (("sources", 0, "hash"), "../x", "the state has sources[0]['hash']='../x', no hash"),
        (("sources", 0, "rows"), "9", "the state has sources[0]['rows']='9', no whole number from 0 up"),
        (("shape", "seed"), 3, "the state has shape['seed']=3, no text"),
        (("cursors",), [], "the state has cursors=[]: none for each of its lanes, of which there are 2"),
        (("cursors", 1), [3], "cursors=[[7, 0], [3]]: none for each of its lanes"),
        (("cursors", 1, 0), "x", "the state has cursors[1][0]='x', no whole number from 0 up"),
        (("turn",), 2, "the state has turn=2, and there are 2 lanes, from 0"),
        (("turn",), GONE, "the state has turn=None, no whole number from 0 up"),
    ],
)  # fmt: skip
def test_the_message_says_where_and_what_and_the_hint_what_to_do(
    path: Path_, wrong: Any, said: str, tmp_path: Path
) -> None:
    loader, state, _ = _saved("unknown")
    damaged = _damaged(state, path, wrong)
    with loader, pytest.raises(PlanError) as caught:
        loader.load_state_dict(damaged)
    assert said in caught.value.message
    assert "state_dict()" in caught.value.hint or "version of Dataflow" in caught.value.hint
    file = tmp_path / "place.json"
    file.write_text(json.dumps(damaged))
    shown = CliRunner().invoke(app, ["state", "show", str(file)])
    assert shown.exit_code == 2
    assert f"{file}: {caught.value.message}" in shown.stderr


def test_windows_that_the_state_has_another_hash_of_are_named_with_both() -> None:
    loader, state, _ = _saved("known")
    with loader, pytest.raises(PlanError) as caught:
        loader.load_state_dict({**state, "windows": []})
    assert "the state has no windows, and by its hash of them windows of 5 rows" in caught.value.message
    assert "state_dict()" in caught.value.hint
