"""The quarantine: one JSON line for every bad row that was replaced or left out, or that ended the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import FileIO

from connectors.contract import Json
from dataflow.errors import ConnectorError, DataError
from dataflow.execute.row_names import FindPlace, place_finder
from dataflow.graph.block import BadSample
from dataflow.index.index import Index
from dataflow.options import ErrorPolicy
from dataflow.wording import counted, text_of

__all__ = ["Quarantine", "too_many"]


def too_many(errors: int, max_errors: int, last: BadSample, place: FindPlace) -> DataError:
    """The error of a run that has had one bad row more than `max_errors`: `last`, whose own error is the cause."""
    file, row = place(last.id)
    error = DataError(
        f"{counted(errors, 'bad row')}, and max_errors={max_errors}. The last: {text_of(last.error)}",
        file=file, row=row, hint="mend the data, or allow more with max_errors=",
    )  # fmt: skip
    error.__cause__ = last.error
    return error


class Quarantine:
    """Counts the bad rows of one rank, writes them down, and ends the run where there are too many.

    Lines are appended to the file, which other runs and other ranks may have filled before.

    Args:
        indexes: the sources by number.
        errors: those counted before, from a state.
    """

    def __init__(self, policy: ErrorPolicy, indexes: Mapping[int, Index], errors: int = 0) -> None:
        self._policy, self.errors = policy, errors
        self._indexes, self._place = indexes, place_finder(indexes)
        self._file: FileIO | None = None

    def check(self, rows: Sequence[BadSample]) -> None:
        """Refuse a batch for which too many rows were replaced or left out; they are written down up to the last straw.

        Raises:
            DataError: one of them is one more than `max_errors`; its own error is the cause.
            ConnectorError: they cannot be written down.
        """
        most = self._policy.max_errors
        if most is None or not rows or self.errors + len(rows) <= most:
            return
        borne = max(0, most - self.errors)
        for bad in rows[: borne + 1]:
            self._note(bad)
        raise too_many(self.errors + borne + 1, most, rows[borne], self._place)

    def add(self, rows: Sequence[BadSample]) -> None:
        """Write down and count the rows that were replaced or left out for a batch that is delivered.

        Raises:
            ConnectorError: one cannot be written down.
        """
        for bad in rows:
            self._note(bad)
        self.errors += len(rows)

    def _note(self, bad: BadSample) -> None:
        try:
            self._write(bad)
        except OSError as problem:
            raise ConnectorError(
                f"a bad row could not be written to quarantine={str(self._policy.quarantine)!r}: "
                f"{problem.strerror}. It is: {text_of(bad.error)}",
                hint="make room or rights there, and go on from the last state",
            ) from problem

    def add_last(self, rows: Sequence[BadSample]) -> None:
        """Write down the rows that the end of a run leaves behind, and close the file.

        Nothing is raised, so that what ended the run is what the user sees: a row's error gets a note where writing
        fails.
        """
        for bad in rows:
            try:
                self._write(bad)
            except OSError as problem:
                bad.error.add_note(f"and it could not be written to {self._policy.quarantine}: {problem}")
        if rows:
            with suppress(OSError):
                self.close()

    def _write(self, bad: BadSample) -> None:
        if self._policy.quarantine is None:
            return
        if self._file is None:
            self._file = self._policy.quarantine.open("ab", buffering=0)
        line = f"{json.dumps(self._line(bad))}\n".encode()
        # Without a buffer a line is one write at the end of the file, which no other rank's comes into. A disk that is
        # full takes a part of it, and says so at the rest.
        while line:
            line = line[self._file.write(line) :]

    def _line(self, bad: BadSample) -> dict[str, Json]:
        file, row = self._place(bad.id)
        line: dict[str, Json] = {
            "source": self._indexes[bad.id >> 40].name, "file": file, "row": row, "id": bad.id,
            "operator": bad.operator, "error": f"{type(bad.error).__name__}: {text_of(bad.error)}",
        }  # fmt: skip
        # A batched function that failed has not said for which row: this is the first of those it was given.
        return line if bad.among == 1 else {**line, "among": bad.among}

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._file is not None:
            self._file.close()
            self._file = None
