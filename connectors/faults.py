"""Errors of files: what Arrow raises while it reads one, as our own, and that one is not what its index says."""

from __future__ import annotations

from types import TracebackType

import pyarrow as pa

from dataflow.errors import ConnectorError, DataError, DataflowError

__all__ = ["changed", "damaged", "reading"]


class reading:  # noqa: N801 - it is used as `with reading(...)`
    """Turn the exceptions of Arrow and of a store while `path` is read as `what` ("Parquet") into our own.

    Raises:
        DataError: the content is wrong.
        ConnectorError: the store failed.
    """

    __slots__ = ("_path", "_what")

    def __init__(self, path: str, what: str) -> None:
        self._path, self._what = path, what

    def __enter__(self) -> None:
        """Nothing is to be done yet."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, DataflowError):
            return
        if isinstance(error, (pa.ArrowException, UnicodeDecodeError)):
            raise damaged(self._path, self._what, error) from error
        if not isinstance(error, OSError):
            return
        # Arrow has OSError for damaged content too; only one from the system has a number.
        if error.errno is None and type(error) is OSError:
            raise damaged(self._path, self._what, error) from error
        raise ConnectorError(
            f"{self._path} cannot be read: {error}",
            hint="check that the file is still there and the connection",
        ) from error


def damaged(path: str, what: str, error: Exception, kind: type[DataError] = DataError) -> DataError:
    """The error of a file that is wrong as `what` ("Parquet"), as `error` says."""
    return kind(
        f"it cannot be read as {what}: {error}", file=path, hint="write the file again, or leave it out"
    )


def changed(path: str, what: str) -> DataError:
    """The error of a file that is not as it was indexed; `what` shows it, as "it had 5 bytes and has 7"."""
    return DataError(
        f"it has changed since it was indexed: {what}.",
        file=path,
        hint="begin anew with flow.read(...), which looks at the files as they are now",
    )
