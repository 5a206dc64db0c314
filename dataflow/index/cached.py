"""`CachedIndex`: the index of a listing in the places where it may lie: found there, or built and put there."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from connectors.contract import Connector
from connectors.paths import Listing
from dataflow.errors import ConnectorError
from dataflow.index.build import build_index
from dataflow.index.cache import Place
from dataflow.index.changes import is_current
from dataflow.index.codec import BrokenFile, decode_index, encode_files, encode_index
from dataflow.index.index import FileTable, Index
from dataflow.index.progress import Progress

__all__ = ["CachedIndex"]

logger = logging.getLogger("dataflow.index")


class CachedIndex:
    """The index of a listing; used by one thread.

    Args:
        places: where it may lie, in the order in which they are asked. What is built goes into the first that can be
            written, and what is found in another one into the first.
        must_keep: that the first place cannot be written is a ConnectorError.
    """

    def __init__(
        self,
        name: str,
        connector: Connector,
        listing: Listing,
        places: Sequence[Place],
        *,
        must_keep: bool = False,
    ) -> None:
        self._name, self._connector, self._listing, self._places = name, connector, listing, places
        self._must_keep = must_keep
        self._files = FileTable.of(listing.root, listing.files)
        self._older: Index | None = None

    def find(self) -> Index | None:
        """The index as it lies in a place, if it is of these files; else the first one found is kept for `build`."""
        self._older = None
        for place in self._places:
            found = self._load(place)
            if found is None:
                continue
            current = self._current(found)
            if current is not None:
                if place is not self._places[0]:
                    self._save(self._places[0], current)
                return current
            if self._older is None:
                self._older = found
        return None

    def build(self, progress: Progress) -> Index:
        """Scan the files that differ from the ones that `find` last found, and put the index into a place.

        Raises:
            ConnectorError, DataError: as `build_index`; or the index cannot be kept where it must be.
        """
        made = build_index(
            self._connector,
            self._listing,
            name=self._name,
            persistent=True,
            old=self._older,
            progress=progress,
        )
        for place in self._places:
            if self._save(place, made):
                # The mapped one costs no memory of its own, and is shared between processes. Another node may have
                # put its own there meanwhile, of other files or at another root.
                kept = self._load(place)
                return (None if kept is None else self._current(kept)) or made
        return made

    def _current(self, found: Index) -> Index | None:
        """The index where these files are, or None if it is of other ones."""
        files = self._files
        # What a scan of a whole listing found may hold full paths; it is cheap, so it is done again.
        moved = found.root != files.root and self._connector.traits.scans == "listing"
        if moved or not is_current(found.files, files):
            return None
        return replace(found, files=replace(found.files, root=files.root, mtime=files.mtime))

    def _load(self, place: Place) -> Index | None:
        buffer = place.read()
        if buffer is None:
            return None
        try:
            return decode_index(buffer, name=self._name, connector=self._connector, store=self._listing.store)
        except BrokenFile as error:
            logger.info("%s is built again: %s", place.path, error)
            return None

    def _save(self, place: Place, index: Index) -> bool:
        # The file table first: an index that can be loaded can then be found by its hash too.
        files = (
            (place.by_hash(index.hash), encode_files(index.files, index.hash)),
            (place, encode_index(index)),
        )
        try:
            for where, batch in files:
                where.put(batch)
        except ConnectorError as error:
            if self._must_keep and place is self._places[0]:
                raise
            logger.warning("%s", error.message)
            return False
        return True
