"""`flow.recipes.imagenet_train` and `imagenet_eval`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from photograph_files import COUNT, FORMS, jpeg
from PIL import Image

import dataflow as flow
from dataflow.errors import PlanError
from dataflow.recipes import imagenet_eval, imagenet_train

MEAN, STD = (torch.tensor(values).view(3, 1, 1) for values in (flow.IMAGENET_MEAN, flow.IMAGENET_STD))


def batches(pipe: flow.Pipeline, **options: Any) -> list[dict[str, Any]]:
    with pipe.loader(**options) as loader:
        return list(loader)


@pytest.fixture(params=FORMS)
def photographs(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder with the photographs in one form."""
    FORMS[request.param](tmp_path)
    return tmp_path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    FORMS["parquet"](tmp_path)
    return tmp_path


def test_images_of_every_form_become_the_batches_of_a_training(photographs: Path) -> None:
    made = batches(imagenet_train(photographs, size=16, batch_size=5))
    assert len(made) == 2
    for batch in made:
        assert batch.keys() == {"image", "label"}
        assert (batch["image"].shape, batch["image"].dtype) == ((5, 3, 16, 16), torch.float32)
        assert batch["label"].dtype == torch.int64
    assert sorted(torch.cat([batch["label"] for batch in made]).tolist()) == [0] * 5 + [1] * 5


