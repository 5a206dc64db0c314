"""What users get of a batch: of which kind, where, and through which function of theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dataflow.errors import PlanError

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
        if self.kind not in _KINDS:
            raise PlanError(f"output={self.kind!r} is unknown.", hint="use 'torch', 'numpy' or 'arrow'")
        if self.kind != "torch" and self.device is not None:
            raise PlanError(
                f"output={self.kind!r} with device={self.device!r}.", hint="only output='torch' has a device"
            )
