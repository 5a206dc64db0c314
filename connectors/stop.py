"""The event that ends the waits of a thread: it is set when nobody wants what the thread works at any more."""

from __future__ import annotations

import threading

__all__ = ["end_waits_at", "stop_of_thread"]

_of_thread = threading.local()
_NEVER = threading.Event()


def end_waits_at(event: threading.Event) -> None:
    """From now on, once `event` is set, this thread asks no store any more and no longer waits to do so."""
    _of_thread.event = event


def stop_of_thread() -> threading.Event:
    """The event of this thread; one that is never set where it has none."""
    event: threading.Event = getattr(_of_thread, "event", _NEVER)
    return event
