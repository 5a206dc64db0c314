"""Bad rows with which a run ends: the first of them that is due is its error."""

from __future__ import annotations

from dataflow.execute.row_names import FindPlace, located
from dataflow.graph.block import BadSample

__all__ = ["LastBad"]


class LastBad:
    """The bad rows that nothing bears, until the run has ended with one.

    Args:
        place: gives the file and the row in it of a sample id.
    """

    def __init__(self, place: FindPlace) -> None:
        self.place = place
        self._rows: list[BadSample] = []

    def ends_with(self, bad: BadSample) -> Exception:
        """The error of a bad row that ends the run when it is due; a note says in which file and row it is."""
        self._rows.append(bad)
        return located(bad, self.place)

    def ended_by(self, error: BaseException) -> list[BadSample]:
        """The bad row whose error that is, where it is that of one."""
        return [bad for bad in self._rows if bad.error is error][:1]

    def clear(self) -> None:
        """Forget them: their errors know the frames that they went through, and those the run."""
        self._rows.clear()
