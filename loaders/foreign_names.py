"""Arguments of torch's DataLoader that people bring along, and what does the same here.

Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from typing import Final

from dataflow.errors import PlanError, near

__all__ = ["refuse_unknown", "same_here"]

_SAME_HERE: Final = {
    "batch_size": "call .batch(size) on the pipeline, in front of .loader()",
    "batch_sampler": "call .batch(size) on the pipeline; lanes= and shuffle() say what is in a batch",
    "collate_fn": "use collate=",
    "dataset": "begin the pipeline with flow.read(...) or flow.from_dataset(dataset)",
    "drop_last": "call .batch(size, remainder='drop'), 'keep' or 'pad' on the pipeline",
    "generator": "call .seed(n) on the pipeline",
    "in_order": "leave it out: the order never depends on timing",
    "multiprocessing_context": "leave it out: work runs on threads=",
    "num_workers": "use threads=",
    "persistent_workers": "leave it out: threads stay until close()",
    "pin_memory": "leave it out, and use device='cuda'",
    "pin_memory_device": "use device=",
    "prefetch_factor": "use prefetch=, in batches",
    "sampler": "call .shuffle(window) on the pipeline; ranks share the rows by themselves",
    "seed": "call .seed(n) on the pipeline",
    "shuffle": "call .shuffle(window) on the pipeline, in front of .batch(size)",
    "timeout": "leave it out: a store that does not answer is an error",
    "worker_init_fn": "leave it out: map(function, rng=True) gives each sample a generator of its own",
}


def same_here(name: str) -> str:
    """What does the same as DataLoader's argument of that name; empty where it has none."""
    return _SAME_HERE.get(name, "")


def refuse_unknown(given: Iterable[str], function: Callable[..., object]) -> None:
    """Refuse keyword arguments that a loader's function has not.

    Raises:
        PlanError: there is one; says what it is called here, or names the near matches.
    """
    known = [each.name for each in signature(function).parameters.values() if each.kind is each.KEYWORD_ONLY]
    for name in given:
        hint = same_here(name) or near(name, known, what="argument")
        raise PlanError(f"loader() has no argument {name!r}.", hint=hint)
