"""A loader that cannot end one of its parts still ends all the others."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import pytest
from meeting import meeting_loaders
from recipes import Recipe, loaders

from dataflow.errors import ConnectorError
from dataflow.execute.quarantine import Quarantine
from dataflow.execute.running import Running
from loaders.exchange import Exchange

KNOWN = Recipe(parts=((400,),), window=16, batch=4, lanes=2)
UNKNOWN = Recipe(parts=((400,),), window=16, batch=4, lanes=2, function="filter")


def _ours() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("dataflow-")]


@pytest.mark.parametrize("part", [Running, Quarantine])
@pytest.mark.parametrize("recipe", [KNOWN, UNKNOWN], ids=["known", "unknown"])
def test_threads_end_and_the_trace_is_written_whichever_part_fails_to_close(
    recipe: Recipe, part: type[Running | Quarantine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = part.close

    def close_and_fail(self: Running | Quarantine) -> None:
        close(self)  # type: ignore[arg-type]
        raise OSError("no space left")

    path = tmp_path / "trace.json"
    (loader,) = loaders(recipe.pipe(), 1, trace=path)
    next(iter(loader))
    monkeypatch.setattr(part, "close", close_and_fail)
    with pytest.raises(OSError, match="no space left"):
        loader.close()
    assert _ours() == []
    assert json.loads(path.read_text())["traceEvents"]
    loader.close()


def test_ranks_let_go_of_what_they_exchange_numbers_over_where_another_part_fails_to_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shut: list[Exchange] = []
    shutdown = Exchange.shutdown

    def seen(self: Exchange) -> None:
        shut.append(self)
        shutdown(self)

    def fail(self: Quarantine) -> None:
        raise OSError("no space left")

    ranks = meeting_loaders(UNKNOWN.pipe(), 2)
    for iterator in [iter(loader) for loader in ranks]:
        next(iterator)
    monkeypatch.setattr(Exchange, "shutdown", seen)
    monkeypatch.setattr(Quarantine, "close", fail)
    for loader in ranks:
        with pytest.raises(OSError, match="no space left"):
            loader.close()
    assert len(set(shut)) == 2
    assert _ours() == []


def _full(file: Path, text: str) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))


def test_a_trace_that_cannot_be_written_at_the_end_is_named_and_all_else_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.json"
    (loader,) = loaders(KNOWN.pipe(), 1, trace=path)
    batches = sum(1 for _ in loader)
    monkeypatch.setattr("dataflow.execute.trace.write_whole", _full)
    with pytest.raises(ConnectorError, match=f"trace='{path}': No space left on device") as caught:
        loader.close()
    assert batches == 100
    assert "room or rights" in caught.value.hint
    assert not _ours()
    loader.close()


def test_what_ended_a_run_is_not_hidden_by_a_trace_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (loader,) = loaders(KNOWN.pipe(), 1, trace=tmp_path / "trace.json")
    monkeypatch.setattr("dataflow.execute.trace.write_whole", _full)

    def fail() -> None:
        with loader:
            next(iter(loader))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        fail()
    assert "trace=" in caught.value.__notes__[0]
    assert not _ours()
