"""`choose`: a name or the suffixes of the files become a connector.

Connectors are named here, not imported: a format's module is loaded when it is first chosen. Packages add
formats under the entry point group `dataflow.connectors`, each entry a callable that returns a `Connector`.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import PurePosixPath
from typing import NamedTuple

from connectors.contract import Connector, FileInfo
from dataflow.errors import MissingExtraError, PlanError, near

__all__ = ["BUILT_IN", "GROUP", "Format", "check_format", "check_suffixes", "choose", "names"]

GROUP = "dataflow.connectors"
# Of more suffixes that no format has the first are shown.
_MOST_SUFFIXES = 5


class Format(NamedTuple):
    """Where a connector's class is, and the file suffixes that choose it."""

    place: str
    suffixes: tuple[str, ...]


BUILT_IN = {
    "parquet": Format("connectors.parquet:Parquet", (".parquet", ".pq")),
    "arrow": Format("connectors.arrow_ipc:ArrowIpc", (".feather", ".arrows", ".arrow", ".ipc")),
    "tar": Format("connectors.tar:Tar", (".tar.gz", ".tar", ".tgz")),
    "jsonl": Format("connectors.jsonl:Jsonl", (".ndjson.gz", ".jsonl.gz", ".json.gz", ".ndjson", ".jsonl")),
    "folder": Format(
        "connectors.folder:Folder", (".jpeg", ".webp", ".tiff", ".jpg", ".png", ".bmp", ".gif", ".tif")
    ),
}


def check_format(format: str | Connector | None) -> None:
    """Refuse a `format=` that `choose` would refuse whatever the files; no connector is loaded.

    Raises:
        PlanError: the name is unknown, or it is a class or no connector.
    """
    if isinstance(format, type):
        raise PlanError(
            f"format={format.__name__} is a class.", hint=f"give an instance: {format.__name__}()"
        )
    if format is not None and not isinstance(format, str | Connector):
        raise PlanError(
            f"format={format!r} is no format.", hint=f"give a connector or a name: {', '.join(names())}"
        )
    if isinstance(format, str) and format not in BUILT_IN and format not in names():
        raise PlanError(f"format={format!r} is unknown.", hint=near(format, names(), what="format"))


def choose(
    format: str | Connector | None, files: Sequence[FileInfo], named: Collection[str] = ()
) -> Connector:
    """Return the connector of a name, or the one that the suffixes of the files choose.

    A connector is returned as it is. Files of a suffix that no format has choose nothing: they are left out where
    others choose one, unless their paths are among those that were asked for by name.

    Raises:
        PlanError: the name is unknown, the files are of no or of several formats, one that was asked for by name
            has an unknown suffix, or a package's connector cannot be loaded.
        MissingExtraError: the connector needs a library that is not installed.
    """
    check_format(format)
    if isinstance(format, str):
        return _by_name(format)
    return _by_name(_format_of(files, named)) if format is None else format


def check_suffixes(paths: Sequence[str]) -> None:
    """These files, asked for by name, are of one format that their suffixes tell.

    Raises:
        PlanError: they are not.
    """
    if paths:
        _format_of([FileInfo(path, 0) for path in paths], paths)


def _known_suffixes(*, packages: bool = False) -> dict[str, str]:
    """The format of each suffix; those of `packages` only where they are asked for: loading them takes time."""
    known = {suffix: name for name, format in BUILT_IN.items() for suffix in format.suffixes}
    for entry in entry_points(group=GROUP) if packages else ():
        if entry.name not in BUILT_IN:
            known |= dict.fromkeys(_from_package(entry).suffixes, entry.name)
    return known


def names() -> list[str]:
    """Every name that `choose` knows, those of installed packages included."""
    return sorted({*BUILT_IN, *(entry.name for entry in entry_points(group=GROUP))})


def _by_name(name: str) -> Connector:
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].place.partition(":")
        make: Callable[[], Connector] = getattr(importlib.import_module(module), attribute)
        return make()
    return _from_package(next(iter(entry_points(group=GROUP, name=name))))


def _format_of(files: Sequence[FileInfo], named: Collection[str]) -> str:
    """The name of the format that the suffixes of the files tell."""
    by_suffix = _known_suffixes()
    found, strange = _count(files, by_suffix)
    if strange:
        by_suffix = _known_suffixes(packages=True)
        found, strange = _count(files, by_suffix)
    if not found and not strange:
        raise PlanError("there is no file to tell the format from.", hint="give format=")
    if not found:
        raise PlanError(_unknown(strange), hint=_formats(by_suffix))
    if len(found) > 1 or not frozenset(named).isdisjoint(strange):
        kinds = [f"{count} {name}" for name, count in found.most_common()]
        if strange:
            kinds.append(f"{len(strange)} of no known format, as {strange[0]}")
        raise PlanError(
            f"the files do not have one format: {', '.join(kinds)}.",
            hint="read those of one format by a pattern as *.parquet, or say with format= what all of them are: "
            + ", ".join(names()),
        )
    return next(iter(found))


def _unknown(paths: Sequence[str]) -> str:
    """That no format has the suffixes of these files."""
    suffixes = dict.fromkeys(PurePosixPath(path).suffix for path in paths)
    said = ", ".join(suffix or "none at all" for suffix in list(suffixes)[:_MOST_SUFFIXES])
    whose = "the suffix of" if len(paths) == 1 else f"the suffixes of {len(paths):,} files, as"
    return f"no format is known for {whose} {paths[0]}: {said}."


def _formats(by_suffix: Mapping[str, str]) -> str:
    """What can be read, and how to say that files of another suffix are of it."""
    suffixes = {kind: " ".join(s for s, known in by_suffix.items() if known == kind) for kind in names()}
    kinds = [f"{kind} ({its})" if its else kind for kind, its in suffixes.items()]
    return f"formats are {', '.join(kinds)}; say format= where a file is one of them by another suffix"


def _count(files: Sequence[FileInfo], by_suffix: dict[str, str]) -> tuple[Counter[str], list[str]]:
    """How many files each format has, and the paths of no known suffix."""
    found: Counter[str] = Counter()
    strange = []
    deepest = max(suffix.count(".") for suffix in by_suffix)
    for info in files:
        parts = info.path.lower().rpartition("/")[2].split(".")
        endings = ("." + ".".join(parts[-k:]) for k in range(min(deepest, len(parts) - 1), 0, -1))
        name = next((by_suffix[ending] for ending in endings if ending in by_suffix), None)
        if name is None:
            strange.append(info.path)
        else:
            found[name] += 1
    return found, strange


def _from_package(entry: EntryPoint) -> Connector:
    package = entry.dist.name if entry.dist else "a package"
    try:
        made = entry.load()()
    except MissingExtraError:
        raise
    except Exception as error:
        # Whatever a package does at import, the user needs to hear which one it was.
        raise PlanError(
            f"the connector {entry.name!r} of {package} cannot be loaded: {error}",
            hint=f"update or uninstall {package}",
        ) from error
    if not isinstance(made, Connector):
        raise PlanError(
            f"the connector {entry.name!r} of {package} is no Connector: {made!r}.",
            hint="it must have what connectors.contract.Connector lists",
        )
    return made
