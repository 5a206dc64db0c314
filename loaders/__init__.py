"""Feeding a framework.

arguments.py    what a loader is given, and the options that this means
make.py         the loader of the kind asked for
membership.py   which data-parallel rank this process is
ranked.py       a loader that stays true to its rank
backends.py     what may make images, by name
dali/           images made by NVIDIA DALI
output.py       what users get of a batch
plain.py        batches as NumPy or Arrow, without torch
foreign_names.py what arguments of torch's DataLoader are called here
torch.py        batches as torch tensors, and an IterableDataset view
watch.py        whether ranks that exchange nothing run the same
begins.py       what they call the same begin
notes.py        what they leave for each other
group_store.py  where
meet.py         the ranks of one loader meet
rendezvous.py   how they find each other
waiting.py      what is said while one waits
addresses.py    where a machine may be reached
door.py         the first rank lets the others in
handshake.py    what they say, so that strangers stay out
exchange.py     what they tell each other, run after run, which a rank may leave
star.py         one round of numbers between them
links.py        their connections
"""
