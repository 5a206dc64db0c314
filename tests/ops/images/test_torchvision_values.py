"""Values that torchvision 0.29.1 has for a small image (torchvision.transforms.v2.functional, uint8 tensors)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dataflow.ops.images.pixels.augment import augment
from dataflow.ops.images.pixels.blur import gaussian_blur, sharpen
from dataflow.ops.images.pixels.colour import brighten, contrast, grey_in_place, saturate, shift_hue
from dataflow.ops.images.pixels.levels import autocontrast, equalize, posterize, solarize

Pixels = npt.NDArray[Any]
IMAGE = (np.arange(48).reshape(4, 4, 3) * 37 % 256).astype(np.uint8)
# The pixels behind each function, row by row.
VALUES = {
    "brightness": "00306090c0f0ff03346494c4f4ff07376898c8f8ff0b3b6b9cccfcff0f3f6f9fd0ffff134373a3d3ffff174777a7d7ff",
    "contrast": "2e445a71879db330465c72899fb532485e748aa1b7334a60768ca2b9354b62788ea4ba374d637a90a6bc394f657b92a8",
    "saturation": "0028606097cfff00183e75adbcf3001c538b8bc2fa00316969a0d8ff0021477eb6c5fc00255c9494cbff033a7272a9e1",
    "hue": "34004aa36fb9d8de03814d9706e1575f2b75ce9ae43d0953ac78c2e1e70c8a56a00fea6068347ed7a3ed46125cb581cb",
    "grey": "1e1e1e8d8d8d4848486b6b6bbcbcbc494949b8b8b8272727969696515151747474c5c5c5525252c1c1c13030309f9f9f",
    "sharpness": "00254a6f94b9de03284d7297bce106014275a8e8ff092e53789dc2ff0007487baec5ea0f34597ea3c8ed12375c81a6cb",
    "blur": "6873657a73747468807c6d8073746b7b7479756e807576818a6f7a7e70827b777c6d857c9470837e70887c7c7d668b7d",
    "posterize": "0020406080a0c00020406080a0e00020406080a0e00020406080c0e000204060a0c0e000204060a0c0e000204080a0c0",
    "solarize": "00254a906b462103284d8d68431e062b508a65401b092e5387623d180c3156845f3a150f3459815c371212375c7e5934",
    "autocontrast": "00254b7aa0c5f50025547aa0cff5002f547aa9cff5092f5484a9cffe092f5e84a9d9fe09395e84b3d9fe13395e8eb3d9",
    "equalize": "00254a6f94b9de03284d7297bce1062b50759abfe4092e53789dc2e70c31567ba0c5ea0f34597ea3c8ed12375c81a6cb",
    "rotate": "304051c01c3f5c557a061627496e675b7196799eb49bbe1aa7ca26a63c52785a7f64898235455676769b82a5c80b1b2c",
    "shear": "00254a6f94b9de03284d72972b50759abfe4092e53000000e70c31567ba0c5ea0f000000a3c8ed12375c81a6cb000000",
}
OURS: dict[str, Callable[[Pixels], Pixels]] = {
    "brightness": lambda p: brighten(p, 1.3),
    "contrast": lambda p: contrast(p, 0.6),
    "saturation": lambda p: saturate(p, 1.5),
    "hue": lambda p: shift_hue(p, 0.2),
    "grey": grey_in_place,
    "sharpness": lambda p: sharpen(p, 1.7),
    "blur": lambda p: gaussian_blur(p, (5, 3), 1.2),
    "posterize": lambda p: posterize(p, 3),
    "solarize": lambda p: solarize(p, 0.4),
    "autocontrast": autocontrast,
    "equalize": equalize,
    "rotate": lambda p: augment(p, "Rotate", 30.0, "bilinear", 0),
    "shear": lambda p: augment(p, "ShearX", 0.4, "nearest", 0),
}


@pytest.mark.parametrize("name", VALUES)
def test_pixels_are_those_of_torchvision_within_one_level(name: str) -> None:
    wanted = np.frombuffer(bytes.fromhex(VALUES[name]), np.uint8).reshape(IMAGE.shape)
    assert np.abs(OURS[name](IMAGE).astype(int) - wanted).max() <= 1
