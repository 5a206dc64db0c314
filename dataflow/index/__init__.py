"""Every data set is a list of fragments; an index is that list, built once and cached.

index.py     `Index`, `FileTable`, `Fragments`: the frozen facts
open.py      `open_index`: the index of a URL, from the cache or brought up to date
cached.py    `CachedIndex`: found in the places where it may lie, or built and put there
build.py     `build_index`: scan files (all, or those that changed) into an index
assemble.py  files, fragments and what scans said become an `Index`
changes.py   which files of a listing are as an older index has them
scan.py      the parallel scan and its failures
progress.py  the progress bar, and the warning before a long scan
schemas.py   one schema for all files
sizes.py     decoded bytes of one row, from one decoded slice
cache.py     where cached files lie, and how they are read and written
once.py      one process of a node makes what the others wait for
codec.py     how an index, a file table and a bitmap are laid out in a file
identity.py  what a saved state keeps of a source, and what a resume compares
subset.py    an index restricted to, or put behind, the files of an older one
select.py    bitmaps of kept rows, cached
describe.py  facts and problems for people
"""

from __future__ import annotations

from dataflow.index.build import build_index
from dataflow.index.cache import find_files, keep_files
from dataflow.index.describe import describe
from dataflow.index.identity import Identity, Resumed, compare, identity
from dataflow.index.index import FileTable, Fragments, Index, Variant, content_hash
from dataflow.index.open import open_index
from dataflow.index.select import bits
from dataflow.index.subset import appended, restrict

__all__ = [
    "FileTable",
    "Fragments",
    "Identity",
    "Index",
    "Resumed",
    "Variant",
    "appended",
    "bits",
    "build_index",
    "compare",
    "content_hash",
    "describe",
    "find_files",
    "identity",
    "keep_files",
    "open_index",
    "restrict",
]