def test_an_evaluation_shows_the_middle_of_every_image_of_every_form(photographs: Path) -> None:
    made = batches(imagenet_eval(photographs, size=28, batch_size=4))
    valid = torch.cat([batch["__valid__"] for batch in made])
    images = torch.cat([batch["image"] for batch in made])[valid]
    assert len(made) == 3
    assert torch.cat([batch["label"] for batch in made])[valid].tolist() == [0] * 5 + [1] * 5
    for number, image in enumerate(images * STD + MEAN):
        wanted = Image.open(io.BytesIO(jpeg(number)))
        # 256 pixels for 224 are 32 for 28.
        least = min(wanted.size)
        longer = [32 * length // least for length in wanted.size]
        resized = wanted.resize((longer[0], longer[1]), Image.Resampling.BILINEAR)
        left, top = round((resized.width - 28) / 2), round((resized.height - 28) / 2)
        middle = np.asarray(resized.crop((left, top, left + 28, top + 28)), np.float32)
        assert np.abs(image.numpy().transpose(1, 2, 0) * 255 - middle).mean() < 1.5


def test_a_training_that_is_stopped_goes_on_with_the_very_next_batch(photographs: Path) -> None:
    pipe = imagenet_train(photographs, size=16, augment="trivial", erasing=0.5, seed=3, batch_size=2)
    with pipe.loader() as loader:
        whole = list(loader)
    with pipe.loader() as loader:
        iterator = iter(loader)
        next(iterator), next(iterator)
        state = json.loads(json.dumps(loader.state_dict()))
    with pipe.loader() as loader:
        loader.load_state_dict(state)
        rest = list(loader)
    assert len(rest) == len(whole) - 2 == 3
    for batch, wanted in zip(rest, whole[2:], strict=True):
        assert torch.equal(batch["image"], wanted["image"])
        assert torch.equal(batch["label"], wanted["label"])


@pytest.mark.parametrize(("augment", "step"), [("trivial", "trivial_augment"), ("rand", "rand_augment")])
def test_a_policy_stands_between_the_flip_and_normalize(rows: Path, augment: Any, step: str) -> None:
    steps = [*_steps(imagenet_train(rows, augment=augment, erasing=0.1))]
    assert steps[steps.index("random_flip") :] == [
        "random_flip", step, "normalize", "random_erasing", "batch",
    ]  # fmt: skip
    assert not {"trivial_augment", "rand_augment", "random_erasing"} & {*_steps(imagenet_train(rows))}


def _steps(pipe: flow.Pipeline) -> list[str]:
    spec: Any = pipe.to_spec()
    return [name for step in spec["pipeline"] for name in step]


def test_a_recipe_can_be_written_down(rows: Path) -> None:
    for pipe in (imagenet_train(rows, seed=1, size=16, batch_size=5), imagenet_eval(rows, size=16)):
        again = flow.load_spec(pipe.to_spec())
        assert again.to_spec() == pipe.to_spec()
        for one, other in zip(batches(pipe), batches(again), strict=True):
            assert torch.equal(one["image"], other["image"])


def test_numbers_and_batches_are_as_they_are_asked_for(rows: Path) -> None:
    pipe = imagenet_train(
        rows, size=8, dtype="bfloat16", layout="channels_last", mean=(0, 0, 0), std=(1, 1, 1), global_size=6, lanes=3
    )  # fmt: skip
    (batch,) = batches(pipe)
    assert (batch["image"].dtype, len(batch["image"])) == (torch.bfloat16, 6)
    assert batch["image"].is_contiguous(memory_format=torch.channels_last)
    assert 0 <= float(batch["image"].min()) <= float(batch["image"].max()) <= 1
    assert "shorter=20" in repr(imagenet_eval(rows, size=16, resize=20))
    assert "shorter=18" in repr(imagenet_eval(rows, size=16))


def test_the_rows_of_a_pipeline_are_taken_too_and_its_seed(rows: Path) -> None:
    parts = flow.read(rows).seed(5).split({"train": 0.5, "val": 0.5})
    train, val = imagenet_train(parts["train"], size=8, batch_size=1), imagenet_eval(parts["val"], size=8)
    assert train.seed_value == 5
    assert imagenet_train(parts["train"], size=8, seed=6).seed_value == 6
    evaluated = sum(int(batch["__valid__"].sum()) for batch in batches(val))
    assert len(batches(train)) + evaluated == COUNT


def test_class_folders_say_their_names(tmp_path: Path) -> None:
    FORMS["class folders"](tmp_path)
    assert imagenet_train(tmp_path).classes == ("cats", "dogs")


@pytest.mark.parametrize(
    ("recipe", "arguments", "said", "hint"),
    [
        (imagenet_train, {"augment": "auto"}, "augment='auto'", "'trivial'"),
        (imagenet_eval, {"size": (8, 8)}, "size=(8, 8)", "as 224"),
        (imagenet_train, {"image": "picture"}, "there is no column 'picture'", "'image'"),
        (imagenet_eval, {"label": "text"}, "label='text') is string, and there should be whole numbers",
         "image (binary), label (int64), text (string)"),
        (imagenet_train, {"image": "label"}, "image='label') is int64, and there should be files", "image (binary)"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_an_error_on_its_line(
    rows: Path, recipe: Any, arguments: dict[str, Any], said: str, hint: str
) -> None:
    with pytest.raises(PlanError) as caught:
        recipe(rows, **arguments)
    assert said in caught.value.message
    assert hint in caught.value.hint


def test_a_column_that_is_not_found_is_an_error_that_lists_those_there_are() -> None:
    rows = flow.from_columns({"photo": [b""], "label": [0]})
    with pytest.raises(PlanError) as caught:
        imagenet_train(rows)
    assert "which column has files of images is not known" in caught.value.message
    assert "photo (binary), label (int64)" in caught.value.message
    assert caught.value.hint == "name it: image='...'"
    assert repr(imagenet_train(rows, image="photo")).count("rename") == 1


def test_columns_that_only_a_function_knows_are_an_error() -> None:
    rows = flow.from_columns({"number": [1]}).map(lambda row: {"image": b"", "label": 1})
    with pytest.raises(PlanError, match="known only when the function") as caught:
        imagenet_train(rows)
    assert caught.value.hint == "give that step schema="


def test_a_name_counts_only_where_the_column_holds_what_it_should() -> None:
    rows = flow.from_columns({"image": ["a.jpg"], "bytes": [b""], "label": ["cat"], "cls": [0]})
    assert "rename(names={'bytes': 'image', 'cls': 'label'})" in repr(imagenet_train(rows))
