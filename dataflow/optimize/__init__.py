"""Rules that rewrite a pipeline before it runs: one file each, run in the order of `rules.py`."""
