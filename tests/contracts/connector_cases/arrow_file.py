from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
from connector_case import ConnectorCase

from connectors.arrow_ipc import ArrowIpc

WORDS = pa.array(["red", "green", "blue"])
TABLE = pa.table(
    {
        "id": pa.array(range(23), pa.int64()),
        "word": pa.DictionaryArray.from_arrays(pa.array([k % 3 for k in range(23)], pa.int8()), WORDS),
        "tags": pa.array([[f"tag {j}" for j in range(k % 4)] for k in range(23)]),
    }
)


def write(folder: Path) -> Sequence[Path]:
    paths = [folder / "a.feather", folder / "b.arrow"]
    pyarrow.feather.write_feather(TABLE.slice(0, 15), str(paths[0]), chunksize=6, compression="zstd")
    with pa.OSFile(str(paths[1]), "wb") as file, pa.ipc.new_file(file, TABLE.schema) as writer:
        writer.write_table(TABLE.slice(15), max_chunksize=5)
    return paths


CASE = ConnectorCase(
    name="arrow",
    connector=ArrowIpc(),
    write=write,
    expected=TABLE.set_column(1, "word", TABLE["word"].cast(pa.string())),
)
