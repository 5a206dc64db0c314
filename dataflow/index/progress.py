"""`Progress`: a bar for a scan that takes over a second, and a warning for one of over a minute."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

__all__ = ["Progress"]

logger = logging.getLogger("dataflow.index")

_BAR_AFTER_S = 1.0
_WARN_ABOVE_S = 60.0


class Progress:
    """Counts done units (files or bytes) of a scan; entered around it, and told by `advance`.

    The bar shows on a terminal only. The warning is logged once, when what has been done by the second
    second says that the rest takes over a minute; `advice` is what to do about that.
    """

    def __init__(
        self, what: str, *, advice: str = "", bar: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what, self._advice, self._clock = what, advice, clock
        self._show = bar and sys.stderr.isatty()
        self._total = self._done = 0
        self._begun = 0.0
        self._warned = False
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        self._begun = self._clock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def begin(self, total: int) -> None:
        """Say how many units there are."""
        self._total, self._done, self._begun = max(total, 1), 0, self._clock()

    def advance(self, units: int = 0) -> None:
        """Say that `units` more are done; with none, only look at the clock."""
        self._done += units
        elapsed = self._clock() - self._begun
        if elapsed < _BAR_AFTER_S:
            return
        rest_s = elapsed * (self._total - self._done) / self._done if self._done else 0.0
        if rest_s > _WARN_ABOVE_S and not self._warned:
            self._warned = True
            logger.warning("%s takes about %.0f s more. %s", self._what, rest_s, self._advice)
        if self._show:
            self._draw()

    def _draw(self) -> None:
        if self._bar is None:
            # Here, not at the top: rich takes as long to import as the rest of the package.
            from rich.console import Console
            from rich.progress import Progress as Bar

            self._bar = Bar(console=Console(stderr=True), transient=True)
            self._bar.add_task(self._what, total=self._total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=self._done)
