"""`describe`: facts and problems of an index, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from connectors.contract import Json
from dataflow.index.index import Index
from dataflow.wording import counted

__all__ = ["describe"]

# A window and a read-ahead of such fragments no longer fit in memory beside a training job.
_LARGE_BYTES = 256 << 20
# Below this the request, the task and the decoder's start cost more than the rows.
_SMALL_BYTES = 64 << 10
_MANY = 1000


def describe(index: Index) -> dict[str, Json]:
    """Facts of an index, ready for JSON; sizes in bytes, decoded unless said otherwise.

    `problems` are sentences that each say what is unusual and what would help.
    """
    f = index.fragments
    some = len(f) > 0
    return {
        "name": index.name,
        "format": index.connector.name,
        "root": index.root,
        "hash": index.hash,
        "files": len(index.files),
        "file_bytes": int(index.files.size.sum()),
        "rows": index.rows,
        "bytes": int(f.bytes.sum()),
        "row_bytes": dict(index.row_bytes),
        "schema": {field.name: str(field.type) for field in index.schema},
        "fragments": len(f),
        "fragment_rows": {
            "smallest": int(f.rows.min()) if some else 0,
            "median": float(np.median(f.rows)) if some else 0.0,
            "largest": int(f.rows.max()) if some else 0,
        },
        "classes": index.meta.get("classes", []),
        "problems": list(_problems(index)),
    }


def _problems(index: Index) -> list[str]:
    f = index.fragments
    problems = []
    if not len(f):
        problems.append("There are no rows.")
    empty = int((index.files.rows == 0).sum())
    if len(f) and empty and index.connector.traits.scans == "file":
        problems.append(f"{counted(empty, 'file has', 'files have')} no rows.")
    large = int((f.bytes > _LARGE_BYTES).sum())
    if large:
        number = int(f.bytes.argmax())
        problems.append(
            f"{counted(large, 'fragment is', 'fragments are')} over {_LARGE_BYTES >> 20} MiB when decoded; the "
            f"largest has {int(f.bytes[number]) >> 20} MiB, in {index.files.name(int(f.file[number]))}: write "
            "smaller ones (row groups, shards) for better shuffling in less memory."
        )
    if len(f) >= _MANY and f.bytes.mean() < _SMALL_BYTES:
        problems.append(
            f"{len(f):,} fragments have only {counted(int(f.bytes.mean()), 'byte')} on average: larger row groups or "
            "shards read faster."
        )
    return [*problems, *_schemas(index), *_lacks(index), *_remarks(index)]


def _schemas(index: Index) -> Iterator[str]:
    """How many schemas the files have, and the first file that has not that of the first."""
    # Columns are told by their names: in what order they stand does not matter.
    written = [frozenset(_kinds(variant.schema).items()) for variant in index.variants]
    if len(set(written)) < 2:
        return
    own = index.files.variant
    first = int(own[0])
    other = next(number for number, variant in enumerate(own) if written[variant] != written[first])
    differs = _difference(index.variants[first].schema, index.variants[int(own[other])].schema)
    yield (
        f"The files have {len(set(written))} different schemas: in {index.files.name(other)}, unlike "
        f"{index.files.name(0)}, {differs}."
    )


def _difference(first: pa.Schema, other: pa.Schema) -> str:
    """What is different in the columns of the other schema."""
    before, now = _kinds(first), _kinds(other)
    said = [f"there is no {name!r}" for name in before if name not in now]
    said += [f"there is {name!r} ({kind})" for name, kind in now.items() if name not in before]
    said += [
        f"{name!r} is {kind} and not {before[name]}"
        for name, kind in now.items()
        if before.get(name, kind) != kind
    ]
    return ", ".join(said)


def _kinds(schema: pa.Schema) -> dict[str, str]:
    return {field.name: f"{field.type}{'' if field.nullable else ' not null'}" for field in schema}


def _lacks(index: Index) -> Iterator[str]:
    """The columns that some files have not, and how many these are."""
    known = [frozenset(variant.schema.names) for variant in index.variants]
    for column in index.schema.names if len(set(known)) > 1 else ():
        yield from _of_files(index, [column not in names for names in known], f"no column {column!r}.")


def _remarks(index: Index) -> Iterator[str]:
    """What the connector has to say of files, once for all of which it says the same."""
    for remark in dict.fromkeys(remark for variant in index.variants for remark in variant.remarks):
        yield from _of_files(index, [remark in variant.remarks for variant in index.variants], remark)


def _of_files(index: Index, chosen: Sequence[bool], what: str) -> Iterator[str]:
    """What the files of the chosen variants have, where there are such files."""
    numbers = np.flatnonzero(np.array(chosen)[index.files.variant])
    if len(numbers):
        first = index.files.name(int(numbers[0]))
        named = f"{first} has" if len(numbers) == 1 else f"{len(numbers):,} files, as {first}, have"
        yield f"{named} {what}"
