"""What `Pipeline.loader` is given, and the options that this means."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

from dataflow.byte_sizes import in_bytes
from dataflow.execute.pools import available_cores
from dataflow.given import as_path, check_choice
from dataflow.options import ErrorPolicy, LoaderOptions, OnError, default_memory_limit

__all__ = ["Arguments", "loader_options"]


class Arguments(TypedDict, total=False):
    """The arguments of `Pipeline.loader` that say nothing of what a batch is."""

    rank: int | None
    world_size: int | None
    mesh: Any
    group: Any
    ids: bool
    memory_limit: int | str | None
    threads: int | None
    prefetch: int | None
    epochs: int | None
    executor: str
    on_error: OnError
    max_errors: int | None
    quarantine: str | Path | None
    trace: str | Path | None


def loader_options(
    *, ids: bool = False, memory_limit: int | str | None = None, threads: int | None = None,
    prefetch: int | None = None, epochs: int | None = None, executor: str = "threads", on_error: OnError = "raise",
    max_errors: int | None = None, quarantine: str | Path | None = None, trace: str | Path | None = None,
) -> LoaderOptions:  # fmt: skip
    """How a loader works: what was given, and the defaults of this machine for what was not.

    Raises:
        PlanError: a value is wrong, or does not go with another.
    """
    check_choice("", "executor", executor, ["threads"])
    return LoaderOptions(
        memory_limit=default_memory_limit()
        if memory_limit is None
        else in_bytes(memory_limit, "memory_limit"),
        threads=available_cores() if threads is None else threads,
        prefetch=LoaderOptions.prefetch if prefetch is None else prefetch,
        epochs=epochs,
        ids=ids,
        errors=ErrorPolicy(
            on_error=on_error, max_errors=max_errors, quarantine=_file("quarantine", quarantine)
        ),
        trace=_file("trace", trace),
    )


def _file(name: str, given: str | Path | None) -> Path | None:
    return None if given is None else Path(as_path(name, given))
