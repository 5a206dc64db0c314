"""`pieces`: a file read from its start to its end, decompressed where its name says so."""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal, TypeAlias

import pyarrow as pa

from connectors.file_info import FileInfo
from connectors.store import Store
from dataflow.errors import ConnectorError, DataError, DataflowError
from dataflow.wording import counted

__all__ = ["Truncated", "codec_of", "pieces"]

Codec: TypeAlias = Literal["gzip", "zstd"]

_CODECS: dict[str, Codec] = {".gz": "gzip", ".tgz": "gzip", ".zst": "zstd"}


class Truncated(DataError):
    """A file that ends before its format says that it does."""


_HINT = "copy or write the file again"


def codec_of(path: str) -> Codec | None:
    """The compression that the name of a file stands for, as Arrow calls it; None for a plain file."""
    lowered = path.lower()
    return next((codec for suffix, codec in _CODECS.items() if lowered.endswith(suffix)), None)


def pieces(store: Store, file: FileInfo | str, *, piece_bytes: int) -> Generator[bytes, None, None]:
    """Yield the (decompressed) content of a file in order, `piece_bytes` at a time.

    Reading and decompression release the GIL. Of a compressed stream that ends early, the piece in which
    it ends is lost.

    Raises:
        Truncated: the compressed stream ends early, or is empty.
        DataError: the stream is not of the compression that the name stands for, or is damaged.
        ConnectorError: the store cannot be read.
    """
    path = file if isinstance(file, str) else file.path
    codec = codec_of(path)
    done = 0
    with store.open(file) as source:
        if codec and not source.size():
            raise Truncated(f"the {codec} stream is empty.", file=path, offset=0, hint=_HINT)
        stream = pa.CompressedInputStream(source, codec) if codec else source
        while True:
            try:
                piece = stream.read(piece_bytes)
            except DataflowError:
                raise
            except OSError as error:
                raise _explained(error, path, codec, done) from error
            if not piece:
                return
            done += len(piece)
            yield piece


def _explained(error: OSError, path: str, codec: str | None, done: int) -> DataError | ConnectorError:
    # Arrow raises a plain OSError without errno for what the decompressor says; a store's error has one.
    if codec is None or error.errno is not None or type(error) is not OSError:
        return ConnectorError(f"{path} cannot be read behind {counted(done, 'byte')}: {error}")
    if "Truncated" in str(error):
        return Truncated(
            # How far it goes is not known: of the piece in which it ends nothing is had.
            f"the {codec} stream ends early.",
            file=path,
            hint=_HINT,
        )
    return DataError(
        f"the {codec} stream is damaged or not {codec}: {error}",
        file=path,
        hint="a name that ends in .gz or .zst must be a compressed file; copy or write it again",
    )
