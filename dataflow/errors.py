"""Every exception that Dataflow raises, by whose fault it is.

    DataflowError
    ├── PlanError          the pipeline, an argument or a state is wrong         (also a ValueError)
    ├── DataError          a file or a row is wrong: names file and row or offset
    ├── StageError         a user's function failed: names operator, row and line; the original is the cause
    ├── ConnectorError     a store or file cannot be reached                      (also an OSError)
    ├── MissingExtraError  an optional library is not installed: has the pip line (also an ImportError)
    ├── LoaderClosed       a closed loader was asked for a batch
    ├── RankError          another rank failed, or ranks disagree: names the rank
    └── InternalError      a fault of Dataflow itself: please report it

A message says what is wrong and the value; `hint` says one thing to do about it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "ConnectorError",
    "DataError",
    "DataflowError",
    "InternalError",
    "LoaderClosed",
    "MissingExtraError",
    "PlanError",
    "RankError",
    "StageError",
    "near",
]


class DataflowError(Exception):
    """The root of all errors of Dataflow; `hint` is one action that helps, or empty."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default reduce; the instance's dict carries them.
        return (_rebuild, (type(self), self.message), self.__dict__)


def _rebuild(kind: type[DataflowError], message: str) -> DataflowError:
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    return error


class PlanError(DataflowError, ValueError):
    """The pipeline, an argument or a state cannot be used as given."""


class DataError(DataflowError):
    """A file or a row of the data is wrong: `file` and `row` (or `offset` in bytes) say where.

    Where neither is known, `sample` may be the id of the row, for whoever knows the files to `locate` it.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str = "",
        row: int | None = None,
        offset: int | None = None,
        sample: int | None = None,
        hint: str = "",
    ) -> None:
        where = file + (f", row {row}" if row is not None else "")
        where += f", byte {offset}" if offset is not None else ""
        super().__init__(f"{where}: {message}" if where else message, hint=hint)
        self.file, self.row, self.offset, self.sample = file, row, offset, sample

    def locate(self, file: str, row: int) -> None:
        """Say where the row is, of an error that was raised where that is not known."""
        self.message = f"{file}, row {row}: {self.message}"
        self.file, self.row = file, row


class StageError(DataflowError):
    """A user's function failed in `operator`; the original exception is `__cause__`."""

    def __init__(self, message: str, *, operator: str, location: str = "", hint: str = "") -> None:
        at = f" ({location})" if location else ""
        super().__init__(f"{operator}{at}: {message}", hint=hint)
        self.operator, self.location = operator, location


class ConnectorError(DataflowError, OSError):
    """A store or a file cannot be reached: missing, forbidden, or the connection failed."""


class MissingExtraError(DataflowError, ImportError):
    """An optional library is not installed."""

    def __init__(self, message: str, *, extra: str) -> None:
        super().__init__(message, hint=f"pip install 'dataflow-engine[{extra}]'")
        self.extra = extra


class LoaderClosed(DataflowError, RuntimeError):
    """A batch was asked of a loader after `close()`."""


class RankError(DataflowError, RuntimeError):
    """Another rank failed, or the ranks do not agree."""


class InternalError(DataflowError, RuntimeError):
    """A fault of Dataflow itself."""


def near(name: str, known: Iterable[str], *, what: str = "name", most: int = 20) -> str:
    """A hint that lists the known names most like `name`, or else the first `most` of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(repr(c) for c in close)}?"
    if not names:
        return f"there is no {what} to choose from"
    shown = ", ".join(repr(n) for n in names[:most]) + (", ..." if len(names) > most else "")
    return f"known: {shown}"
