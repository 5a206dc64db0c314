"""`dataflow demo`: a training that is killed half-way and goes on exactly, on data made on the spot.

run.py        the whole demo, from making the data to the report
size.py       how much of everything
images.py     JPEG crops of real photographs, in tar shards
text.py       the sources of Python's standard library as rows of bytes, in Parquet
pipelines.py  the two pipelines, and how an image is decoded
peer.py       the same batches from torch's DataLoader
model.py      the small model
job.py        what one process has to do
rank.py       the process of one rank
order.py      the process that indexes the data and writes down the order without an interruption
processes.py  starting ranks, hearing what they do, killing them
proof.py      whether the ids before and after are those of the uninterrupted run
figures.py    samples a second, first batch, stall, memory
report.py     what the user sees
"""

from __future__ import annotations

from bench.demo.run import run_demo

__all__ = ["run_demo"]
