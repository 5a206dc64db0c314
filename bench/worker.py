"""The fresh process in which one side of a case runs once, or its data is made.

    python -m bench.worker prepare CASE quick|full
    python -m bench.worker run CASE quick|full SIDE FOLDER

It prints one line of JSON: the folder of the data; or the side's figures, and the memory of the interpreter with
its imports.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from bench.cases import find_case
from bench.memory import tree_pss_bytes

__all__ = ["main"]


def main(arguments: Sequence[str]) -> None:
    """Make the data of a case, or run one side of it."""
    task, name, scale, *rest = arguments
    case, quick = find_case(name), scale == "quick"
    if task == "prepare":
        print(json.dumps({"folder": str(case.prepare(quick))}))
        return
    side_name, folder = rest
    side = case.side(side_name)
    for module in side.imports:
        import_module(module)
    before = tree_pss_bytes(os.getpid())
    figures = side.run(Path(folder), quick)
    print(json.dumps({**figures, "imports_bytes": before}))


if __name__ == "__main__":
    main(sys.argv[1:])
