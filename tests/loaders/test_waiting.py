"""A rank that waits for others says so, and for whom."""

from __future__ import annotations

import pytest

from loaders.waiting import Waiting


def test_every_half_minute_one_line_names_those_that_are_missing(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    waiting = Waiting(200.0, clock=lambda: now[0])
    for now[0] in (100.0, 129.0, 130.0, 131.0, 159.0, 165.0):
        waiting.say("ranks [1, 3] have")
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(";")[0] for line in lines] == [
        "waiting for 30 s: ranks [1, 3] have not made this loader",
        "waiting for 65 s: ranks [1, 3] have not made this loader",
    ]
    assert "an error in 70 s" in lines[0]
