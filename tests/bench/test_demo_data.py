"""The data of the demo: real photographs and real text, the same every time."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from bench.demo.images import make_images
from bench.demo.pipelines import decode
from bench.demo.size import Size
from bench.demo.text import make_text
from dataflow.errors import PlanError


def members(folder: Path) -> list[tuple[str, bytes]]:
    found = []
    for shard in sorted(folder.glob("*.tar")):
        with tarfile.open(shard) as archive:
            found += [
                (member.name, data.read()) for member in archive if (data := archive.extractfile(member))
            ]
    return found


def test_images_are_jpegs_with_labels_and_the_same_every_time(tmp_path: Path) -> None:
    for name, threads in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        make_images(tmp_path / name, images=13, shards=3, threads=threads)
    found = members(tmp_path / "one")
    assert found == members(tmp_path / "two")
    assert [name for name, _ in found] == [f"{i:06}.{kind}" for i in range(13) for kind in ("jpg", "cls")]
    assert {data for name, data in found if name.endswith("cls")} == {b"0", b"1"}
    photographs = [Image.open(io.BytesIO(data)) for name, data in found if name.endswith("jpg")]
    assert {photograph.format for photograph in photographs} == {"JPEG"}
    assert all(np.asarray(photograph).std() > 1 for photograph in photographs)


def test_an_image_is_decoded_by_its_own_draws() -> None:
    encoded = io.BytesIO()
    Image.fromarray(np.arange(100 * 120 * 3, dtype=np.uint8).reshape(100, 120, 3)).save(encoded, "JPEG")
    first, again, other = (decode(encoded.getvalue(), 32, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first.shape == (32, 32, 3)
    assert first.dtype == np.uint8
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("files", [1, 3])
def test_text_is_source_code_in_rows_of_one_length(tmp_path: Path, files: int) -> None:
    make_text(tmp_path, rows=100, row_bytes=64, files=files)
    tables = [pq.read_table(file) for file in sorted(tmp_path.glob("*.parquet"))]
    assert len(tables) == files
    rows = [row.as_py() for table in tables for row in table["tokens"]]
    assert len(rows) == 100
    assert {len(row) for row in rows} == {64}
    assert b"import" in b"".join(map(bytes, rows))


def test_a_batch_that_ranks_cannot_share_is_refused() -> None:
    with pytest.raises(PlanError, match="image_batch=10") as caught:
        Size(image_batch=10)
    assert "multiples of 6" in caught.value.hint
    with pytest.raises(PlanError, match="no two steps") as caught:
        Size(steps=2, save_every=10)
    assert "every 3 steps or more" in caught.value.hint
