"""From the steps of a spec to a pipeline. Operators are found by their registered names, and say themselves
what they may be given."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module

from connectors.contract import Json
from dataflow.errors import PlanError, near
from dataflow.fluent import Pipeline
from dataflow.graph.arguments import PLAIN, Argument, FindFunction, check
from dataflow.graph.node import Node, Source, makes_batches, walk
from dataflow.graph.registry import node_kinds, node_named
from dataflow.spec.document import Document

__all__ = ["Builder"]

Path = tuple[str | int, ...]
_SHARED = Argument(key="shared", name="shared", type=str | None, form=PLAIN)
_INPUTS = Argument(key="inputs", name="inputs", type=list[object], form=PLAIN, required=True)


@dataclass
class Builder:
    """Builds the pipelines of one document; reads with one `shared` name share their source."""

    document: Document
    find: FindFunction
    _shared: dict[str, tuple[Source, dict[str, Json]]] = field(default_factory=dict)

    def pipeline(self, steps: Json, path: Path) -> Pipeline:
        """The pipeline of a list of steps.

        Raises:
            PlanError: a step is wrong; with its line.
            ConnectorError, DataError, MissingExtraError: files cannot be read; with the line of the step.
        """
        with self.document.at(*path):
            if not isinstance(steps, list) or not steps:
                raise PlanError("a pipeline is a list of steps.", hint='begin it with - read: {url: "..."}')
        made: Pipeline | None = None
        for place, step in enumerate(steps):
            made = self._step(made, step, (*path, place))
        assert made is not None
        return made

    def _step(self, before: Pipeline | None, step: Json, path: Path) -> Pipeline:
        with self.document.at(*path):
            name, given = _named(step)
        path = (*path, name)
        with self.document.at(*path):
            kind = _kind(name)
            if (before is None) == (kind.feeds == 1):
                raise PlanError(
                    f"{name} needs a step in front of it."
                    if before is None
                    else f"{name} stands behind another step, and has a source of its own.",
                    hint='begin with - read: {url: "..."}'
                    if before is None
                    else "put it first, or join both with concat or zip",
                )
            extra = {0: (_SHARED,), None: (_INPUTS,)}.get(kind.feeds, ())
            values = check((*kind.arguments(), *extra), given, name, self.find)
        if before is not None:
            with self.document.at(*path):
                return before.then(kind.from_arguments((before.node,), values))
        if kind.feeds is None:
            values.pop("inputs")
            inputs = self._inputs(given["inputs"], (*path, "inputs"))
            with self.document.at(*path):
                return _checked(kind.from_arguments(inputs, values))
        with self.document.at(*path):
            label = values.pop("shared", None)
            node = kind.from_arguments((), values)
            return _checked(self._sharing(str(label), node) if label is not None else node)

    def _inputs(self, pipelines: Json, path: Path) -> tuple[Node, ...]:
        nodes = []
        with self.document.at(*path):
            if not isinstance(pipelines, list) or not pipelines:
                raise PlanError("there is nothing to join.", hint="inputs is a list of lists of steps")
        for place, steps in enumerate(pipelines):
            node = self.pipeline(steps, (*path, place)).node
            with self.document.at(*path, place):
                if makes_batches(node):
                    raise PlanError("an input makes batches.", hint="put batch behind the join")
            nodes.append(node)
        return tuple(nodes)

    def _sharing(self, label: str, node: Node) -> Node:
        source, written = next((s.source, s.written()) for s in walk(node) if s.source is not None)
        first, wanted = self._shared.setdefault(label, (source, written))
        if written != wanted:
            raise PlanError(
                f"two sources are shared as {label!r}, and differ.", hint="give them the same arguments"
            )
        return _over(node, first)


def _named(step: Json) -> tuple[str, dict[str, Json]]:
    if isinstance(step, dict) and len(step) == 1:
        ((name, given),) = step.items()
        if given is None:
            return name, {}
        if isinstance(given, dict):
            return name, given
    raise PlanError(
        f"{step!r} is no step." if not isinstance(step, dict) else "a step is one name with its arguments.",
        hint="write it as - shuffle: {window: 64MB}, each with a dash of its own",
    )


def _kind(name: str) -> type[Node]:
    # Operators are registered when their module is loaded.
    import_module("dataflow.ops")
    usable = [known for known, kind in node_kinds().items() if kind.in_specs]
    if name not in usable:
        raise PlanError(f"there is no operator {name!r}.", hint=near(name, usable, what="operator"))
    return node_named(name)


def _over(node: Node, source: Source) -> Node:
    if node.source is not None:
        return node.with_source(source)
    return node.over(*[_over(feed, source) for feed in node.inputs])


def _checked(node: Node) -> Pipeline:
    made = Pipeline(node)
    made.schema  # noqa: B018 - wrong columns and missing files fail here, on the line that has them
    return made
