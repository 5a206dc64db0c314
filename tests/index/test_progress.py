"""The bar and the warning of a long scan."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from lines_format import opened

from dataflow.index import open as opening
from dataflow.index.progress import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def pretend_terminal(patch: pytest.MonkeyPatch) -> None:
    """To be called in the test: pytest swaps the stream behind the set-up."""
    patch.setattr(sys.stderr, "isatty", lambda: True)
    patch.setenv("TERM", "xterm")


def test_a_bar_shows_after_a_second_on_a_terminal(
    clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_terminal(monkeypatch)
    with Progress("Indexing web", clock=clock) as progress:
        progress.begin(10)
        clock.now += 0.9
        progress.advance(1)
        assert capsys.readouterr().err == ""
        clock.now += 0.2
        progress.advance()
    assert "Indexing web" in capsys.readouterr().err


def test_no_bar_shows_where_none_is_wanted(
    clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_terminal(monkeypatch)
    with Progress("Indexing web", clock=clock, bar=False) as progress:
        progress.begin(10)
        clock.now += 5
        progress.advance(1)
    assert capsys.readouterr().err == ""


def test_no_bar_shows_in_a_file(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("Indexing web", clock=clock) as progress:
        progress.begin(10)
        clock.now += 5
        progress.advance(1)
    assert capsys.readouterr().err == ""


def test_a_scan_of_over_a_minute_is_announced_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    with Progress("Indexing web", advice="Do this.", clock=clock) as progress:
        progress.begin(1000)
        for _ in range(3):
            clock.now += 2
            progress.advance(10)
    (record,) = caplog.records
    assert record.getMessage() == "Indexing web takes about 198 s more. Do this."
    assert record.levelname == "WARNING"


def test_a_scan_of_under_a_minute_is_not_announced(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    with Progress("Indexing web", clock=clock) as progress:
        progress.begin(100)
        clock.now += 2
        progress.advance()
        progress.advance(4)
    assert not caplog.records


def test_the_advice_is_the_line_that_builds_the_index_beforehand(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    class Noted(Progress):
        def __init__(self, what: str, *, advice: str = "", bar: bool = True) -> None:
            said.extend((what, advice))
            super().__init__(what, bar=bar)

    monkeypatch.setattr(opening, "Progress", Noted)
    opened(folder)
    assert said == [
        "Indexing data",
        f"Do it beforehand with: dataflow index {folder} --out INDEX, then read(..., index=INDEX)",
    ]
