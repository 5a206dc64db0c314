"""Ctrl-C and SIGTERM: both stop a command in the same way, and each has an exit code of its own."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

__all__ = ["Terminated", "exit_code", "signal_name", "sigterm_as_ctrl_c", "stop_behind"]


class Terminated(KeyboardInterrupt):
    """SIGTERM, as a scheduler sends it to what it wants to stop: whatever ends well at Ctrl-C ends well at this."""


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """The first SIGTERM raises `Terminated` in the main thread; those that follow are without effect."""
    # Someone else's handler stays, and only the main thread may set one.
    ours = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    # Launchers send it to a group, and then once more to each: the place is being saved by then.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def stop_behind(error: BaseException) -> KeyboardInterrupt | None:
    """The Ctrl-C or SIGTERM that is behind an error, where one is.

    A library that it finds being imported may fail for it in its own way.
    """
    if isinstance(error, KeyboardInterrupt):
        return error
    behind: BaseException | None = error if isinstance(error, ImportError) else None
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__cause__ or behind.__context__
    return behind


def exit_code(stop: KeyboardInterrupt) -> int:
    """128 and the number of the signal, as shells have it."""
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


def signal_name(stop: KeyboardInterrupt) -> str:
    """What people call the signal."""
    return "SIGTERM" if isinstance(stop, Terminated) else "Ctrl-C"
