"""What a connector contributes to the contract test: one `CASE` in one file of `connector_cases/`.

    # tests/contracts/connector_cases/parquet.py
    CASE = ConnectorCase(name="parquet", connector=Parquet(), write=write, expected=TABLE, ...)

`cases()` finds the files; nothing needs to be listed anywhere.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from connectors.contract import Connector

__all__ = ["ConnectorCase", "Outcome", "cases"]

Outcome = Literal["error", "bad rows", "fewer rows", "not applicable"]


@dataclass(frozen=True, kw_only=True)
class ConnectorCase:
    """One connector and a small data set of its format, with what the contract expects of it.

    `write(folder)` writes the data set (at least two files and two fragments where the format can have
    them, at least five rows) and returns the files in order; None for a connector that holds its rows
    in memory and names them by `files()`. `expected` has every row of every column, in order, with the
    schema that `scan` gives.

    The three outcomes say what becomes of a damaged file (`not applicable`: nothing is asserted):
    `error`, a DataError that names the file, from `scan` or from `read`; `bad rows`, the row stays and is
    a `BadRow`; `fewer rows`, the file is fine and merely has less in it (as an empty JSONL file).
    """

    name: str
    connector: Connector
    write: Callable[[Path], Sequence[Path]] | None
    expected: pa.Table
    empty: Outcome = "error"  # the last file is cut to zero bytes
    truncated: Outcome = "error"  # the last file is cut to half of its bytes
    foreign: Outcome = "error"  # the last file holds bytes of no known format

    def __str__(self) -> str:
        return self.name


def cases() -> list[ConnectorCase]:
    """Every `CASE` in `connector_cases/`, by file name."""
    folder = Path(__file__).with_name("connector_cases")
    names = sorted(module.name for module in pkgutil.iter_modules([str(folder)]))
    found = [importlib.import_module(f"connector_cases.{name}").CASE for name in names]
    if not all(isinstance(case, ConnectorCase) for case in found):
        raise TypeError(f"a file in {folder} has no ConnectorCase named CASE")
    return found
