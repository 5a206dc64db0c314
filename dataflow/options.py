"""Small frozen groups of options that are passed down."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from dataflow.cores import available_cores
from dataflow.errors import PlanError
from dataflow.given import as_whole, check_choice, check_flags

__all__ = ["MOST_RANKS", "ErrorPolicy", "LoaderOptions", "PassOptions", "World", "default_memory_limit"]

# Each has at least one row of a batch, and `explain` looks at each.
MOST_RANKS = 1 << 20

OnError = Literal["raise", "skip", "replace"]


@dataclass(frozen=True, kw_only=True)
class World:
    """This process among the data-parallel ranks."""

    rank: int = 0
    size: int = 1

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.rank < self.size:
            raise PlanError(
                f"rank={self.rank} of world_size={self.size} does not exist.",
                hint="ranks go from 0 to world_size - 1",
            )
        if self.size > MOST_RANKS:
            raise PlanError(
                f"world_size={self.size} is too large.", hint=f"there may be {MOST_RANKS:,} ranks"
            )


def _refuse_folder(name: str, file: Path | None) -> None:
    # The method of a path raises where there can be no file of that name.
    if file is not None and os.path.isdir(file):  # noqa: PTH112
        raise PlanError(f"{name}={str(file)!r} is a folder.", hint="give the name of a file in it")


@dataclass(frozen=True, kw_only=True)
class ErrorPolicy:
    """What becomes of bad rows: `max_errors` delivered ones are borne a rank, None: any number."""

    on_error: OnError = "raise"
    max_errors: int | None = None
    quarantine: Path | None = None

    def __post_init__(self) -> None:
        check_choice("", "on_error", self.on_error, get_args(OnError))
        if self.max_errors is not None:
            said = f"max_errors={self.max_errors!r} is no number of rows."
            most = as_whole(self.max_errors, said, hint="give 0 or more, or None", least=0)
            object.__setattr__(self, "max_errors", most)
        if self.on_error == "raise" and self.max_errors is not None:
            raise PlanError(
                "max_errors= has no meaning with on_error='raise'.", hint="use on_error='skip' or 'replace'"
            )
        _refuse_folder("quarantine", self.quarantine)


@dataclass(frozen=True, kw_only=True)
class LoaderOptions:
    """How a loader works; nothing here changes which samples it delivers, nor their order.

    `memory_limit` in bytes; `prefetch` in batches; `epochs` are those that will be iterated in all, None where that is
    not known; `trace` is the file for the timeline.
    """

    memory_limit: int
    threads: int
    prefetch: int = 128
    epochs: int | None = None
    ids: bool = False
    errors: ErrorPolicy = ErrorPolicy()
    trace: Path | None = None

    def __post_init__(self) -> None:
        for name in ("memory_limit", "threads", "prefetch", "epochs"):
            value = getattr(self, name)
            if name == "epochs" and value is None:
                continue
            said = f"{name}={value!r} is no whole number over 0."
            object.__setattr__(
                self, name, as_whole(value, said, hint="leave it out for the default", least=1)
            )
        check_flags("loader", ids=self.ids)
        _refuse_folder("trace", self.trace)


def default_memory_limit() -> int:
    """A quarter of the memory that this process may use (its cgroup's, or the machine's), at most 4 GB."""
    return min(4 * 10**9, _memory() // 4)


@dataclass(frozen=True, kw_only=True)
class PassOptions:
    """What a pass over rows beforehand may take: `memory_limit` in bytes, of all its threads together.

    The defaults hold where a pipeline is asked without a loader.
    """

    memory_limit: int = field(default_factory=default_memory_limit)
    threads: int = field(default_factory=available_cores)


def _memory() -> int:
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(file).read_text().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < 1 << 60:
            return int(text)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
