"""Arguments of torch's DataLoader, and others, that people bring along, and what does the same here.

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


# Of arguments that the verbs themselves are given by the names of torch and others.
_SAME_IN_VERBS: Final = {
    ("batch", "batch_size"): "it is the first argument: batch(32)",
    ("batch", "drop_last"): "use remainder='drop' (the default), 'keep' or 'pad'",
    ("batch", "drop_remainder"): "use remainder='drop' (the default), 'keep' or 'pad'",
    ("shuffle", "buffer_size"): "it is window=, in rows or bytes: shuffle(10_000), shuffle('64MB')",
    ("shuffle", "seed"): "call .seed(n) on the pipeline",
    ("shuffle", "generator"): "call .seed(n) on the pipeline",
}


def same_here(name: str) -> str:
    """What does the same as DataLoader's argument of that name; empty where it has none."""
    return _SAME_HERE.get(name, "")


def refuse_unknown(given: Iterable[str], function: Callable[..., object]) -> None:
    """Refuse keyword arguments that a verb of the pipeline, or its loader, has not.

    Raises:
        PlanError: there is one; says what it is called here, or names the near matches.
    """
    verb = function.__name__
    parameters = signature(function).parameters.values()
    known = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]
    for name in given:
        same = same_here(name) if verb == "loader" else _SAME_IN_VERBS.get((verb, name))
        raise PlanError(
            f"{verb}() has no argument {name!r}.", hint=same or near(name, known, what="argument")
        )
