"""Making a loader of the kind asked for; torch is imported only for its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dataflow.errors import PlanError
from dataflow.execute.loader import Loader
from dataflow.graph.node import Node
from dataflow.options import LoaderOptions, World
from loaders.plain import to_arrow_batch, to_numpy_batch
from loaders.world import data_group

if TYPE_CHECKING:
    from loaders.exchange import Exchange
    from loaders.torch import TorchLoader

__all__ = ["make_loader"]


def make_loader(
    node: Node, seed: int, options: LoaderOptions, world: World, *, mesh: Any, group: Any, device: Any,
    collate: Callable[[dict[str, Any]], Any] | None, output: str,
) -> TorchLoader:  # fmt: skip
    """The loader of a pipeline, which gives torch tensors, NumPy arrays or Arrow record batches.

    Raises:
        PlanError: `output` is unknown, or does not go with `device` or `collate`.
    """
    gathers = partial(_gathers, world, mesh, group) if world.size > 1 and _distributed() else None
    if output == "torch":
        from loaders.torch import TorchLoader, converter, device_of

        convert = converter(device=device_of(device), ids=options.ids, collate=collate)
        return TorchLoader(node, seed, options, world, convert, gathers)
    if output not in ("numpy", "arrow"):
        raise PlanError(f"output={output!r} is unknown.", hint="use 'torch', 'numpy' or 'arrow'")
    if device is not None:
        raise PlanError(f"output={output!r} with device={device!r}.", hint="only output='torch' has a device")
    plain = to_numpy_batch if output == "numpy" else to_arrow_batch
    made = partial(plain, ids=options.ids)
    return Loader(node, seed, options, world, _collated(made, collate), gathers)  # type: ignore[return-value]


def _collated(made: Callable[..., Any], collate: Callable[[Any], Any] | None) -> Callable[..., Any]:
    return made if collate is None else lambda *given: collate(made(*given))


def _distributed() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized()


def _gathers(world: World, mesh: Any, group: Any) -> Exchange:
    from loaders.rendezvous import open_exchange

    return open_exchange(world, data_group(mesh, group))
