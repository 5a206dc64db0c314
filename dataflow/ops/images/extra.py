"""Whether the libraries that decode and resize images are there."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from dataflow.errors import MissingExtraError

__all__ = ["check_extra"]

_MODULES: Final = ("cv2", "simplejpeg", "PIL", "threadpoolctl")


def check_extra(step: str) -> None:
    """Look for them, without importing them.

    Raises:
        MissingExtraError: one is not installed.
    """
    for module in _MODULES:
        if find_spec(module) is None:
            raise MissingExtraError(f"{step} needs {module}.", extra="image")
