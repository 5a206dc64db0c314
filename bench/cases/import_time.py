"""How long `import dataflow` takes in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.case import Bar, Case, Figures, Side
from bench.data import data_folder

__all__ = ["CASE"]

_TIMED = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def _prepare(quick: bool) -> Path:
    return data_folder()


def _import(folder: Path, quick: bool) -> Figures:
    # The first run compiles and fills the page cache.
    return {
        f"{module.replace('.', '_')}_s": min(_seconds(module) for _ in range(3))
        for module in ("dataflow", "dataflow.fluent")
    }


def _seconds(module: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _TIMED.format(module)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


CASE = Case(
    name="import_time",
    summary="`import dataflow` in a fresh interpreter, the best of three; the verbs are loaded when first used",
    prepare=_prepare,
    sides=(Side(name="dataflow", run=_import),),
    bars=(
        Bar(label="import dataflow", figure="dataflow_s", side="dataflow", unit="s", at_most=0.3),
        Bar(label="with all verbs", figure="dataflow_fluent_s", side="dataflow", unit="s"),
    ),
)
