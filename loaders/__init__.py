"""Feeding a framework.

make.py         the loader of the kind asked for
world.py        which data-parallel rank this process is
plain.py        batches as NumPy or Arrow, without torch
torch.py        batches as torch tensors, and an IterableDataset view
rendezvous.py   how ranks find each other
addresses.py    where a machine may be reached
door.py         the first rank lets the others in
handshake.py    what they say, so that strangers stay out
links.py        their connections
star.py         one round of numbers between them
exchange.py     rounds, run after run, that a rank may leave
"""
