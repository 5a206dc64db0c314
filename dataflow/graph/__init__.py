"""What a pipeline is, before anything runs.

block.py     Block: rows in delivery order on their way through operators
image_column.py images of different sizes as one column
rows.py      a block as rows for a user's function, and what it returned as it is then
value_bytes.py  values of columns as bytes that are the same everywhere
calls.py     calling it, and saying where it failed
function_types.py, returned_columns.py  the types of what it returns, and columns of exactly these
draw.py      the random draws of an operator, keyed by sample
node.py      Node and Traits: the questions that rules and engine ask an operator
registry.py  operators by name
pipeline.py  Plan building: the part of `flow.Pipeline` that holds a node
spec.py      a pipeline as YAML, JSON or a dict, and back
arguments.py, expression.py, functions.py  what stands in a spec: arguments, Arrow expressions, Python functions
columns.py   checks on names of columns
explain.py   a pipeline as trees of text: as written, and as it runs
"""
