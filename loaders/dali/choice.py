"""Which backend makes the images of a loader, and why."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from dataflow.errors import MissingExtraError
from dataflow.graph.node import Node, split_at_batch, walk
from dataflow.ops.images.defer import why_not
from dataflow.ops.images.step import ImageStep
from dataflow.optimize.rules import optimize
from loaders.backends import Backend, check_backend
from loaders.dali.backend import DaliImages
from loaders.output import Output

__all__ = ["Choice", "choose"]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What makes images: DALI where `images` is given, on GPU number `gpu` or on CPUs; else the CPU kernel."""

    why: str
    images: DaliImages | None = None
    gpu: int | None = None

    @property
    def name(self) -> str:
        """The backend, in words."""
        if self.images is None:
            return "the CPU kernel"
        return "DALI on CPUs" if self.gpu is None else f"DALI on GPU {self.gpu}"

    def lines(self, node: Node) -> list[str]:
        """The backend, why it is this one, and what it makes of each chain of steps; one fact a line."""
        root = optimize(split_at_batch(node)[0])
        chains = [step for step in walk(root) if isinstance(step, ImageStep)]
        if not chains:
            return []
        found = [f"{self.name}: {self.why}"]
        if self.images is not None:
            last = _last(root)
            found += [f"  {each.column}: {_share(each, self.images, last=each in last)}" for each in chains]
        return found


def choose(asked: Backend, node: Node, output: Output) -> Choice:
    """The backend that makes the images of a pipeline.

    Raises:
        MissingExtraError: DALI is asked for and is not there.
        PlanError: there is no such backend.

    The device of `output` is one that torch knows.
    """
    check_backend(asked)
    if asked == "cpu":
        return Choice(why="backend='cpu'")
    missing = _missing()
    if asked == "dali" and missing is not None:
        raise MissingExtraError(f"backend='dali': {missing}.", extra="dali")
    gpu, why = _gpu(node, output)
    if asked == "dali":
        reason = "backend='dali'" if gpu is not None else f"backend='dali'; {why}"
        return Choice(why=reason, images=DaliImages(whole=gpu is not None), gpu=gpu)
    if gpu is None or missing is not None:
        return Choice(why=why if gpu is None else str(missing))
    return Choice(why="backend='auto', and batches go to a GPU", images=DaliImages(whole=True), gpu=gpu)


def _missing() -> str | None:
    """Why DALI cannot be used here; None where it can."""
    system, machine = platform.system(), platform.machine()
    if (system, machine) != ("Linux", "x86_64"):
        return f"DALI is made for x86-64 Linux, and this is {machine} {system}"
    found = find_spec("nvidia")
    if found is None or find_spec("nvidia.dali") is None:
        return "nvidia.dali is not installed"
    return None


def _gpu(node: Node, output: Output) -> tuple[int | None, str]:
    """The number of the GPU that images can be made on, and why it is none."""
    if output.kind != "torch" or output.device is None:
        return None, "batches stay in host memory"
    # Here, not at the top: NumPy and Arrow batches import no torch.
    import torch

    device = torch.device(output.device)
    if device.type != "cuda":
        return None, f"batches go to {device.type!r}, not to a GPU of CUDA's"
    if not torch.cuda.is_available():
        return None, "torch sees no GPU"
    if any(step.traits.combines for step in split_at_batch(node)[1]):
        return None, "steps behind batch mix rows in host memory"
    return device.index if device.index is not None else torch.cuda.current_device(), ""


def _last(root: Node) -> list[ImageStep]:
    """The chains behind which no other step stands."""
    step, found = root, list[ImageStep]()
    while isinstance(step, ImageStep):
        found.append(step)
        step = step.input
    return found


def _share(chain: ImageStep, images: DaliImages, *, last: bool) -> str:
    reason = why_not(chain) if last else "another step stands behind it"
    done = 0 if reason else images.does(chain.steps)
    if done == len(chain.steps):
        return "all steps by DALI"
    if done:
        return f"{_named(chain.steps[:done])} by DALI, then {_named(chain.steps[done:])} by the CPU kernel"
    stops = chain.steps[images.reach(chain.steps)].kind if reason is None else None
    return f"the CPU kernel, for {reason or f'DALI does not do {stops} as it is defined'}"


def _named(steps: Sequence[Any]) -> str:
    return ", ".join(step.kind for step in steps)
