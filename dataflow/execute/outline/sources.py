"""The sources of a pipeline: files, fragments, and compressed streams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from connectors.forward import codec_of
from dataflow.graph.node import Node, distinct_sources
from dataflow.index.index import Index
from dataflow.wording import counted

__all__ = ["SourceFacts", "sources_of"]


@dataclass(frozen=True, kw_only=True)
class SourceFacts:
    """What one source is made of; `compressed_files` can only be read from their start on."""

    name: str
    format: str
    files: int
    fragments: int
    rows: int
    compressed_files: int

    def lines(self) -> list[str]:
        """One fact a line."""
        lines = [
            f"{self.name}: {self.format}, {counted(self.files, 'file')}, {counted(self.fragments, 'fragment')}, "
            f"{counted(self.rows, 'row')}"
        ]
        if self.compressed_files:
            lines += [
                f"{self.name}: {counted(self.compressed_files, 'compressed file')}, one fragment each, read forward",
                "  each is decoded once per lane in it, and a restore inside it reads from its start",
                "  with lanes=1 a rank decodes each once; re-sharded into smaller files, less is read twice",
            ]
        return lines


def sources_of(node: Node) -> tuple[SourceFacts, ...]:
    """The sources in the order of their numbers, each once."""
    return tuple(_facts(source.index) for source in distinct_sources(node))


def _facts(index: Index) -> SourceFacts:
    return SourceFacts(
        name=index.name,
        format=index.connector.name,
        files=len(index.files),
        fragments=len(index.fragments),
        rows=index.rows,
        compressed_files=_compressed(index),
    )


def _compressed(index: Index) -> int:
    """The files that are one fragment because nothing can be found in the middle of their compressed stream."""
    if index.traits.row_ranges:
        return 0
    numbers, fragments = np.unique(index.fragments.file, return_counts=True)
    names = index.files.names.take(numbers[fragments == 1]).to_pylist()
    return sum(codec_of(str(name)) is not None for name in names)
