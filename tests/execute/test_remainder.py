"""What `remainder="drop"` leaves out is said once in the log, with the figures."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from recipes import delivered, fragments, loaders, values

SAID = "left out of every epoch"


@pytest.fixture(autouse=True)
def info(caplog: pytest.LogCaptureFixture) -> None:
    """Log what Dataflow says at INFO."""
    caplog.set_level(logging.INFO, logger="dataflow")


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if SAID in record.getMessage()]


@pytest.mark.parametrize(("rows", "batch", "left"), [(103, 10, 3), (19, 10, 9), (101, 4, 1)])
def test_rows_that_are_left_out_are_said_with_the_figures(
    caplog: pytest.LogCaptureFixture, rows: int, batch: int, left: int
) -> None:
    pipe = fragments((rows,)).shuffle(8).batch(batch)
    steps = list(delivered(loaders(pipe, 1), epochs=2))
    assert sum(len(values(step)) for step in steps) == 2 * (rows - left)
    assert said(caplog) == [
        f"{left} of {rows} rows {'is' if left == 1 else 'are'} left out of every epoch: too few for a batch of "
        f"{batch}; remainder='pad' or 'keep' delivers them"
    ]
    (record,) = [record for record in caplog.records if SAID in record.getMessage()]
    assert (record.levelname, record.name) == ("INFO", "dataflow.execute")


@pytest.mark.parametrize(
    ("rows", "options"),
    [(100, {}), (103, {"remainder": "pad"}), (103, {"remainder": "keep"})],
    ids=["none are", "pad", "keep"],
)
def test_nothing_is_said_where_every_row_is_delivered(
    caplog: pytest.LogCaptureFixture, rows: int, options: dict[str, Any]
) -> None:
    list(delivered(loaders(fragments((rows,)).batch(10, **options), 1)))
    assert said(caplog) == []


def test_nothing_is_said_of_a_loader_that_is_not_iterated(caplog: pytest.LogCaptureFixture) -> None:
    (loader,) = loaders(fragments((103,)).batch(10), 1)
    with loader:
        assert len(loader) == 10
        assert said(caplog) == []
        next(iter(loader))
        next(iter(loader))
        assert len(said(caplog)) == 1


def test_one_rank_says_it_for_all(caplog: pytest.LogCaptureFixture) -> None:
    list(delivered(loaders(fragments((103,)).batch(global_size=12), 3)))
    (line,) = said(caplog)
    assert line.startswith("7 of 103 rows")


def test_passes_are_one_epoch_in_which_batches_span_them(caplog: pytest.LogCaptureFixture) -> None:
    list(delivered(loaders(fragments((25,)).repeat(3).batch(10), 1)))
    (line,) = said(caplog)
    assert line.startswith("5 of 75 rows")


def test_a_restored_run_says_what_its_own_batch_leaves_out(caplog: pytest.LogCaptureFixture) -> None:
    (begun,) = loaders(fragments((103,)).batch(global_size=8, lanes=2), 1)
    state = begun.state_dict()
    begun.close()
    list(delivered(loaders(fragments((103,)).batch(2), 2, state)))
    (line,) = said(caplog)
    assert line.startswith("7 of 103 rows")
    assert "batch of 8;" in line


def test_nothing_is_said_where_a_function_decides_about_rows(caplog: pytest.LogCaptureFixture) -> None:
    list(delivered(loaders(fragments((103,)).filter(lambda row: True).batch(10), 1)))
    assert said(caplog) == []
