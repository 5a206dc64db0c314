"""The `dataflow` command, and `python -m dataflow`: Ctrl-C ends it quietly however early it comes."""

from __future__ import annotations

import os
import signal
import sys

from dataflow.parts import load_part

__all__ = ["main"]

_STOPPED = 130


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        _load()
        code: int = load_part("dataflow.cli").main()
    except KeyboardInterrupt:
        return _STOPPED
    except ImportError as error:
        if error.path is None:
            raise
        print(f"error: {error}", file=sys.stderr)
        return 1
    return code


def _load() -> None:
    """Import the command line, which takes a second, and in which there is nothing to be saved at Ctrl-C.

    An exception in the middle of it would be some library's own by the time it arrived here, or print a traceback.
    """
    # Someone else's handler, as that of a shell which starts us in the background, stays.
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, lambda *_: os._exit(_STOPPED))
    load_part("dataflow.cli")
    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    sys.exit(main())
