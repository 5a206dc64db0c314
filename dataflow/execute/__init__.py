"""Running a pipeline: from fragments to batches, in exact order, within a memory limit.

Read in this order:

    compile.py    a pipeline becomes a Plan: sources, stream, operators, batch
    selection.py  filters on columns become bitmaps
    program.py    the operators below `batch`, as one function of a range of a window
    gather.py     reading a window: spans of fragments, scattered into delivery order
    job.py        one window on its way: read, then operated on
    feed.py       one lane: its windows, read ahead, as a queue of rows
    known.py      the driver where lengths are known: batches by arithmetic
    dealt.py      the driver behind row-changing operators: batches dealt from the lanes
    agree.py      what ranks tell each other one batch ahead
    assemble.py   rows of lanes side by side: one rank's batch
    loader.py     epochs, state, and the thread that works ahead
    state.py      what a state holds, and what it must agree with
    pools.py      threads: one pool for reading, one for computing
    buffers.py    reused memory, and the budget that bounds it
    replace.py    bad rows: another row of the window in their place
    quarantine.py the file that lists bad rows
    metrics.py    counters of every stage
    trace.py      spans of every stage on one timeline
"""
