"""A pipeline as plain data; dataflow/spec/ reads it back.

    {"version": 1, "seed": 7, "pipeline": [{"read": {"url": "data/*.parquet"}}, {"batch": {"size": 32}}]}

A step that joins several has `inputs`, a list of such pipelines. Reads that share one source have the same
`shared`, so that the rows keep their ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from connectors.contract import Json
from dataflow.graph.node import Node, walk

__all__ = ["VERSION", "to_spec"]

VERSION = 1


def to_spec(node: Node, seed: int | None) -> dict[str, Json]:
    """The steps as plain data, fit for YAML and JSON.

    Raises:
        PlanError: a source is in memory, a function cannot be found again by its name, or an argument has no
            written form.
    """
    uses = Counter(id(step.source) for step in walk(node) if step.source is not None)
    shared = {one: f"source{place}" for place, one in enumerate(uses) if uses[one] > 1}
    made: dict[str, Json] = {"version": VERSION}
    if seed is not None:
        made["seed"] = seed
    made["pipeline"] = _steps(node, shared)
    return made


def _steps(node: Node, shared: Mapping[int, str]) -> list[Json]:
    steps: list[Json] = []
    while True:
        arguments = node.written()
        if id(node.source) in shared:
            arguments["shared"] = shared[id(node.source)]
        if node.feeds is None:
            arguments["inputs"] = [_steps(feed, shared) for feed in node.inputs]
        steps.insert(0, {node.kind: arguments})
        if node.feeds != 1:
            return steps
        node = node.input
