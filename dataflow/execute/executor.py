"""`Executor`: where the work of a loader is done, run after run."""

from __future__ import annotations

from typing import Protocol

from dataflow.execute.pools import Pools
from dataflow.execute.setup import Setup
from dataflow.execute.thread_pools import ThreadPools

__all__ = ["Executor", "ThreadExecutor"]


class Executor(Protocol):
    """Gives each run of a loader its pools; what outlives a run is ended by `close`."""

    def pools(self, setup: Setup) -> Pools:
        """Pools for one run, which closes them."""

    def close(self) -> None:
        """End what is kept from one run to the next; may be called twice."""


class ThreadExecutor:
    """Threads of this process, which are made for every run."""

    def pools(self, setup: Setup) -> ThreadPools:
        remote = any(not source.index.store.is_local for source in setup.plan.sources)
        return ThreadPools(setup.options.threads, remote=remote)

    def close(self) -> None:
        """There is nothing that outlives a run."""
