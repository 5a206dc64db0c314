"""What a run asks of a store: each byte about once an epoch, however small the windows are."""

from __future__ import annotations

from collections.abc import Iterator

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from flaky import Flaky

import dataflow as flow
from connectors.arrow_layout import Codec

ROWS, EPOCHS = 40_000, 3
NUMBERS = {f"f{k}": np.random.default_rng(k).random(ROWS) for k in range(4)}
TABLE = pa.table({"x": np.arange(ROWS), **NUMBERS, "text": [f"text {k}" for k in range(ROWS)]})


@pytest.fixture(autouse=True)
def store() -> Iterator[None]:
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    Flaky.clear()
    yield
    Flaky.clear()


def asked_bytes() -> int:
    return sum(stop - start for _, start, stop in Flaky.asked)


def put(kind: str, compression: Codec | None, batch_rows: int) -> int:
    make = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    sink = pa.BufferOutputStream()
    with make(sink, TABLE.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(TABLE, max_chunksize=batch_rows)
    Flaky.put("data/a.arrow", sink.getvalue().to_pybytes())
    return len(Flaky.files["data/a.arrow"])


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("batch_rows", [ROWS, ROWS // 3])
@pytest.mark.parametrize("lanes", [1, 4])
def test_a_remote_record_batch_larger_than_the_window_is_asked_for_about_once_an_epoch(
    kind: str, compression: Codec | None, batch_rows: int, lanes: int
) -> None:
    size = put(kind, compression, batch_rows)
    pipe = flow.read("flaky://data/a.arrow")
    assert pipe.count() == ROWS
    Flaky.asked.clear()
    with pipe.shuffle(ROWS // 25).batch(500, lanes=lanes).loader(output="numpy") as loader:
        for _ in range(EPOCHS):
            rows = np.concatenate([batch["x"] for batch in loader])
            assert np.array_equal(np.sort(rows), np.arange(ROWS))
    # One epoch more is read ahead, and each slice has 4 KiB of heads. Each lane decodes the compressed batches it is
    # in.
    decoded = 1 if compression is None else 1 + (lanes - 1) / (ROWS / batch_rows)
    assert asked_bytes() < 1.3 * size * (EPOCHS + 1) * decoded


def test_a_few_columns_and_single_rows_ask_for_their_own_bytes() -> None:
    size = put("file", None, ROWS)
    pipe = flow.read("flaky://data/a.arrow")
    assert pipe.count() == ROWS
    Flaky.asked.clear()
    assert pipe[ROWS // 2]["text"] == f"text {ROWS // 2}"
    assert asked_bytes() < size / 100
    Flaky.asked.clear()
    few = flow.read("flaky://data/a.arrow", columns=["x"])
    with few.batch(500).loader(output="numpy") as loader:
        assert sum(len(batch["x"]) for batch in loader) == ROWS
    assert asked_bytes() < 2 * size / 5
