"""All checks of a device, in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Final, get_args

import torch

from bench.device_check.agree import crop_shift_px, made_alike, resized_shift_px, worst_psnr_db
from bench.device_check.check import Check, Noted
from bench.device_check.loop import Backend, batches_without_sync, trace_of
from bench.device_check.pictures import Dtype, Layout
from bench.device_check.rates import Rates, decoded_per_s
from bench.device_check.size import Size
from bench.device_check.trace import Event, hidden_share, pinned_share, syncs

__all__ = ["checks_of"]

_LEAST_DB: Final = 35.0
# Half of what one side of a box that is a pixel off makes of it.
_MOST_SHIFT_PX: Final = 0.25
# The first and the last copies have nothing to hide behind.
_LEAST_HIDDEN: Final = 0.8
_MAKERS: Final[dict[Backend, str]] = {"dali": "images by DALI", "cpu": "images by the CPU kernel"}


def checks_of(device: torch.device, size: Size) -> list[Check]:
    """The checks of a device; those of its feed fail on one that is no GPU."""
    return [
        *_agreement(device, size),
        *(check for backend in get_args(Backend) for check in _feed(device, size, backend)),
        *_speed(device, size),
    ]


def _agreement(device: torch.device, size: Size) -> Iterator[Check]:
    for crops, shift in (("crops", crop_shift_px), ("resized crops", resized_shift_px)):
        yield Check(
            name=f"boxes and flips of {crops}: shift", measure=partial(shift, device, size), unit="px",
            at_most=_MOST_SHIFT_PX,
        )  # fmt: skip
    yield Check(name="photographs made in DALI's stead", measure=partial(made_alike, device, size), at_most=0)
    for dtype in get_args(Dtype):
        for layout in get_args(Layout):
            yield Check(
                name=f"photographs as {dtype} {layout}: least PSNR",
                measure=partial(worst_psnr_db, device, size, dtype, layout), unit="dB", at_least=_LEAST_DB,
            )  # fmt: skip


def _feed(device: torch.device, size: Size, backend: Backend) -> Iterator[Check]:
    traced, maker = _Traced(device, size, backend), _MAKERS[backend]
    yield Check(name=f"{maker}: copies behind compute", measure=traced.hidden, at_least=_LEAST_HIDDEN)
    if backend == "cpu":  # which memory DALI copies from is its own affair
        yield Check(name=f"{maker}: bytes from pinned memory", measure=traced.pinned, at_least=1)
    yield Check(name=f"{maker}: waits in the trace", measure=traced.waits, at_most=0)
    yield Check(
        name=f"{maker}: batches that need no wait",
        measure=partial(batches_without_sync, device, size, backend), at_least=size.traced,
    )  # fmt: skip


def _speed(device: torch.device, size: Size) -> Iterator[Check]:
    rates = Rates(device, size)
    yield Check(name="decoding alone", measure=partial(decoded_per_s, device, size), unit="images/s")
    yield Check(name="training on a resident batch", measure=rates.resident, unit="images/s")
    yield Check(name="training end to end", measure=rates.end_to_end, unit="images/s")
    yield Check(name="end to end against resident", measure=rates.share)


class _Traced:
    """The figures of one trace, which is taken when one of them is first asked for."""

    def __init__(self, device: torch.device, size: Size, backend: Backend) -> None:
        self._device, self._size, self._backend = device, size, backend

    def hidden(self) -> float:
        return hidden_share(self._events)

    def pinned(self) -> float:
        return pinned_share(self._events)

    def waits(self) -> Noted:
        found = Counter(syncs(self._events))
        return Noted(found.total(), ", ".join(f"{name} x {count}" for name, count in found.items()))

    @cached_property
    def _events(self) -> list[Event]:
        return trace_of(self._device, self._size, self._backend)
