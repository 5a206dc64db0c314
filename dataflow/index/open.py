"""`open_index`: load the cached index of a URL, or bring it up to date."""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from connectors.contract import Chooses, Connector, Json
from connectors.credentials import is_credential
from connectors.file_info import NO_FILE
from connectors.paths import Listing, Url, resolve
from connectors.registry import choose
from dataflow.errors import ConnectorError
from dataflow.index.cache import Place, cache_folder, key_of
from dataflow.index.cached import CachedIndex
from dataflow.index.index import Index
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
    must_keep: bool = False,
) -> Index:
    """Load the index of these files from `index=` or the user's cache, or scan what is new in them.

    `url` and `storage_options` are as in `connectors.paths.resolve`. `index` is a URL: of a file if it ends
    in `.arrow`, else of a folder that can hold the indexes of many sources. A cached index is used if it has
    the same files with the same sizes and times (or etags); else only files that differ are scanned, by one
    process of this node, and it is written again. A cache that is damaged or cannot be written never stops
    a run: the log has a warning. With `must_keep` it is an error that nothing can be written at `index`.

    Raises:
        PlanError: the argument is empty or mixes stores, or the format is unknown or not clear.
        ConnectorError: nothing is found, the store cannot be read, or the index cannot be kept where it must be.
        DataError: a file is wrong, or the files' columns do not fit each other.
        MissingExtraError: the scheme needs a library that is not installed.
    """
    options = dict(storage_options or {})
    name = name or name_of(url)
    connector, listing = _chosen(url, format, options, name)
    key = _key(url, connector, listing, options)
    cached = CachedIndex(name, connector, listing, _places(url, key, index, options), must_keep=must_keep)

    def build() -> Index:
        return cached.build(Progress(f"Indexing {name}", advice=_advice(url), bar=progress))

    return made_once(key, f"the index of {name}", cached.find, build)


def name_of(url: Url | Sequence[Url]) -> str:
    """The name of a source that has none: the last part of its (first) URL that is no pattern or suffix."""
    first = url if isinstance(url, str | os.PathLike) else url[0]
    path = os.fspath(first).rpartition("://")[2]
    for part in reversed(path.split("/")):
        stem = re.split(r"[*?\[{]", part)[0].split(".")[0].strip("-_")
        if stem:
            return stem
    return "source"


def _chosen(
    url: Url | Sequence[Url], format: str | Connector | None, options: dict[str, Json], name: str
) -> tuple[Connector, Listing]:
    """Who reads the files of a URL, and which of them."""
    listing = resolve(url, options)
    connector = choose(format, listing.files, listing.named)
    if format is None:
        listing = _of_suffix(connector, listing, name)
    listing = _taken(connector, listing)
    _refuse_no_files(listing)
    return connector, listing


def _places(
    url: Url | Sequence[Url], key: str, index: str | Path | None, options: dict[str, Json]
) -> list[Place]:
    """Where the index may lie, the place that was asked for first."""
    places = [Place.local(cache_folder() / "index" / f"{key}.arrow")]
    if index is not None:
        places.insert(0, Place.at(index, key, options if _same_scheme(url, index) else {}))
    return places


def _of_suffix(connector: Connector, listing: Listing, name: str) -> Listing:
    """The listing without the files, as a README, that have not the suffix by which the connector was chosen."""
    taken = tuple(info for info in listing.files if info.path.lower().endswith(connector.suffixes))
    left = len(listing.files) - len(taken)
    if left:
        first = next(
            info.path for info in listing.files if not info.path.lower().endswith(connector.suffixes)
        )
        _say_left_out(name, left, first)
    return replace(listing, files=taken)


def _refuse_no_files(listing: Listing) -> None:
    """What is to be read are files: reading a pipe would wait for ever.

    Raises:
        ConnectorError: something else lies under the name of one.
    """
    for info in listing.files:
        if info.size == NO_FILE:
            what = "a link that leads nowhere" if os.path.islink(info.path) else "no regular file"  # noqa: PTH114
            raise ConnectorError(
                f"{info.path} is {what}.", hint="remove it, or read the others by a pattern or a list"
            )


@lru_cache(maxsize=1024)
def _say_left_out(name: str, left: int, first: str) -> None:
    """Said once in a process of the same files, however many loaders read them."""
    logger.warning(
        "%s: %s left out, as %s; a pattern or format= says which files to read",
        name,
        counted(left, "file of no known format is", "files of no known format are"),
        first,
    )


def _taken(connector: Connector, listing: Listing) -> Listing:
    """The listing without the files that the connector does not take, so that those never move a row."""
    if not isinstance(connector, Chooses):
        return listing
    taken = tuple(info for info in listing.files if connector.takes(info.path))
    # Where nothing is left the connector's own error says what it looked for.
    return replace(listing, files=taken) if taken else listing


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
