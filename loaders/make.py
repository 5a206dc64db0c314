"""Making a loader of the kind asked for; torch is imported only for its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from connectors.contract import Json
from dataflow.execute.develop import ByKernel, Development
from dataflow.graph.node import Node
from dataflow.options import LoaderOptions
from loaders.backends import Backend
from loaders.dali.choice import Choice, choose
from loaders.membership import Membership, distributed
from loaders.output import Output
from loaders.plain import to_arrow_batch, to_numpy_batch
from loaders.ranked import RankedLoader

if TYPE_CHECKING:
    from loaders.exchange import Exchange

__all__ = ["check_device", "make_loader"]


def make_loader(
    node: Node, seed: int, options: LoaderOptions, membership: Membership, output: Output, backend: Backend
) -> RankedLoader[Any]:
    """The loader of a pipeline, which gives torch tensors, NumPy arrays or Arrow record batches.

    Raises:
        PlanError: there is no such rank, device or backend, or the pipeline cannot be delivered as it is.
        MissingExtraError: the backend that is asked for is not installed.
    """
    if output.device is not None:
        check_device(output.device)
    development = _development(choose(backend, node, output), node)
    gathers = None if distributed() is None else partial(_exchange, membership)
    if output.kind == "torch":
        from loaders.torch import TorchLoader, converter, device_of

        convert = converter(device=device_of(output.device), ids=options.ids, collate=output.collate)
        return TorchLoader(node, seed, options, membership, convert, gathers, development)
    plain = to_numpy_batch if output.kind == "numpy" else to_arrow_batch
    made = _collated(partial(plain, ids=options.ids), output.collate)
    return RankedLoader(node, seed, options, membership, made, gathers, development)


def _development(choice: Choice, node: Node) -> Development:
    """What makes the images of a pipeline."""
    if choice.images is None:
        return ByKernel(says=choice.lines(node))
    from loaders.dali.develop import DaliDevelopment

    return DaliDevelopment(backend=choice.images, gpu=choice.gpu, says=choice.lines(node))


def check_device(device: object) -> None:
    """Refuse what is no device of torch; that this machine has it is seen when a loader is made.

    Raises:
        PlanError: torch knows no such device.
    """
    from loaders.torch import named_device

    named_device(device)


def _collated(made: Callable[..., Any], collate: Callable[[Any], Any] | None) -> Callable[..., Any]:
    return made if collate is None else lambda *given: collate(made(*given))


def _exchange(membership: Membership, state: Mapping[str, Json]) -> Exchange:
    from loaders.meet import meet

    return meet(membership.world(), state, membership.data_group())
