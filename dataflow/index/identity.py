"""What a saved state keeps of a source, and how a resume fits the source to it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from connectors.contract import Json
from dataflow.errors import DataError, PlanError
from dataflow.index.changes import Bools, places_in, same_content
from dataflow.index.index import FileTable, Index, Int64s
from dataflow.index.subset import appended, restrict
from dataflow.wording import counted

__all__ = ["Identity", "Resumed", "compare", "identity"]

logger = logging.getLogger("dataflow.index")

_MOST_NAMES = 10


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a state keeps of a source: `hash` is that of its content, `number` that of its rows' ids."""

    name: str
    number: int
    hash: str
    rows: int
    files: int

    def fields(self) -> dict[str, Json]:
        """As it stands in a state, about 100 bytes of JSON."""
        return dict(vars(self))


class Resumed(NamedTuple):
    """A source at a resume: `now` in the epoch that was begun, `later` in the next ones."""

    now: Index
    later: Index


def identity(index: Index, number: int) -> Identity:
    """What a state keeps of source `number`."""
    return Identity(name=index.name, number=number, hash=index.hash, rows=index.rows, files=len(index.files))


def compare(
    saved: Identity,
    index: Index,
    lookup: Callable[[str], FileTable | None],
    *,
    new_files: bool = False,
) -> Resumed:
    """Fit a source to the one that `saved` is the identity of.

    `lookup` gives the file table of a hash, as `find_files`. New files are left out with a warning; with
    `new_files` they join `later`, behind the old ones. Whoever saves states of `later` calls
    `keep_files(later)` before, so that the next resume finds it.

    Raises:
        DataError: files are gone or changed; names them.
        PlanError: the source differs and its old index cannot be found, or was cut into other fragments.
    """
    if saved.hash == index.hash:
        return Resumed(index, index)
    old = lookup(saved.hash)
    if old is None:
        raise _not_found(saved, index)
    places = places_in(index.files, old)
    _refuse_lost(index, old, places)
    now = restrict(index, old)
    if now.hash != saved.hash:
        raise PlanError(
            f"source {index.name!r} has the same files, but they are cut into other fragments than saved.",
            hint="use the format options and the version of the run that saved the state",
        )
    new = np.setdiff1d(np.arange(len(index.files)), places)
    if len(new) and new_files:
        return Resumed(now, appended(index, old))
    if len(new):
        _say_left_out(index, new)
    return Resumed(now, now)


def _not_found(saved: Identity, index: Index) -> PlanError:
    return PlanError(
        f"source {index.name!r} is not as it was saved: {counted(saved.files, 'file')} with "
        f"{counted(saved.rows, 'row')} then, {len(index.files):,} with {index.rows:,} now, and its old index "
        f"{saved.hash} is not found.",
        hint="pass index= with the place where the run that saved the state kept its index",
    )


def _say_left_out(index: Index, new: Int64s) -> None:
    logger.warning(
        "source %r has %s left out: %s; new_files=True lets them join at the next epoch",
        index.name,
        counted(len(new), "new file, which is", "new files, which are"),
        _names(index.files, new),
    )


def _refuse_lost(index: Index, old: FileTable, places: Int64s) -> None:
    there = places >= 0
    gone = np.flatnonzero(~there)
    changed = np.flatnonzero(there & ~_same(index, old, places))
    parts = []
    if len(gone):
        parts.append(f"{counted(len(gone), 'file is', 'files are')} gone: {_names(old, gone)}")
    if len(changed):
        parts.append(f"{counted(len(changed), 'file has', 'files have')} changed: {_names(old, changed)}")
    if parts:
        raise DataError(
            f"source {index.name!r} is not as it was saved: {'; '.join(parts)}.",
            hint="put the files back as they were, or start anew without the state",
        )


def _same(index: Index, old: FileTable, places: Int64s) -> Bools:
    same = same_content(old, index.files, places)
    if index.connector.traits.scans == "file":
        same &= old.rows == index.files.rows[places]
    return same


def _names(files: FileTable, numbers: Int64s) -> str:
    names = [files.name(int(n)) for n in numbers[:_MOST_NAMES]]
    return ", ".join(names) + (", ..." if len(numbers) > _MOST_NAMES else "")
