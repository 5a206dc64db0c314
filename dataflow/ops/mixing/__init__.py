"""Operators behind `batch` that mix rows of a batch: each with the one before it.

step.py     what they have in common: labels, draws, which rows are mixed
rows.py     rows blended, and parts of them pasted, in place

The operators: mixup.py, cutmix.py, and mixup_or_cutmix.py, one of the two for each batch.
"""

from dataflow.ops.mixing import cutmix, mixup, mixup_or_cutmix

__all__ = ["cutmix", "mixup", "mixup_or_cutmix"]
