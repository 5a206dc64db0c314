"""A pipeline as plain data."""

from __future__ import annotations

from connectors.contract import Json
from dataflow.graph.node import Node

__all__ = ["to_spec"]


def to_spec(node: Node, seed: int | None) -> dict[str, Json]:
    """The steps as plain data."""
    raise NotImplementedError
