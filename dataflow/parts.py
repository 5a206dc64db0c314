"""`load_part`: importing a module of ours when it is needed, though a file of another may have its package's name."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

__all__ = ["load_part"]

# The packages that lie beside `dataflow` and not in it.
_BESIDE: Final = ("connectors", "loaders", "bench")
_HERE: Final = Path(__file__).resolve().parents[1]


def load_part(name: str) -> ModuleType:
    """Import a module of ours.

    Raises:
        ImportError: it cannot be imported; where a file or folder hides a package of ours, names that.
    """
    try:
        return import_module(name)
    except ImportError as error:
        for package in _BESIDE:
            other = _found_elsewhere(package)
            if other is not None:
                raise ImportError(
                    f"{other} hides the package {package!r} of Dataflow: Python finds it first. Rename it, or start "
                    "Python in another folder.",
                    name=package,
                    path=str(other),
                ) from error
        raise


def _found_elsewhere(package: str) -> Path | None:
    """The file or folder that Python takes for a package of ours; None where that is ours."""
    loaded = sys.modules.get(package)
    spec = find_spec(package) if loaded is None else loaded.__spec__
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or ()) or [spec.origin or ""]
    found = Path(places[0])
    return None if _HERE / package == found.resolve() else found
