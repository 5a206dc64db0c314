"""Feeding a framework.

world.py      which data-parallel rank this process is
plain.py      batches as NumPy or Arrow, without torch
torch.py      batches as torch tensors, and an IterableDataset view
exchange.py   what ranks tell each other, over a gloo group
"""
