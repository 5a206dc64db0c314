"""The quarantine: one JSON line for every bad row that was replaced or left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from dataflow.errors import DataError
from dataflow.execute.compile import NumberedSource
from dataflow.graph.block import BadSample
from dataflow.options import ErrorPolicy

__all__ = ["Quarantine", "place_finder"]

_ROW = (1 << 40) - 1


def place_finder(sources: Sequence[NumberedSource]) -> Callable[[int], tuple[str, int]]:
    """What gives the file (its name in the source) and the row in it of a sample id."""
    indexes = {source.number: source.index for source in sources}

    def place(sample_id: int) -> tuple[str, int]:
        index = indexes[sample_id >> 40]
        row = sample_id & _ROW
        fragment = int(np.searchsorted(index.starts, row, "right")) - 1
        file = index.fragment(fragment).file
        if index.connector.traits.scans == "listing":
            inside = row - int(index.starts[fragment])
            return index.files.name(min(file + inside, len(index.files) - 1)), 0
        first = int(index.starts[int(np.searchsorted(index.fragments.file, file, "left"))])
        return index.files.name(file), row - first

    return place


class Quarantine:
    """Counts the bad rows of one rank, writes them down, and ends the run where there are too many.

    Args:
        errors: those counted before, from a state.
    """

    def __init__(self, policy: ErrorPolicy, sources: Sequence[NumberedSource], errors: int = 0) -> None:
        self._policy, self.errors = policy, errors
        self._sources = {source.number: source for source in sources}
        self._place = place_finder(sources)
        self._file: TextIO | None = None

    def add(self, bad: BadSample) -> None:
        """Write down and count one row.

        Raises:
            DataError: it is one more than `max_errors`; its own error is the cause.
        """
        self.errors += 1
        file, row = self._place(bad.id)
        if self._policy.quarantine is not None:
            if self._file is None:
                self._policy.quarantine.parent.mkdir(parents=True, exist_ok=True)
                self._file = Path(self._policy.quarantine).open("a", encoding="utf-8")  # noqa: SIM115 - closed in close()
            line = {
                "source": self._sources[bad.id >> 40].index.name, "file": file, "row": row, "id": bad.id,
                "operator": bad.operator, "error": f"{type(bad.error).__name__}: {bad.error}",
            }  # fmt: skip
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
        if self._policy.max_errors is not None and self.errors > self._policy.max_errors:
            raise DataError(
                f"{self.errors} bad rows, and max_errors={self._policy.max_errors}. The last: {bad.error}",
                file=file, row=row, hint="mend the data, or allow more with max_errors=",
            ) from bad.error  # fmt: skip

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._file is not None:
            self._file.close()
            self._file = None
