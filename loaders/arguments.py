"""What `Pipeline.loader` is given, and the options that this means.

`GivenOptions` is where an option is declared: a spec's section is made of it. That a type checker and `help` know the
arguments of a method takes writing them down again, in `Arguments` and in `Pipeline.loader`; a test holds all alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from dataflow.byte_sizes import in_bytes
from dataflow.cores import available_cores
from dataflow.given import as_path, check_choice
from dataflow.options import ErrorPolicy, LoaderOptions, OnError, default_memory_limit
from loaders.backends import Backend, check_backend

__all__ = ["Arguments", "GivenOptions"]


@dataclass(frozen=True, kw_only=True)
class GivenOptions:
    """How a loader works, as people write it; None stands for the default of this machine, or for none."""

    ids: bool = False
    memory_limit: int | str | None = None
    threads: int | None = None
    prefetch: int | None = None
    epochs: int | None = None
    executor: str = "threads"
    on_error: OnError = "raise"
    max_errors: int | None = None
    quarantine: str | Path | None = None
    trace: str | Path | None = None
    backend: Backend = "auto"

    def settled(self) -> LoaderOptions:
        """The options that a loader works with.

        Raises:
            PlanError: a value is wrong, or does not go with another.
        """
        check_choice("", "executor", self.executor, ["threads"])
        check_backend(self.backend)
        limit, threads, prefetch = self.memory_limit, self.threads, self.prefetch
        return LoaderOptions(
            memory_limit=default_memory_limit() if limit is None else in_bytes(limit, "memory_limit"),
            threads=available_cores() if threads is None else threads,
            prefetch=LoaderOptions.prefetch if prefetch is None else prefetch,
            epochs=self.epochs,
            ids=self.ids,
            errors=ErrorPolicy(
                on_error=self.on_error,
                max_errors=self.max_errors,
                quarantine=_file("quarantine", self.quarantine),
            ),
            trace=_file("trace", self.trace),
        )


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
    backend: Backend


def _file(name: str, given: str | Path | None) -> Path | None:
    return None if given is None else Path(as_path(name, given))
