"""Connectors: how rows are read from files, one format a file. Nothing here knows of the engine.

contract.py   what a connector is: `Connector`, `Fragment`, `Chunk`, `Scan`
store.py      `Store`: an fsspec filesystem opened for reading
file_info.py  `FileInfo`: a file as its store shows it, and what tells its versions apart
remote_file.py  `RemoteFile`: a file of a store that goes on where it was when a connection breaks
retry.py      `Retry`: a request that fails for the moment is made again; transient.py tells which failures are such,
              stop.py ends the waits between
credentials.py  which storage options are secrets
paths.py      `resolve`: a URL, pattern or folder becomes a list of files; listing.py looks what is there
registry.py   `choose`: a name or a file suffix becomes a connector, loaded when it is first asked for
conform.py    `conform`: the rows of one file in the schema of the whole source
isolate.py    `isolated`: the rows of a range that are bad, found by halving it
tensors.py    dense columns as NumPy arrays and back, without a copy
fitting.py    `fitted`: values of rows as a column of a type, none of them changed
arrow_types.py  `Arrow`: arrays and types where the stubs do not know their members; which types are lists
bfloat16.py   `BFloat16Type`: a number of 16 bits that NumPy and Arrow do not have
faults.py     what Arrow raises while it reads a file, as our own errors; files that are not as they were indexed
kept.py       `Kept`: what was read last of files, bounded in bytes
readers.py    `Readers`: what a run keeps open of its files between one fragment and the next
scratch.py    `Scratch`: memory that one read after another uses

parquet.py    `Parquet`: a fragment is a row group; parquet_footer.py finds them and the columns,
              parquet_decoded.py keeps what rows turned out to decode to
arrow_ipc.py  `ArrowIpc`: Arrow files, Feather and streams, by record batch; arrow_layout.py finds them,
              arrow_rows.py reads some rows and columns of one
tar.py        `Tar`: WebDataset shards; a fragment is a run of samples. tar_members.py walks the headers, tar_rows.py
              makes columns of members
jsonl.py      `Jsonl`: one JSON object a line; a fragment is a range of lines. forward.py decompresses, lines.py cuts
              at line ends, json_rows.py parses, json_types.py joins the columns of parts
folder.py     `Folder`: one file a row; a fragment is a slice of the listing
memory.py     `InMemory`: Arrow data or columns that are in memory already
dataset.py    `Dataset`: any object with `__len__` and `__getitem__`
"""
