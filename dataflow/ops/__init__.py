"""The operators, one file each: what the user writes, the frozen node, and its kernel together.

To add one, write its file and name it here; `dataflow/fluent.py` gives it its place among the verbs of
`flow.Pipeline`. docs/operators.md walks through an example.

What several of them share:

forms.py          how their arguments stand in specs
function_step.py  steps that make rows by calling a user's function
selecting.py      steps whose kept rows are found in one pass beforehand
condition_key.py  a short text by which the condition of a filter is known again

images/           what is done to images
mixing/           what mixes the rows of a batch
"""

from dataflow.ops import (
    batch,
    cast,
    concat,
    drop,
    field,
    filter,
    flat_map,
    images,
    map,
    mixing,
    nulls,
    pad,
    read,
    rename,
    repeat,
    select,
    shuffle,
    skip,
    split,
    take,
    zip,
)

__all__ = [
    "batch",
    "cast",
    "concat",
    "drop",
    "field",
    "filter",
    "flat_map",
    "images",
    "map",
    "mixing",
    "nulls",
    "pad",
    "read",
    "rename",
    "repeat",
    "select",
    "shuffle",
    "skip",
    "split",
    "take",
    "zip",
]
