"""Pipelines from YAML and JSON files: `load_spec` reads what `Pipeline.to_spec` writes, and what people write.

document.py  text into plain data, every part of which knows its line
build.py     plain data into a pipeline, checked argument by argument
load.py      the file as a whole: version, seed, pipeline, loader options

docs/spec.md has the layout.
"""

from __future__ import annotations

from dataflow.spec.load import LoaderSection, Spec, load_spec, open_spec

__all__ = ["LoaderSection", "Spec", "load_spec", "open_spec"]
