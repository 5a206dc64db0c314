"""What may make images, by name."""

from __future__ import annotations

from typing import Literal, get_args

from dataflow.given import check_choice

__all__ = ["Backend", "check_backend"]

# "auto" is DALI where batches go to a GPU of CUDA's and the extra `dali` is installed, else "cpu": the CPU kernel.
Backend = Literal["auto", "cpu", "dali"]


def check_backend(asked: object) -> None:
    """There is such a backend.

    Raises:
        PlanError: there is none.
    """
    check_choice("", "backend", asked, get_args(Backend))
