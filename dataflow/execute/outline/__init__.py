"""What `explain` says beside the steps: how a pipeline will be read, worked out without reading a row.

outline.py  all of it, for one number of ranks
ranks.py    global batches, lanes, and how many lanes every rank reads
sources.py  files, fragments, and compressed streams
shuffling.py  the shuffles: where each permutes, in windows of what
windows.py  fragments, and the windows and slices that they make
memory.py   what must be in memory at once
wording.py  numbers as text
"""

from __future__ import annotations

from dataflow.execute.outline.outline import Outline, outline

__all__ = ["Outline", "outline"]
