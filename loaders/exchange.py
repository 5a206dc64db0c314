"""What ranks tell each other: an all-gather of whole numbers, run after run, which anyone may leave at any time.

A rank that leaves a run says so, and one that dies ends its connections: the others hear of either at once.

The collectives of torch.distributed cannot do this: one that is under way cannot be taken back. Over gloo, a rank
that ended while another was busy waited for it, however long that took; and gloo's threads, which give Python
objects back when a collective is over, end the process with SIGABRT where the interpreter is just shutting down.
"""

from __future__ import annotations

import socket
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from functools import partial

from dataflow.errors import LoaderClosed, RankError
from loaders.links import Links
from loaders.star import HUB, Broken, Hub, Kind, Spoke, Star

__all__ = ["Exchange"]

_TIMEOUT_S = 600.0
# The hub knows whom it waits for: the others wait a little longer, so that they hear it from the hub.
_SPOKE_PATIENCE = 1.25
# Numbers of which a part is under way come to their end first; a rank that reads nothing is not waited for.
_LEAVING_S = 1.0


class Exchange:
    """All-gathers between ranks that are connected; `all_gather` is called by one thread at a time.

    Args:
        connections: of the first rank, those to all others; of another rank, that to the first.
        timeout_s: how long a rank is waited for that lives and does not answer.
    """

    def __init__(
        self, rank: int, connections: Mapping[int, socket.socket], timeout_s: float = _TIMEOUT_S
    ) -> None:
        self._links = Links(connections)
        self._end = weakref.finalize(self, self._links.close)
        # At exit the driver's thread may still use them: whoever runs it ends it first.
        self._end.atexit = False
        self._star: Star = Hub(self._links) if rank == HUB else Spoke(self._links, rank)
        self._timeout_s = timeout_s if rank == HUB else _SPOKE_PATIENCE * timeout_s
        self._run = 0
        self._turn = threading.Lock()
        self._closed = self._left = True

    def begin(self) -> None:
        """Begin a new run: all ranks count them alike."""
        with self._turn:
            self._run += 1
            self._closed = self._left = False

    def all_gather(self, numbers: Sequence[int]) -> list[list[int]]:
        """Every rank's numbers, in rank order.

        Raises:
            RankError: a rank does not answer in time, is gone, or has left this run.
            LoaderClosed: `close` or `abandon` was called meanwhile.
        """
        with self._turn:
            self._check_open()
            wait = partial(self._wait, time.monotonic() + self._timeout_s)
            try:
                return self._star.gather(self._run, numbers, wait)
            except Broken as broken:
                raise self._error(broken) from None

    def _wait(self, deadline: float) -> list[int]:
        self._check_open()
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return self._links.wait(left_s)

    def _check_open(self) -> None:
        if self._closed:
            raise LoaderClosed("the loader is closed.")

    def _error(self, broken: Broken) -> RankError:
        match broken.kind:
            case Kind.LEFT:
                return RankError(
                    f"ranks {broken.ranks} have left the epoch that this rank is in.",
                    hint="let all ranks take the same number of batches; if one failed, its log says why",
                )
            case Kind.LATE:
                return RankError(
                    f"ranks {broken.ranks} have not answered within {self._timeout_s:g} s.",
                    hint="look at their logs: one is stuck, or takes fewer batches",
                )
            case Kind.UNLIKE:
                return RankError(
                    f"ranks {broken.ranks} send more or fewer numbers than rank {HUB} does.",
                    hint="run the same version of Dataflow on all ranks",
                )
            case _:
                return RankError(
                    f"ranks {broken.ranks} are gone.",
                    hint="look at their logs, and at the network between the nodes; "
                    "start all ranks again from the last state",
                )

    def abandon(self) -> None:
        """Let a waiting `all_gather` return; takes no lock."""
        self._closed = True
        self._links.ring()

    def close(self) -> None:
        """Leave the run: a waiting `all_gather` returns, here and on the other ranks. May be called twice."""
        if self._links.inherited:
            # A forked child that ends would else speak for its parent.
            return
        self.abandon()
        with self._turn:
            if not self._left:
                self._left = True
                self._star.leave(self._run)
                self._links.flush(_LEAVING_S)

    def shutdown(self) -> None:
        """Leave the run and end the connections; may be called twice."""
        self.close()
        if not self._links.inherited:
            with self._turn:
                self._end()
