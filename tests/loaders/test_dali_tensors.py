"""What is handed over as tensors of torch, by the code for a GPU over memory of the host, is what NumPy gets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from dali_case import MEAN, STD, needs_dali
from photographs import encoded, photograph

import dataflow as flow

pytestmark = needs_dali


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from loaders.dali import develop
    from loaders.dali.hand_over import ToGpu

    class OverHostMemory(ToGpu):
        """There is no stream to wait on, and nothing is sent."""

        stream: object = None

        def __init__(self) -> None:
            self._device = torch.device("cpu")

        def _sent(self, images: npt.NDArray[Any]) -> torch.Tensor:
            signed = images.view(np.int16) if images.dtype == np.uint16 else images
            return torch.from_numpy(signed)

    monkeypatch.setattr(develop, "ToHost", OverHostMemory)


def rows(odd: bytes) -> flow.Pipeline:
    files = [encoded(photograph(row, 120, 160)) for row in range(8)]
    files[2] = odd
    pipe = flow.from_columns({"image": files, "label": list(range(8))})
    return pipe.decode_image("image").random_resized_crop("image", (40, 48)).random_flip("image")


def taken(pipe: flow.Pipeline) -> list[torch.Tensor]:
    with pipe.batch(4).loader(backend="dali", threads=2) as loader:
        return [batch["image"] for batch in loader]


ODD = {"PNG": encoded(photograph(2, 120, 160), "PNG"), "JPEG": encoded(photograph(2, 120, 160))}
KINDS = [("uint8", "NHWC"), ("float16", "NCHW"), ("bfloat16", "channels_last"), ("float32", "channels_last")]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(("dtype", "layout"), KINDS)
def test_tensors_are_handed_over_as_arrays_are(
    odd: str, dtype: Any, layout: Any, request: pytest.FixtureRequest
) -> None:
    pipe = rows(ODD[odd])
    if dtype == "uint8":
        pipe = pipe.to_dtype("image", dtype, layout=layout)
    else:
        pipe = pipe.normalize("image", MEAN, STD, dtype=dtype, layout=layout)
    arrays = taken(pipe)
    request.getfixturevalue("as_on_a_gpu")
    for tensor, array in zip(taken(pipe), arrays, strict=True):
        assert tensor.dtype == array.dtype
        assert tensor.stride() == array.stride()
        assert torch.equal(tensor, array)


@pytest.mark.usefixtures("as_on_a_gpu")
def test_what_was_handed_over_stays_while_others_are_made() -> None:
    pipe = rows(ODD["JPEG"]).normalize("image", MEAN, STD).batch(2)
    with pipe.loader(backend="dali") as loader:
        kept = [(batch["image"], batch["image"].clone()) for _ in range(3) for batch in loader]
    assert all(torch.equal(image, then) for image, then in kept)
