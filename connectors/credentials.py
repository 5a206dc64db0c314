"""Which storage options are credentials: not to be written down, nor a part of what a data set is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

__all__ = ["credentials", "is_credential"]

_SECRET = re.compile("key|secret|token|pass|cred", re.IGNORECASE)


def is_credential(name: str) -> bool:
    """Whether an option of this name has a secret for its value."""
    return _SECRET.search(name) is not None


def credentials(options: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    """The names that lead to each credential among storage options, at any depth."""
    for name, value in options.items():
        if is_credential(name):
            yield (name,)
        elif isinstance(value, Mapping):
            yield from ((name, *inner) for inner in credentials(value))
