"""`flow.recipes.clip_pairs`."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from photograph_files import FORMS

from dataflow.errors import DataflowError, PlanError
from dataflow.recipes import clip_pairs

WITH_TEXTS = [form for form in FORMS if form != "class folders"]


def letters(text: str) -> torch.Tensor:
    """A tokenizer as OpenCLIP's: (1, 12) of int64."""
    return torch.tensor([[ord(letter) for letter in text.ljust(12)]])


@pytest.fixture(params=WITH_TEXTS)
def pairs(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    FORMS[request.param](tmp_path)
    return tmp_path


def test_images_of_every_form_come_with_their_texts(pairs: Path) -> None:
    with clip_pairs(pairs, size=16, batch_size=10).loader() as loader:
        (batch,) = loader
    assert batch.keys() == {"image", "text"}
    assert (batch["image"].shape, batch["image"].dtype) == ((10, 3, 16, 16), torch.float32)
    assert sorted(batch["text"]) == [f"photograph {number}" for number in range(10)]


def test_texts_become_tokens_beside_their_images(pairs: Path) -> None:
    told = clip_pairs(pairs, size=16, batch_size=10, seed=1)
    asked = clip_pairs(pairs, size=16, batch_size=10, seed=1, tokenize=letters, length=12)
    with told.loader() as one, asked.loader() as other:
        (texts,), (tokens,) = one, other
    assert tokens.keys() == {"image", "tokens"}
    assert (tokens["tokens"].shape, tokens["tokens"].dtype) == ((10, 12), torch.int64)
    assert torch.equal(tokens["image"], texts["image"])
    assert tokens["tokens"].tolist() == [letters(text)[0].tolist() for text in texts["text"]]
    assert repr(pickle.loads(pickle.dumps(asked))) == repr(asked)


def test_tokens_of_another_number_are_an_error(tmp_path: Path) -> None:
    FORMS["parquet"](tmp_path)
    pipe = clip_pairs(tmp_path, size=16, batch_size=10, tokenize=letters)
    with pipe.loader() as loader, pytest.raises(DataflowError, match="tokens"):
        next(iter(loader))
    with pytest.raises(PlanError, match="length=0") as caught:
        clip_pairs(tmp_path, tokenize=letters, length=0)
    assert "as 77" in caught.value.hint


def test_class_folders_have_no_texts(tmp_path: Path) -> None:
    FORMS["class folders"](tmp_path)
    with pytest.raises(PlanError, match=r"which column has texts is not known; there are path \(string\)"):
        clip_pairs(tmp_path)


def test_the_recipes_are_loaded_when_they_are_first_used() -> None:
    code = "import sys, dataflow as flow; print('dataflow.recipes' in sys.modules, flow.recipes.clip_pairs.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "clip_pairs"]
