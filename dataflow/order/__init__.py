"""The order of samples: arithmetic only, no I/O, nothing to keep but a position.

philox.py         Philox4x32-10 words for (seed, turn, what) and sample ids
permute.py        permutations from a sort of Philox words; a Feistel bijection above ten million
selection.py      packed bits with rank and select: the rows that a filter keeps
stream.py         fragments in file order, and what take, concat, zip, select, shuffle, ... make of them
slices.py         what a shuffle permutes: pieces, and slices of those longer than the window
sequence.py       the row sequence of one pass, in file order or permuted
borders.py        where the windows of one lane begin in one pass
lanes.py          which rows of which pass a lane holds
windows.py        spans and windows: which rows of which fragments, in which order
epoch.py          the windows of every lane of one epoch, from any row on
deal.py           rows dealt round-robin from lanes of any length
batches.py        which rows of which lane a rank takes at a step
reads.py          how many lanes each rank reads
reach.py          which lanes a rank reads from where these have no known length
chairman.py       the rule by which sources take turns in a mixture, exact within one sample
mixture.py        the weights of a mixture, and their changes
shares.py         the weights as they are asked for: fixed, by size, or by sample number
sigma.py          the schedule of a mixture: the source at every index
mixture_lanes.py  which rows of which source each lane of a mixture has, and how many
quality.py        how good a shuffle is, as a number
"""
