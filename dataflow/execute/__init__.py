"""Running a pipeline: from fragments to batches, in exact order, within a memory limit.

Read in this order:

    compile.py    a pipeline becomes a Plan: sources, stream, operators, batch
    setup.py      what a loader runs with, from a plan and options
    budget.py     how much memory what is for, and how far to work ahead
    selection.py  which rows a filter keeps, found in one pass beforehand
    passes.py     what passes have found, kept as long as the pipeline
    sample.py     rows in file order, on the caller's own thread
    ask.py        questions that run a pipeline: how many rows, which row, how well mixed
    program.py    the operators below `batch`, as one function of a range of a window
    guard.py      a step run so that a row for which it fails costs that row
    dense.py      which columns are NumPy memory; all others stay Arrow
    streams.py    reading fragments piece by piece; files and decoders that stay open
    places.py     where the rows of a window go
    pieces.py     what arrived of a column that stays Arrow
    arrivals.py   the columns of a window while its rows arrive, then in delivery order
    gather.py     reading a window: the spans of its fragments, and rows that cannot be read
    row_work.py   what is to be done to rows, whoever does it
    memory.py     what windows and batches are made of
    workbench.py  what all jobs of a run work with
    last_bad.py   bad rows with which a run ends
    job.py        one window on its way: read, then operated on
    one_by_one.py tasks that take much memory each, one at a time
    due.py        when rows of a window are due
    slots.py      memory of batches that ranges of a window fill side by side
    operate.py    operators ahead of the batches: ranges of windows by need
    needs.py      which rows of a lane a rank delivers
    feed.py       one lane: its windows, started ahead, block by block
    read_ahead.py which lane starts its next window, and when
    segment.py    rows of a block
    row_queue.py  the rows of one lane, from the front; bad ones raise or are replaced
    made.py       what every driver hands on: consecutive batches
    known.py      the driver where lengths are known: batches by arithmetic
    outputs.py    one lane behind row-changing operators, as a queue from a cursor on
    open_lanes.py the lanes that one rank runs, its own and those that its share reaches into
    dealt.py      the driver behind row-changing operators: batches dealt from the lanes
    agree.py      what ranks tell each other one batch ahead
    alike.py      whether ranks that meet run one order
    assemble.py   rows of lanes side by side: one rank's batch
    finish.py     the steps behind `batch`, over a rank's batch
    develop.py    what makes images of whole batches, as the engine sees it
    incoming.py   batches that come from the driver, and those whose images are in the making
    ahead.py      the thread that works ahead of the training loop
    running.py    threads and memory while a loader is iterated
    horizon.py    which epochs are read ahead
    iteration.py  one `for`: the batches of one epoch
    position.py   where a loader stands, and where it stood before the last batches
    course.py     which setup each epoch has: new files join at a resume
    loader.py     what users hold: epochs one after the other, and their states
    state.py      what a state holds
    merge.py      how those of ranks become one
    shape.py      what shapes the order, and in what that of a state differs
    executor.py   where the work of a loader is done, run after run
    pools.py      what every executor offers to the engine
    thread_pools.py threads: one pool for reading, one for computing
    buffers.py    reused memory for windows and batches
    arrow_use.py  the memory that Arrow takes beside them
    room.py       what windows hold when they have been read, and which wait where it is full
    replace.py    bad rows: another row of the window in their place
    mended.py     bad rows that were replaced, until their batch is delivered
    quarantine.py the file that lists bad rows
    row_names.py  the file and the row in it of a sample id
    metrics.py    counters of every stage
    clock.py      the time that a loader is iterated
    advice.py     what they say about the bottleneck
    report.py     both as a table
    trace.py      spans of every stage on one timeline
    whole_file.py small files, written whole or not at all
    writable.py   whether the files beside the batches can be written
    remainder.py  the line in the log about rows that are left out
    outline/      what `explain` says beside the steps
"""
