"""Connectors: how rows are read from files, one format a file. Nothing here knows of the engine.

contract.py   what a connector is: `Connector`, `Fragment`, `Chunk`, `Scan`
store.py      `Store`: an fsspec filesystem opened for reading
paths.py      `resolve`: a URL, pattern or folder becomes a list of files
registry.py   `choose`: a name or a file suffix becomes a connector, loaded when it is first asked for
conform.py    `conform`: the rows of one file in the schema of the whole source
tensors.py    dense columns as NumPy arrays and back, without a copy

parquet.py    `Parquet`: a fragment is a row group
arrow_ipc.py  `ArrowIpc`: Arrow files, Feather and streams; a fragment is a record batch
tar.py        `Tar`: WebDataset shards; a fragment is a run of samples
jsonl.py      `Jsonl`: one JSON object a line; a fragment is a range of lines
folder.py     `Folder`: one file a row; a fragment is a slice of the listing
memory.py     `InMemory` and `Dataset`: rows that are in memory already
"""
