"""Two WebDataset shards: one of a single fragment, one whose large samples make several."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from connector_case import ConnectorCase

from connectors.tar import Tar

# Three samples of the second shard do not go into one fragment.
_SAMPLES = [
    ("a/0", b"\xff\xd8", 3),
    ("a/1", b"", -1),
    *((f"b/{k}", bytes([k]) * 1_800_000, k) for k in range(5)),
]


def write(folder: Path) -> Sequence[Path]:
    paths = [folder / "shard-0.tar", folder / "shard-1.tar"]
    for path, samples in zip(paths, (_SAMPLES[:2], _SAMPLES[2:]), strict=True):
        with tarfile.open(path, "w") as tar:
            for key, image, label in samples:
                for extension, content in (
                    ("jpg", image),
                    ("cls", str(label).encode()),
                    ("txt", key.encode()),
                ):
                    info = tarfile.TarInfo(f"{key}.{extension}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
    return paths


_KEYS, _IMAGES, _LABELS = zip(*_SAMPLES, strict=True)

CASE = ConnectorCase(
    name="tar",
    connector=Tar(),
    write=write,
    expected=pa.table(
        {
            "__key__": pa.array(_KEYS, pa.string()),
            "cls": pa.array(_LABELS, pa.int64()),
            "jpg": pa.array(_IMAGES, pa.large_binary()),
            "txt": pa.array(_KEYS, pa.string()),
        }
    ),
)
