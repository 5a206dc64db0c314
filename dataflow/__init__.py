"""Dataflow: a streaming data engine for model training.

    import dataflow as flow

    pipe = flow.read("data/*.parquet", columns=["tokens"]).shuffle("64MB").seed(7).batch(global_size=256)
    for batch in pipe.loader():
        ...

Everything here is loaded when it is first used, so that importing takes no time.

Folders, each importing only from those above it: errors.py, wording.py, parts.py (loading our own modules) and given.py
(checks on arguments), connectors/ (formats), options.py, byte_sizes.py and cores.py, index/ (what is where), order/
(which rows, when, on whom), graph/ (what a pipeline is), ops/ (operators), optimize/ (rules), execute/ (running it),
loaders/ (feeding a framework), fluent.py and image_verbs.py (the verbs), beginnings.py (where pipelines begin),
recipes/ (ready pipelines), spec/ (pipelines as YAML and JSON), bench/, cli/ and __main__.py (the command).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.parts import load_part as _load_part

if TYPE_CHECKING:
    from dataflow import recipes
    from dataflow.beginnings import concat, from_arrow, from_columns, from_dataset, read, zip
    from dataflow.errors import (
        ConnectorError,
        DataError,
        DataflowError,
        InternalError,
        LoaderClosed,
        MissingExtraError,
        PlanError,
        RankError,
        StageError,
    )
    from dataflow.execute.merge import merge_states
    from dataflow.fluent import Pipeline
    from dataflow.ops.images.statistics import CLIP_MEAN, CLIP_STD, IMAGENET_MEAN, IMAGENET_STD
    from dataflow.spec import load_spec

__version__ = "0.1.0"

__all__ = [
    "CLIP_MEAN",
    "CLIP_STD",
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "ConnectorError",
    "DataError",
    "DataflowError",
    "InternalError",
    "LoaderClosed",
    "MissingExtraError",
    "Pipeline",
    "PlanError",
    "RankError",
    "StageError",
    "concat",
    "from_arrow",
    "from_columns",
    "from_dataset",
    "load_spec",
    "merge_states",
    "read",
    "recipes",
    "zip",
]

_PLACES = {
    "CLIP_MEAN": "dataflow.ops.images.statistics",
    "CLIP_STD": "dataflow.ops.images.statistics",
    "IMAGENET_MEAN": "dataflow.ops.images.statistics",
    "IMAGENET_STD": "dataflow.ops.images.statistics",
    "Pipeline": "dataflow.fluent",
    "concat": "dataflow.beginnings",
    "from_arrow": "dataflow.beginnings",
    "from_columns": "dataflow.beginnings",
    "from_dataset": "dataflow.beginnings",
    "load_spec": "dataflow.spec",
    "merge_states": "dataflow.execute.merge",
    "read": "dataflow.beginnings",
    "zip": "dataflow.beginnings",
}
_FOLDERS = ("recipes",)


def __getattr__(name: str) -> object:
    if name in __all__:
        if name in _FOLDERS:
            return _load_part(f"{__name__}.{name}")
        found: object = getattr(_load_part(_PLACES.get(name, "dataflow.errors")), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'dataflow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
