"""What mixes the rows of a batch."""

from __future__ import annotations

from pathlib import Path

from operator_case import OperatorCase, pictures

import dataflow as flow


def batches(folder: Path) -> flow.Pipeline:
    floats = pictures(folder).select("image", "label").to_dtype("image")
    return floats.batch(global_size=6, lanes=3, remainder="pad")


CASES = [
    OperatorCase(
        operator="mixup", about="floats", build=lambda f: batches(f).mixup("image", "label", num_classes=4)
    ),
    OperatorCase(
        operator="cutmix", about="floats", build=lambda f: batches(f).cutmix("image", "label", num_classes=4)
    ),
    OperatorCase(
        operator="mixup_or_cutmix",
        about="floats",
        build=lambda f: batches(f).mixup_or_cutmix("image", "label", num_classes=4),
    ),
]
