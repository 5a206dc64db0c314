from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest

from connectors.forward import Truncated, codec_of, pieces
from connectors.retry import Retry
from connectors.store import Store
from dataflow.errors import ConnectorError, DataError

TEXT = bytes(k * k % 251 for k in range(100_000))


def zstd(data: bytes) -> bytes:
    target = pa.BufferOutputStream()
    with pa.CompressedOutputStream(target, "zstd") as out:
        out.write(data)
    return target.getvalue().to_pybytes()


def test_the_name_tells_the_compression() -> None:
    names = ["a.tar", "a.gz.tar", "a.jsonl.gz", "A.TGZ", "a.zst"]
    assert [codec_of(name) for name in names] == [None, None, "gzip", "gzip", "zstd"]


@pytest.mark.parametrize(("name", "compress"), [("a.bin", bytes), ("a.gz", gzip.compress), ("a.zst", zstd)])
def test_the_content_comes_in_pieces(tmp_path: Path, name: str, compress: Callable[[bytes], bytes]) -> None:
    # Compressed files behind one another are one, as gzip and zstd have it.
    (tmp_path / name).write_bytes(compress(TEXT) + compress(TEXT))
    found = list(pieces(Store(), str(tmp_path / name), piece_bytes=3000))
    assert b"".join(found) == TEXT + TEXT
    assert max(map(len, found)) <= 3000


def test_a_remote_file_is_read_too() -> None:
    fs = fsspec.filesystem("memory")
    fs.pipe("/forward/a.gz", gzip.compress(TEXT))
    assert b"".join(pieces(Store(fs), "/forward/a.gz", piece_bytes=1 << 16)) == TEXT


@pytest.mark.parametrize(("name", "compress"), [("a.gz", gzip.compress), ("a.zst", zstd)])
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.99])
def test_a_stream_that_is_cut_is_truncated(
    tmp_path: Path, name: str, compress: Callable[[bytes], bytes], share: float
) -> None:
    whole = compress(TEXT)
    (tmp_path / name).write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(Truncated, match=name) as caught:
        list(pieces(Store(), str(tmp_path / name), piece_bytes=1000))
    assert "again" in caught.value.hint


@pytest.mark.parametrize("name", ["a.gz", "a.zst"])
def test_a_stream_of_another_kind_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"plain text\n" * 100)
    with pytest.raises(DataError, match=f"{name}: the .* stream is damaged or not") as caught:
        list(pieces(Store(), str(tmp_path / name), piece_bytes=1000))
    assert "compressed file" in caught.value.hint


def test_a_damaged_stream_is_an_error(tmp_path: Path) -> None:
    damaged = bytearray(gzip.compress(TEXT))
    damaged[-6] ^= 0xFF  # the checksum
    (tmp_path / "a.gz").write_bytes(damaged)
    with pytest.raises(DataError, match=r"a\.gz: the gzip stream is damaged"):
        list(pieces(Store(), str(tmp_path / "a.gz"), piece_bytes=1 << 20))


def test_a_missing_file_is_the_fault_of_the_store(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match=r"a\.gz does not exist") as caught:
        list(pieces(Store(), str(tmp_path / "a.gz"), piece_bytes=1000))
    assert caught.value.hint


def test_a_failing_read_is_the_fault_of_the_store() -> None:
    fs = fsspec.filesystem("memory")
    fs.pipe("/forward/b.gz", gzip.compress(TEXT))

    class Failing(type(fs)):  # type: ignore[misc]
        def open(self, path: str, mode: str = "rb", **options: object) -> object:
            file = super().open(path, mode, **options)
            seek = file.seek

            def read(size: int = -1) -> bytes:
                raise ConnectionResetError("connection lost")

            file.read, file.seek = read, seek
            return file

    with pytest.raises(ConnectorError, match=r"b\.gz at byte 0 .* 10 tries .*connection lost"):
        list(pieces(Store(Failing(), Retry(first_wait_s=0)), "/forward/b.gz", piece_bytes=1000))
