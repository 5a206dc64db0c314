"""Two class folders with more files than a fragment has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from connector_case import ConnectorCase

from connectors.folder import Folder

_NAMES = [f"{kind}/{k:03}.jpg" for kind in ("ant", "bee") for k in range(300)]


def write(folder: Path) -> Sequence[Path]:
    for name in _NAMES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(name.encode() * 3)
    return [folder / name for name in _NAMES]


CASE = ConnectorCase(
    name="folder",
    connector=Folder(),
    write=write,
    expected=pa.table(
        {
            "path": pa.array(_NAMES, pa.string()),
            "bytes": pa.array([name.encode() * 3 for name in _NAMES], pa.large_binary()),
            "label": pa.array([int(name.startswith("bee")) for name in _NAMES], pa.int64()),
        }
    ),
    # Every content is a row: whether it is an image is for the decoder to say.
    empty="not applicable",
    truncated="not applicable",
    foreign="not applicable",
)
