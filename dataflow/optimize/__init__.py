"""Rules that rewrite a pipeline before it runs: one file each.

rules.py            the rules in their order, and why in this order
name_draws.py       random draws are named before anything moves
push_filter.py      conditions move to the sources, and become index work there
place_shuffle.py    a shuffle behind several rows of one permutes what each window gave
push_projection.py  columns that nobody needs are not read
fuse_columns.py     neighbours that pick or name columns become one step
place.py            no rule: whether a step may stand where it is written
"""
