"""What users get of a batch: of which kind, where, and through which function of theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dataflow.errors import PlanError
from dataflow.given import check_choice

__all__ = ["Output"]

_KINDS = ("torch", "numpy", "arrow")
# Torch's own type stays out of this file, so that NumPy and Arrow batches import no torch.
Device = Any


@dataclass(frozen=True, kw_only=True)
class Output:
    """Torch tensors (on `device`), NumPy arrays or Arrow record batches, or what `collate` makes of them.

    Raises:
        PlanError: `kind` is unknown, or has no device.
    """

    kind: str = "torch"
    device: Device | None = None
    collate: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        check_choice("", "output", self.kind, _KINDS)
        if self.collate is not None and not callable(self.collate):
            raise PlanError(f"collate={self.collate!r} is no function.", hint="give a function of one batch")
        if self.kind != "torch" and self.device is not None:
            raise PlanError(
                f"output={self.kind!r} with device={self.device!r}.", hint="only output='torch' has a device"
            )
