"""`python -m dataflow`: the same as the `dataflow` command."""

from __future__ import annotations

import sys

from dataflow.cli import main

if __name__ == "__main__":
    sys.exit(main())
