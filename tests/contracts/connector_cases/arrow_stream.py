from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from connector_case import ConnectorCase

from connectors.arrow_ipc import ArrowIpc

# The second batch adds a word to the dictionary, the fourth has another one.
WORDS = [["red", "blue"], ["red", "blue", "pink"], ["red", "blue", "pink"], ["grey", "tan"]]
BATCHES = [
    pa.record_batch(
        {
            "id": pa.array(range(5 * k, 5 * k + 5), pa.int64()),
            "word": pa.DictionaryArray.from_arrays(
                pa.array([0, 1, len(words) - 1, None, 1]), pa.array(words)
            ),
            "text": pa.array([f"text {j}" for j in range(5)]),
        }
    )
    for k, words in enumerate(WORDS)
]


def write(folder: Path) -> Sequence[Path]:
    paths = [folder / "a.arrows", folder / "b.arrows"]
    for path, batches, deltas in ((paths[0], BATCHES[:2], True), (paths[1], BATCHES[2:], False)):
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_stream(file, BATCHES[0].schema, options=options) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
    return paths


TABLE = pa.Table.from_batches(BATCHES)
CASE = ConnectorCase(
    name="arrow",
    connector=ArrowIpc(),
    write=write,
    expected=TABLE.set_column(1, "word", TABLE["word"].cast(pa.string())),
)
