"""`open_index`: load the cached index of a URL, or bring it up to date."""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from connectors.contract import Chooses, Connector, Json
from connectors.credentials import is_credential
from connectors.paths import Listing, Url, resolve
from connectors.registry import choose
from dataflow.index.build import build_index
from dataflow.index.cache import Place, cache_folder, key_of
from dataflow.index.changes import is_current
from dataflow.index.codec import BrokenFile, decode_index, encode_files, encode_index
from dataflow.index.index import FileTable, Index
from dataflow.index.once import made_once
from dataflow.index.progress import Progress
from dataflow.wording import counted

__all__ = ["name_of", "open_index"]

logger = logging.getLogger("dataflow.index")


def open_index(
    url: Url | Sequence[Url],
    *,
    format: str | Connector | None = None,
    storage_options: Mapping[str, Json] | None = None,
    index: str | Path | None = None,
    name: str | None = None,
    progress: bool = True,
) -> Index:
    """Load the index of these files from `index=` or the user's cache, or scan what is new in them.

    `url` and `storage_options` are as in `connectors.paths.resolve`. `index` is a URL: of a file if it ends
    in `.arrow`, else of a folder that can hold the indexes of many sources. A cached index is used if it has
    the same files with the same sizes and times (or etags); else only files that differ are scanned, by one
    process of this node, and it is written again. A cache that is damaged or cannot be written never stops
    a run: the log has a warning.

    Raises:
        PlanError: the argument is empty or mixes stores, or the format is unknown or not clear.
        ConnectorError: nothing is found, or the store cannot be read.
        DataError: a file is wrong, or the files' columns do not fit each other.
        MissingExtraError: the scheme needs a library that is not installed.
    """
    options = dict(storage_options or {})
    listing = resolve(url, options)
    name = name or name_of(url)
    connector = choose(format, listing.files, listing.named)
    if format is None:
        listing = _of_suffix(connector, listing, name)
    listing = _taken(connector, listing)
    files = FileTable.of(listing.root, listing.files)
    key = _key(url, connector, listing, options)
    places = [Place.local(cache_folder() / "index" / f"{key}.arrow")]
    if index is not None:
        places.insert(0, Place.at(index, key, options if _same_scheme(url, index) else {}))
    older: list[Index] = []

    def current(found: Index) -> Index | None:
        """The index where these files are, or None if it is of other ones."""
        # What a scan of a whole listing found may hold full paths; it is cheap, so it is done again.
        moved = found.root != files.root and connector.traits.scans == "listing"
        if moved or not is_current(found.files, files):
            return None
        return replace(found, files=replace(found.files, root=files.root, mtime=files.mtime))

    def find() -> Index | None:
        older.clear()
        for place in places:
            found = _load(place, name, connector, listing)
            if found is None:
                continue
            known = current(found)
            if known is not None:
                if place is not places[0]:
                    _save(places[0], known)
                return known
            older.append(found)
        return None

    def make() -> Index:
        shown = Progress(f"Indexing {name}", advice=_advice(url), bar=progress)
        made = build_index(
            connector,
            listing,
            name=name,
            persistent=True,
            old=older[0] if older else None,
            progress=shown,
        )
        for place in places:
            if _save(place, made):
                # The mapped one costs no memory of its own, and is shared between processes. Another node may have
                # put its own there meanwhile, of other files or at another root.
                kept = _load(place, name, connector, listing)
                return (None if kept is None else current(kept)) or made
        return made

    return made_once(key, f"the index of {name}", find, make)


def name_of(url: Url | Sequence[Url]) -> str:
    """The name of a source that has none: the last part of its (first) URL that is no pattern or suffix."""
    first = url if isinstance(url, str | os.PathLike) else url[0]
    path = os.fspath(first).rpartition("://")[2]
    for part in reversed(path.split("/")):
        stem = re.split(r"[*?\[{]", part)[0].split(".")[0].strip("-_")
        if stem:
            return stem
    return "source"


def _of_suffix(connector: Connector, listing: Listing, name: str) -> Listing:
    """The listing without the files, as a README, that have not the suffix by which the connector was chosen."""
    taken = tuple(info for info in listing.files if info.path.lower().endswith(connector.suffixes))
    left = len(listing.files) - len(taken)
    if left:
        first = next(
            info.path for info in listing.files if not info.path.lower().endswith(connector.suffixes)
        )
        logger.warning(
            "%s: %s left out, as %s; a pattern or format= says which files to read",
            name,
            counted(left, "file of no known format is", "files of no known format are"),
            first,
        )
    return replace(listing, files=taken)


def _taken(connector: Connector, listing: Listing) -> Listing:
    """The listing without the files that the connector does not take, so that those never move a row."""
    if not isinstance(connector, Chooses):
        return listing
    taken = tuple(info for info in listing.files if connector.takes(info.path))
    # Where nothing is left the connector's own error says what it looked for.
    return replace(listing, files=taken) if taken else listing


def _load(place: Place, name: str, connector: Connector, listing: Listing) -> Index | None:
    buffer = place.read()
    if buffer is None:
        return None
    try:
        return decode_index(buffer, name=name, connector=connector, store=listing.store)
    except BrokenFile as error:
        logger.info("%s is built again: %s", place.path, error)
        return None


def _save(place: Place, index: Index) -> bool:
    # The file table first: an index that can be loaded can then be found by its hash too.
    by_hash = place.by_hash(index.hash)
    return by_hash.write(encode_files(index.files, index.hash)) and place.write(encode_index(index))


def _key(url: Url | Sequence[Url], connector: Connector, listing: Listing, options: dict[str, Json]) -> str:
    urls = [url] if isinstance(url, str | os.PathLike) else list(url)
    return key_of(
        [os.fspath(u) for u in urls],
        listing.root,
        str(listing.store.fs.protocol),
        _without_secrets(options),
        repr(connector),
    )


def _without_secrets(options: Json) -> Json:
    """Options that say which store it is; credentials change without the data changing."""
    if isinstance(options, dict):
        return {k: _without_secrets(v) for k, v in options.items() if not is_credential(k)}
    return options if options is None or isinstance(options, bool | int | float | str) else repr(options)


def _same_scheme(url: Url | Sequence[Url], index: str | Path) -> bool:
    first = url if isinstance(url, str | os.PathLike) else url[0]
    return os.fspath(first).partition("://")[0] == os.fspath(index).partition("://")[0]


def _advice(url: Url | Sequence[Url]) -> str:
    urls = [url] if isinstance(url, str | os.PathLike) else list(url)
    shown = shlex.join(map(str, urls[:3])) + (" ..." if len(urls) > 3 else "")
    return f"Do it beforehand with: dataflow index {shown} --out INDEX, then read(..., index=INDEX)"
