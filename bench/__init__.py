"""The benchmark and the demo: what the engine is worth, measured on this machine.

case.py      `Case`, `Side`, `Bar`: what is measured, by whom, and what it should reach
cases/       one file per case, found by itself
data.py      data sets on disk, made once and kept in a cache folder
rows.py      the rows of those data sets, the same on every machine
shards.py    tar shards
photographs.py   parts of real photographs as JPEG
image_files.py   data sets of them, and of raw pixels
plain.py     how plain pyarrow and torch's DataLoader do the same work
plain_images.py  the same for images: the decoder alone, copying alone, a DataLoader
pillow_transforms.py  what that DataLoader does to an image
dali_images.py   how DALI does it
side_by_side.py  the case that every format of files has
measure.py   the clock, the processor time and the memory of one side
process_tree.py  a process and all that it has started, and their processor time
memory.py    their memory, as its proportional set size
worker.py    the fresh process in which one side of a case runs once
run.py       interleaved repeats
judge.py     medians, spreads, and whether the bars are met
machine.py   what the figures were measured on
report.py    the figures as a table or as JSON
cli.py       `dataflow bench`
device_check/   `python -m bench.device_check`, for a machine with a GPU
demo/        `dataflow demo`
"""
