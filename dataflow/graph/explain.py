"""A pipeline as text: the steps as they were written, and as the rules have rewritten them."""

from __future__ import annotations

from collections.abc import Callable

from dataflow.graph.node import Node, split_at_batch

__all__ = ["explain", "tree"]


def explain(node: Node, optimize: Callable[[Node], Node]) -> str:
    """Both trees, one step a line, and the columns that come out."""
    below, batch_steps = split_at_batch(node)
    after = optimize(below)
    for step in batch_steps:
        after = step.over(after)
    schema = node.schema
    columns = (
        "known when its functions have run"
        if schema is None
        else ", ".join(f"{f.name}: {f.type}" for f in schema)
    )
    return f"as written\n{tree(node)}\nas it runs\n{tree(after)}\ncolumns: {columns}"


def tree(node: Node, depth: int = 1) -> str:
    """A step and those that feed it, the last step first."""
    line = "  " * depth + node.label()
    notes = _notes(node)
    lines = [f"{line}  [{', '.join(notes)}]" if notes else line]
    lines += [tree(feed, depth + 1) for feed in node.inputs]
    return "\n".join(lines)


def _notes(node: Node) -> list[str]:
    traits = node.traits
    notes = []
    if traits.selects:
        notes.append("index work: kept rows are found in one pass beforehand")
    if not traits.keeps_rows:
        notes.append("changes the number of rows: lane by lane")
    if traits.holds_gil:
        notes.append("Python: holds the GIL")
    if traits.random:
        notes.append(f"random, key {node.key!r}" if node.key else "random")
    return notes
