"""How DALI decodes and augments images on the processor, with its own reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dataflow.ops.images.statistics import IMAGENET_MEAN, IMAGENET_STD

__all__ = ["DaliLoader"]

_SCALE: Final = (0.08, 1.0)
_RATIO: Final = (3 / 4, 4 / 3)


class DaliLoader:
    """Shuffled batches of the images in class folders, as tensors of torch; `threads` are those of the pipeline.

    One `for` is one epoch, of whole batches.
    """

    def __init__(self, folder: Path, *, side: int, batch: int, threads: int) -> None:
        import nvidia.dali
        from nvidia.dali.plugin import pytorch

        # It says of some of its names what they are, and hides the others from type checkers.
        dali: Any = nvidia.dali
        plugin: Any = pytorch
        fn, types = dali.fn, dali.types
        pipeline = dali.Pipeline(batch_size=batch, num_threads=threads, device_id=None)
        with pipeline:
            files, labels = fn.readers.file(file_root=str(folder), random_shuffle=True, name="files")
            # Decodes no more of a file than the part that is drawn.
            parts = fn.decoders.image_random_crop(
                files, device="cpu", random_area=_SCALE, random_aspect_ratio=_RATIO
            )
            squares = fn.resize(parts, size=[side, side], interp_type=types.INTERP_LINEAR, antialias=True)
            tensors = fn.crop_mirror_normalize(
                squares,
                dtype=types.FLOAT,
                output_layout="CHW",
                mean=[255 * value for value in IMAGENET_MEAN],
                std=[255 * value for value in IMAGENET_STD],
                mirror=fn.random.coin_flip(),
            )
            pipeline.set_outputs(tensors, labels)
        self._batches = plugin.DALIGenericIterator(
            [pipeline],
            ["image", "label"],
            reader_name="files",
            last_batch_policy=plugin.LastBatchPolicy.DROP,
            auto_reset=True,
        )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The batches of an epoch: `image` float32 (batch, 3, side, side) and `label`."""
        for (made,) in self._batches:
            yield made
