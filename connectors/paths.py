"""`resolve`: a URL, a pattern, a folder or a list of them becomes a list of files; `refuse_missing`: some are there."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple, TypeAlias

import fsspec
from fsspec.implementations.local import LocalFileSystem

from connectors.contract import FileInfo, Json
from connectors.listing import LocalTree, RemoteTree, Tree, is_hidden
from connectors.store import Store
from dataflow.errors import ConnectorError, MissingExtraError, PlanError, near

__all__ = ["Listing", "Url", "place_of", "refuse_missing", "resolve"]

Url: TypeAlias = "str | os.PathLike[str]"

MAX_EXPANSIONS = 1_000_000
BRACE = re.compile(r"\{([^{}]*)\}")
RANGE = re.compile(r"(-?[0-9]+)\.\.(-?[0-9]+)")
WILDCARD = re.compile(r"[*?\[]")
DIGITS = re.compile("[0-9]+")
MAGIC = re.compile(r"[*?\[{]")


@dataclass(frozen=True)
class Listing:
    """Files of one store in reading order. `root` is the folder that their names are relative to.

    `named` are the paths that were asked for by name, not found in a folder or by a wildcard.
    """

    store: Store
    root: str
    files: tuple[FileInfo, ...]
    named: tuple[str, ...] = ()


def resolve(url: Url | Sequence[Url], storage_options: Mapping[str, Json] | None = None) -> Listing:
    """List the files that a URL, or a list of them, stands for.

    A URL is a local path or anything that fsspec opens. `{000..099}` and `{a,b}` stand for each of the
    names, which must all exist; `*`, `?`, `[abc]` and `**` (any number of folders) for those that exist. A
    folder, also one that a pattern finds, stands for all files below it. A path that exists as written is
    taken literally, whole or folder by folder, whatever characters it has (`::` in a URL with a scheme chains
    filesystems as fsspec does). Neither a folder nor a wildcard
    stands for names that begin with `.` or `_`, unless the pattern begins with that too.

    The files of one URL come in natural order (2 before 10), the URLs of a list in the order given. `root`
    is the folder that all URLs share, up to their first pattern: it does not move when files are added.

    Raises:
        PlanError: the argument is empty, names a file twice, or mixes stores; the scheme is unknown.
        ConnectorError: nothing is found, with the near matches; or the store cannot be reached.
        MissingExtraError: the scheme needs a library that is not installed.
    """
    urls = _listed(url)
    fs, paths = _open(urls, storage_options or {})
    local = isinstance(fs, LocalFileSystem)
    tree: Tree = LocalTree() if local else RemoteTree(fs, expected=paths)
    found = [_expand(tree, path) for path in paths]
    files = [info for each in found for info in each.files]
    _refuse_duplicates(files)
    named = tuple(path for each in found for path in each.named)
    return Listing(Store(fs), _common({each.root for each in found}), tuple(files), named)


def refuse_missing(url: Url | Sequence[Url]) -> list[str]:
    """Raise as `resolve` where a local URL stands for no file; other stores are not asked, for that takes time.

    Of a folder and of each pattern the first file is looked for, and none is opened. Gives the local files that are
    named as they are.

    Raises:
        PlanError: the argument is empty, or a scheme is unknown.
        ConnectorError: nothing is found, with the near matches.
    """
    tree = LocalTree()
    named = []
    for one in [os.fspath(each) for each in _listed(url)]:
        scheme = _scheme(one)
        if scheme not in ("", "file", "local"):
            _check_scheme(one, scheme)
            continue
        path = _local_path(LocalFileSystem._strip_protocol(one) if scheme else one)
        kind, plain = _existing(tree, path)
        if kind == "folder" and next(tree.walk(plain), None) is None:
            raise _no_files(plain)
        if kind is None:
            for _ in _matched(tree, *_literal_part(tree, plain)):
                pass  # that there is a first one is enough
        if kind == "file":
            named.append(plain)
    return named


def _listed(url: Url | Sequence[Url]) -> list[Url]:
    urls = [url] if isinstance(url, str | os.PathLike) else list(url)
    if not all(os.fspath(one) for one in urls) or not urls:
        raise PlanError(f"{url!r} names no file.", hint="give a path, a URL, a pattern, or a list of them")
    return urls


def _local_path(url: str) -> str:
    path = os.path.abspath(os.path.expanduser(url))  # noqa: PTH100, PTH111 -- ten times faster
    return path + ("/" if url.endswith("/") and path != "/" else "")


def _scheme(url: str) -> str:
    """The scheme of the store that a URL is in, the last of a chain; empty for a local path."""
    scheme, separator, _ = url.partition("://")
    return scheme.rpartition("::")[2] if separator else ""


def _check_scheme(url: str, scheme: str) -> None:
    known = {*fsspec.available_protocols(), *fsspec.registry}
    if scheme not in known:
        raise PlanError(
            f"{url} cannot be opened: there is no scheme {scheme!r}.", hint=near(scheme, known, what="scheme")
        )


def place_of(url: Url, options: Mapping[str, Json]) -> tuple[fsspec.AbstractFileSystem, str]:
    """The filesystem of one URL, and its path there, in which no character is a pattern.

    Raises:
        PlanError, MissingExtraError: as `resolve`.
    """
    fs, (path,) = _open([url], options)
    return fs, path


def _open(urls: Sequence[Url], options: Mapping[str, Json]) -> tuple[fsspec.AbstractFileSystem, list[str]]:
    """The one filesystem of all the URLs, and their paths in it."""
    local = LocalFileSystem(**options)
    fs, paths = None, []
    for url in [os.fspath(one) for one in urls]:
        if "://" not in url:
            # fsspec would take "::" in a name for a chain of filesystems.
            here, path = local, _local_path(url)
        else:
            here, path = _open_remote(url, options)
        if fs is not None and here != fs:
            raise PlanError(f"{url} is in another store than {urls[0]}.", hint="read them apart and concat")
        fs = here
        paths.append(path)
    return fs, paths


def _open_remote(url: str, options: Mapping[str, Json]) -> tuple[fsspec.AbstractFileSystem, str]:
    scheme = _scheme(url)
    _check_scheme(url, scheme)
    try:
        fs, path = fsspec.core.url_to_fs(url, **options)
    except ImportError as error:
        if scheme in ("s3", "s3a"):
            raise MissingExtraError(f"{url} needs s3fs.", extra="s3") from error
        raise PlanError(f"{url} needs a library that is not installed.", hint=str(error)) from error
    except ValueError as error:
        raise PlanError(
            f"{url} cannot be opened: {error}", hint="check the URL and storage_options="
        ) from error
    return fs, path + ("/" if url.endswith("/") and not path.endswith("/") else "")


class _Found(NamedTuple):
    """The folder that stands before every pattern of a path, the files in natural order, and those named outright."""

    root: str
    files: list[FileInfo]
    named: list[str]


def _expand(tree: Tree, path: str) -> _Found:
    kind, path = _existing(tree, path)
    if kind == "folder":
        return _Found(path, _below(tree, path), [])
    if kind == "file":
        return _Found(_parent(path), [tree.info(path)], [path])
    base, rest = _literal_part(tree, path)
    found: dict[str, FileInfo] = {}
    named: list[str] = []
    for pattern, matches in _matched(tree, base, rest):
        for match in matches:
            if tree.kind(match) == "folder":
                found |= {info.path: info for info in _below(tree, match)}
                continue
            found[match] = tree.info(match)
            if not WILDCARD.search(pattern):
                named.append(match)
    return _Found(base, sorted(found.values(), key=_natural), named)


def _existing(tree: Tree, path: str) -> tuple[Literal["file", "folder"] | None, str]:
    """What lies at a path taken literally, and the path without a slash at its end; None for a pattern.

    Raises:
        ConnectorError: nothing is there and it is no pattern, or a file has a slash behind it.
    """
    plain = path.rstrip("/") or "/"
    kind = tree.kind(plain)
    if kind == "file" and path.endswith("/"):
        raise ConnectorError(f"{plain}/ is a file, not a folder.", hint="leave out the slash at its end")
    if kind is None and not MAGIC.search(plain):
        raise _not_found(tree, plain)
    return kind, plain


def _matched(tree: Tree, base: str, rest: str) -> Iterator[tuple[str, Iterator[str]]]:
    """Each name or pattern that `rest` stands for, and the paths below `base` that it matches.

    Raises:
        ConnectorError: one matches nothing.
    """
    for pattern in _braces(rest):
        matches = _match(tree, base, pattern.split("/"))
        first = next(matches, None)
        if first is None:
            raise _not_found(tree, _join(base, pattern))
        yield pattern, chain([first], matches)


def _below(tree: Tree, folder: str) -> list[FileInfo]:
    found = sorted(tree.walk(folder), key=_natural)
    if not found:
        raise _no_files(folder)
    return found


def _no_files(folder: str) -> ConnectorError:
    return ConnectorError(
        f"the folder {folder} has no files.",
        hint="names that begin with . or _ are not read from a folder; name them in the URL",
    )


def _literal_part(tree: Tree, path: str) -> tuple[str, str]:
    """Split a path that has patterns behind the last folder that exists as written."""
    parts = path.split("/")
    plain = next(k for k, part in enumerate(parts) if MAGIC.search(part))
    # A brace may hold a slash, so that what looks like a folder's name is a piece of a pattern.
    while plain < len(parts) - 1 and tree.kind("/".join(parts[: plain + 1])) == "folder":
        plain += 1
        while plain < len(parts) - 1 and not MAGIC.search(parts[plain]):
            plain += 1
    return _folder(parts[:plain], path), "/".join(parts[plain:])


def _match(tree: Tree, folder: str, parts: Sequence[str]) -> Iterator[str]:
    """The paths below `folder` that the parts of a pattern stand for."""
    part, rest = parts[0], parts[1:]
    path = _join(folder, part)
    if not WILDCARD.search(part) or tree.kind(path) is not None:
        if rest:
            yield from _match(tree, path, rest)
        elif tree.kind(path) is not None:
            yield path
        return
    if part == "**":
        for name, is_folder in tree.names(folder).items():
            if is_folder and not is_hidden(name):
                yield from _match(tree, _join(folder, name), parts)
        if rest:
            yield from _match(tree, folder, rest)
        else:
            yield from (_join(folder, n) for n, f in tree.names(folder).items() if not f and not is_hidden(n))
        return
    matches = re.compile(fnmatch.translate(part)).match
    for name, is_folder in tree.names(folder).items():
        if not matches(name) or (is_hidden(name) and part[0] != name[0]):
            continue
        if not rest:
            yield _join(folder, name)
        elif is_folder:
            yield from _match(tree, _join(folder, name), rest)


def _braces(pattern: str) -> list[str]:
    """Expand `{a,b}` and `{01..10}`, inner braces first; other braces are literal."""
    pending, done = [(pattern, 0)], []
    while pending:
        text, start = pending.pop()
        brace = BRACE.search(text, start)
        if brace is None:
            done.append(text)
            continue
        choices = _choices(brace[1])
        if choices is None:
            pending.append((text, brace.end()))
            continue
        if len(pending) + len(done) + len(choices) > MAX_EXPANSIONS:
            raise PlanError(
                f"{pattern} stands for more than {MAX_EXPANSIONS:,} names.", hint="use * or name the folder"
            )
        # From the start again: what was around the brace may be one now.
        pending += [(text[: brace.start()] + choice + text[brace.end() :], 0) for choice in reversed(choices)]
    return list(dict.fromkeys(done))


def _choices(inside: str) -> Sequence[str] | None:
    span = RANGE.fullmatch(inside)
    if span is None:
        return inside.split(",") if "," in inside else None
    first, last = int(span[1]), int(span[2])
    if abs(last - first) >= MAX_EXPANSIONS:
        raise PlanError(
            f"{{{inside}}} stands for more than {MAX_EXPANSIONS:,} names.", hint="use * or name the folder"
        )
    padded = any(len(digits) > 1 and digits.startswith("0") for digits in (span[1], span[2]))
    width = max(len(span[1]), len(span[2])) if padded else 0
    step = 1 if last >= first else -1
    return [f"{number:0{width}d}" for number in range(first, last + step, step)]


def _natural(info: FileInfo) -> tuple[str, str]:
    """A sort key by folders, in which a run of digits counts as a number.

    One string, in which each number follows its count of digits: lists of parts took three times as long.
    """
    key = DIGITS.sub(_number, info.path.replace("/", "\0"))
    return key, info.path


def _number(digits: re.Match[str]) -> str:
    value = digits[0].lstrip("0")
    return f"0{chr(len(value))}{value}"


def _not_found(tree: Tree, path: str) -> ConnectorError:
    folder, name = _parent(path), path.rpartition("/")[2]
    while folder not in ("", "/") and tree.kind(folder) != "folder":
        folder, name = _parent(folder), folder.rpartition("/")[2]
    # A home folder is full of hidden names, which are nobody's data.
    shown = [other for other in tree.names(folder) if not is_hidden(other) or other[0] == name[:1]]
    hint = f"in {folder or 'the store'}: {near(name, shown, what='file', most=8)}"
    what = "matches no file" if WILDCARD.search(path) else "does not exist"
    return ConnectorError(f"{path} {what}.", hint=hint)


def _refuse_duplicates(files: Sequence[FileInfo]) -> None:
    seen: set[str] = set()
    for info in files:
        if info.path in seen:
            raise PlanError(
                f"{info.path} is named twice.", hint="leave one out; `repeat` reads a source several times"
            )
        seen.add(info.path)


def _common(folders: set[str]) -> str:
    """The longest folder that all of them lie in."""
    first, *others = [folder.split("/") for folder in folders]
    shared = 0
    for names in zip(first, *others, strict=False):
        if len(set(names)) > 1:
            break
        shared += 1
    return _folder(first[:shared], min(folders))


def _folder(parts: Sequence[str], path: str) -> str:
    """The leading parts of a path; object stores have paths without a slash before them."""
    return "/".join(parts) or ("/" if path.startswith("/") else "")


def _parent(path: str) -> str:
    return _folder([path.rpartition("/")[0]], path)


def _join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder else name
