"""What a profiler saw of a loop, of the events in a Chrome trace by torch: https://pytorch.org/docs/stable/profiler.html.

Times are in microseconds, as they are there. Work on the device bears the number (`correlation`) of the call that
started it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = ["LOOP", "STEP", "Event", "NotSeen", "hidden_share", "pinned_share", "syncs"]

# What the loop, and each step in it, is called in the trace.
LOOP: Final = "device_check.loop"
STEP: Final = "device_check.step"

Event: TypeAlias = dict[str, Any]

_CALLS: Final = ("cuda_runtime", "cuda_driver")
_WAITS: Final = (
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy",
    "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize",
)  # fmt: skip
_TO_DEVICE: Final = "Memcpy HtoD"
_FROM_PINNED: Final = "Memcpy HtoD (Pinned"


class NotSeen(Exception):
    """A trace in which that is missing which a figure is of."""


class _Span(NamedTuple):
    """From `start` to before `stop`."""

    start: float
    stop: float


def hidden_share(events: Sequence[Event]) -> float:
    """The share of the time of copies to the device in which kernels of steps run, from the first such to the last.

    Raises:
        NotSeen: there are no such kernels, or no copies meanwhile.
    """
    kernels = _step_kernels(events)
    if not kernels:
        raise NotSeen("the trace has no kernel of a step.")
    whole = _Span(kernels[0].start, kernels[-1].stop)
    copies = [span for span in map(_span, _copies(events)) if whole.start <= span.start < whole.stop]
    if not copies:
        raise NotSeen("the trace has no copy to the device while steps run.")
    hidden = sum(_covered(copy, kernels) for copy in copies)
    return hidden / sum(copy.stop - copy.start for copy in copies)


def pinned_share(events: Sequence[Event]) -> float:
    """The share of the bytes copied to the device that came from pinned memory.

    Raises:
        NotSeen: there are no copies.
    """
    copies = _copies(events)
    if not copies:
        raise NotSeen("the trace has no copy to the device.")
    pinned = sum(_bytes(copy) for copy in copies if copy["name"].startswith(_FROM_PINNED))
    return pinned / sum(map(_bytes, copies))


def syncs(events: Sequence[Event]) -> list[str]:
    """The calls by which the thread of the loop waited for the device while the loop ran.

    Raises:
        NotSeen: there is no loop, or it has started no work on a device.
    """
    loops = [event for event in events if event.get("name") == LOOP and event.get("cat") == "user_annotation"]
    if not loops:
        raise NotSeen("the trace has no loop.")
    calls = _within(loops, (event for event in events if event.get("cat") in _CALLS))
    if not calls:
        raise NotSeen("the trace has no call to CUDA in the loop.")
    return [call["name"] for call in calls if call["name"].startswith(_WAITS) and "Async" not in call["name"]]


def _step_kernels(events: Sequence[Event]) -> list[_Span]:
    """Where kernels ran that were started inside a step, joined where they touch, in their order."""
    steps = [event for event in events if event.get("name") == STEP and event.get("cat") == "user_annotation"]
    calls = _within(steps, (event for event in events if event.get("cat") in _CALLS))
    started = {call["args"]["correlation"] for call in calls if "correlation" in call.get("args", {})}
    kernels = (event for event in events if event.get("cat") == "kernel")
    return _joined(_span(kernel) for kernel in kernels if kernel["args"].get("correlation") in started)


def _within(marks: Iterable[Event], calls: Iterable[Event]) -> list[Event]:
    """Those calls that began inside a mark, on its thread."""
    spans = [(mark["tid"], _span(mark)) for mark in marks]
    return [
        call
        for call in calls
        if any(thread == call["tid"] and span.start <= call["ts"] < span.stop for thread, span in spans)
    ]


def _copies(events: Sequence[Event]) -> list[Event]:
    copies = (event for event in events if event.get("cat") == "gpu_memcpy")
    return [copy for copy in copies if copy["name"].startswith(_TO_DEVICE)]


def _bytes(copy: Event) -> int:
    return int(copy["args"]["bytes"])


def _span(event: Event) -> _Span:
    return _Span(float(event["ts"]), float(event["ts"]) + float(event["dur"]))


def _joined(spans: Iterable[_Span]) -> list[_Span]:
    joined: list[_Span] = []
    for span in sorted(spans):
        if joined and span.start <= joined[-1].stop:
            joined[-1] = _Span(joined[-1].start, max(joined[-1].stop, span.stop))
        else:
            joined.append(span)
    return joined


def _covered(span: _Span, others: Iterable[_Span]) -> float:
    """How much of a span lies in others, which do not touch each other."""
    return sum(max(0.0, min(span.stop, other.stop) - max(span.start, other.start)) for other in others)
