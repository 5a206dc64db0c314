"""Mixup and cutmix: the definition, one value after the other, and the same batches wherever they are made."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import dataflow as flow
from dataflow.errors import DataError, PlanError
from dataflow.graph.draw import Draw
from dataflow.ops.mixing.rows import blend, part_of
from dataflow.order.philox import draws, key_of

ROWS, CLASSES, SEED = 26, 5, 11
Batch = dict[str, Any]


def _pixels(number: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(number).integers(0, 256, (8, 6, 3), np.uint8)


def _rows(rows: int = ROWS) -> flow.Pipeline:
    pixels = np.stack([_pixels(number) for number in range(rows)])
    made = flow.from_columns({"image": pixels, "label": np.arange(rows) % CLASSES, "n": np.arange(rows)})
    return made.seed(SEED)


def _batches(pipe: flow.Pipeline, **more: Any) -> list[Batch]:
    with pipe.loader(output="numpy", ids=True, **more) as loader:
        return list(loader)


def _generator(ids: list[int], key: str, epoch: int = 0) -> np.random.Generator:
    """The generator of a batch of these samples: keyed by the sum of their words."""
    words = draws(key_of(SEED, epoch, key), np.array(ids), 2).tolist()
    number = sum(low + (high << 32) for low, high in words) % (1 << 64)
    return Draw(SEED, epoch, key).generator(number)


def _one_hot(number: int) -> npt.NDArray[np.float32]:
    shares: npt.NDArray[np.float32] = np.eye(CLASSES, dtype=np.float32)[number % CLASSES]
    return shares


def _blended(own: npt.NDArray[Any], before: npt.NDArray[Any], share: float) -> npt.NDArray[np.float32]:
    """As torchvision does it in float32: rolled.mul(1 - share).add(own.mul(share))."""
    first, second = torch.from_numpy(own.copy()), torch.from_numpy(before.copy())
    mixed: npt.NDArray[np.float32] = second.mul(1.0 - share).add(first.mul(share)).numpy()
    return mixed


def _floats(number: int) -> npt.NDArray[np.float32]:
    scaled: npt.NDArray[np.float32] = _pixels(number).transpose(2, 0, 1) * np.float32(1 / 255)
    return scaled


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "channels_last"])
@pytest.mark.parametrize("lanes", [1, 2])
def test_mixup_blends_each_row_with_the_one_before(layout: Any, lanes: int) -> None:
    pipe = _rows().shuffle(8).to_dtype("image", layout=layout).batch(global_size=6, lanes=lanes)
    for batch in _batches(pipe.mixup("image", "label", num_classes=CLASSES)):
        ids = batch["__id__"].tolist()
        share = _generator(ids, "mixup:0").beta(0.2, 0.2)
        images = batch["image"].transpose(0, 3, 1, 2) if layout == "NHWC" else batch["image"]
        for place, number in enumerate(batch["n"].tolist()):
            before = int(batch["n"][place - 1])
            assert number == ids[place]
            assert np.array_equal(images[place], _blended(_floats(number), _floats(before), share))
            wanted = _blended(_one_hot(number), _one_hot(before), share)
            assert np.array_equal(batch["label"][place], wanted)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "channels_last"])
def test_cutmix_pastes_a_part_of_the_row_before(dtype: Any, layout: Any) -> None:
    plain = _rows().shuffle(8).to_dtype("image", dtype, layout=layout).batch(6)
    cut = plain.cutmix("image", "label", num_classes=CLASSES, layout=layout)
    for batch, whole in zip(_batches(cut), _batches(plain), strict=True):
        rng = _generator(batch["__id__"].tolist(), "cutmix:0")
        share = rng.beta(1.0, 1.0)
        column, line = int(rng.integers(6)), int(rng.integers(8))
        half_height, half_width = (int(0.5 * math.sqrt(1 - share) * side) for side in (8, 6))
        inside = np.array([
            [line - half_height <= y < line + half_height and column - half_width <= x < column + half_width
             for x in range(6)] for y in range(8)
        ])  # fmt: skip
        mask = inside[..., None] if layout == "NHWC" else inside
        assert np.array_equal(
            batch["image"], np.where(mask, np.roll(whole["image"], 1, axis=0), whole["image"])
        )
        share = 1.0 - int(inside.sum()) / 48
        for place, number in enumerate(batch["n"].tolist()):
            wanted = _blended(_one_hot(number), _one_hot(int(batch["n"][place - 1])), share)
            assert np.array_equal(batch["label"][place], wanted)


def test_one_of_the_two_is_drawn_for_each_batch() -> None:
    plain = _rows(160).to_dtype("image").batch(4)
    both = plain.mixup_or_cutmix("image", "label", num_classes=CLASSES, switch=0.3, mixup=1.0)
    cuts = 0
    for batch, whole in zip(_batches(both), _batches(plain), strict=True):
        is_cut = _generator(batch["__id__"].tolist(), "mixup_or_cutmix:0").random() < 0.3
        rolled = np.roll(whole["image"], 1, axis=0)
        taken = (batch["image"] == whole["image"]) | (batch["image"] == rolled)
        assert taken.all() == is_cut
        cuts += is_cut
    assert 0 < cuts < 40


@pytest.mark.parametrize("remainder", ["pad", "keep"])
def test_only_real_rows_of_the_last_batch_are_mixed(remainder: Any) -> None:
    plain = _rows().to_dtype("image").batch(8, remainder=remainder)
    batch = _batches(plain.mixup("image", "label", 1.0, num_classes=CLASSES))[-1]
    whole = _batches(plain)[-1]
    real = np.flatnonzero(batch.get("__valid__", np.ones(len(batch["n"]), np.bool_)))
    share = _generator(batch["__id__"][real].tolist(), "mixup:0").beta(1.0, 1.0)
    assert len(real) == 2
    for place, before in zip(real, np.roll(real, 1), strict=True):
        assert np.array_equal(
            batch["image"][place], _blended(whole["image"][place], whole["image"][before], share)
        )
    padding = np.setdiff1d(np.arange(len(batch["n"])), real)
    assert np.array_equal(batch["image"][padding], whole["image"][padding])
    assert (batch["label"].shape, batch["label"].dtype) == ((len(batch["n"]), CLASSES), np.float32)
    assert batch["label"].sum(axis=1).tolist() == pytest.approx([1.0] * len(batch["n"]))


def _mixed(pipe: flow.Pipeline) -> flow.Pipeline:
    return pipe.mixup("image", "label", num_classes=CLASSES).cutmix("image", "label", num_classes=CLASSES)


PIPES = {
    "known": lambda: _mixed(_rows().shuffle(8).to_dtype("image").batch(global_size=4, lanes=2, remainder="pad")),
    "dealt": lambda: _mixed(
        _rows().shuffle(8).filter(lambda row: row["n"] % 3 != 1).to_dtype("image").batch(global_size=4, lanes=2)
    ),
    "several of a row": lambda: _mixed(
        _rows().to_dtype("image").flat_map(lambda row: [row, row]).batch(global_size=4, lanes=2)
    ),
}  # fmt: skip


def _same(one: Batch, other: Batch) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("name", list(PIPES))
def test_resuming_at_any_batch_yields_the_same_rest(name: str) -> None:
    pipe = PIPES[name]()
    with pipe.loader(output="numpy", ids=True, threads=3) as loader:
        states, batches = [], []
        for _ in range(2):
            for batch in loader:
                batches.append(batch)
                states.append(loader.state_dict())
    for place in (0, 3, len(states) // 2):
        with pipe.loader(output="numpy", ids=True, threads=1) as loader:
            loader.load_state_dict(states[place])
            rest = [batch for _ in range(2) for batch in loader][: len(batches) - place - 1]
        assert all(_same(one, other) for one, other in zip(batches[place + 1 :], rest, strict=False))


def test_each_epoch_and_step_draws_anew() -> None:
    pipe = _rows(8).to_dtype("image").batch(8).mixup("image", "label", num_classes=CLASSES)
    with pipe.mixup("image", "label", num_classes=CLASSES).loader(output="numpy") as loader:
        first, second = [next(iter(loader)) for _ in range(2)]
    assert not np.array_equal(first["image"], second["image"])


def test_each_rank_mixes_its_own_rows_and_ids_stay() -> None:
    pipe = _rows().shuffle(8).to_dtype("image").batch(global_size=8, lanes=2)
    plain = _batches(pipe)
    for rank in range(2):
        mixed = pipe.mixup("image", "label", num_classes=CLASSES)
        for batch, whole in zip(_batches(mixed, rank=rank, world_size=2), plain, strict=True):
            half = slice(4 * rank, 4 * rank + 4)
            assert sorted(batch["__id__"]) == sorted(whole["__id__"][half])
            assert batch["__id__"].tolist() == batch["n"].tolist()
            shares = _generator(batch["__id__"].tolist(), "mixup:0").beta(0.2, 0.2)
            number, before = batch["n"][1], batch["n"][0]
            assert np.array_equal(batch["image"][1], _blended(_floats(number), _floats(before), shares))


def test_replaced_rows_are_said_behind_other_steps() -> None:
    def fail(row: dict[str, Any]) -> dict[str, Any]:
        if row["n"] == 5:
            raise ValueError("bad")
        return row

    pipe = _rows().to_dtype("image").map(fail).batch(13).mixup("image", "label", num_classes=CLASSES)
    first = _batches(pipe.select("image", "label"), on_error="replace")[0]
    assert first["__replaced_by__"][5] >= 0
    assert set(first) == {"image", "label", "__id__", "__replaced_by__"}


def test_two_such_steps_draw_apart_and_a_key_names_the_draws() -> None:
    batch = _rows().to_dtype("image").batch(26)
    named = batch.mixup("image", "label", num_classes=CLASSES, key="mixup:1")
    first = batch.mixup("image", "label", num_classes=CLASSES)
    assert not np.array_equal(_batches(named)[0]["image"], _batches(first)[0]["image"])


def test_mixed_halves_are_rounded_once() -> None:
    values = np.random.default_rng(3).normal(size=(5, 7)).astype(np.float16)
    mixed = values.copy()
    blend(mixed, np.arange(5), 0.3)
    wide = values.astype(np.float32)
    wanted = np.roll(wide, 1, axis=0) * np.float32(0.7) + wide * np.float32(0.3)
    assert np.array_equal(mixed, wanted.astype(np.float16))


def test_a_part_that_leaves_all_or_nothing() -> None:
    assert part_of(8, 6, 1.0, (3, 3))[1] == 1.0
    part, left = part_of(8, 6, 0.0, (4, 3))
    assert (tuple(part), left) == ((0, 8, 0, 6), 0.0)


def test_a_label_that_is_no_class_is_due_with_its_batch() -> None:
    columns = {"image": np.zeros((12, 3, 2, 2), np.float32), "label": np.array([0] * 9 + [7, 0, 0])}
    pipe = flow.from_columns(columns).batch(4).mixup("image", "label", num_classes=2)
    with pipe.loader() as loader:
        batches = iter(loader)
        next(batches), next(batches)
        with pytest.raises(DataError, match="sample 0:9 has the label 7") as raised:
            next(batches)
    assert "filter others out" in str(raised.value.hint)


@pytest.mark.parametrize(("write", "hint"), [
    (lambda p: p.mixup("image", "label", num_classes=5), "behind .batch"),
    (lambda p: p.batch(4).mixup("image", "label", num_classes=5), "to_dtype"),
    (lambda p: p.batch(4).cutmix("image", "label", num_classes=5), "NHWC"),
    (lambda p: p.batch(4).cutmix("image", "image", num_classes=5), "name it once"),
    (lambda p: p.batch(4).cutmix("n", "label", num_classes=5), "one size"),
    (lambda p: p.to_dtype("image").batch(4).mixup("image", "label", 0, num_classes=5), "over 0"),
    (lambda p: p.to_dtype("image").batch(4).mixup("image", "label", num_classes=0), "as 1000"),
    (lambda p: p.to_dtype("image").batch(4).mixup("label", "image", num_classes=5), "to_dtype"),
    (lambda p: p.to_dtype("image").batch(4).mixup("image", "labels", num_classes=5), "label"),
    (lambda p: p.to_dtype("image").batch(4).mixup_or_cutmix("image", "label", num_classes=5, switch=2), "from 0 to 1"),
])  # fmt: skip
def test_what_does_not_fit_is_an_error_where_it_is_written(write: Any, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        write(_rows())
    assert hint in str(raised.value.hint)


def test_what_is_known_only_when_functions_have_run_is_an_error_before_the_first_batch() -> None:
    pipe = _rows().map(lambda row: {"image": row["image"], "label": row["n"]}).batch(4)
    mixed = pipe.mixup("image", "label", num_classes=CLASSES)
    with pytest.raises(PlanError, match="only floats"):
        mixed.loader()


def test_a_spec_says_what_was_written() -> None:
    pipe = (
        _rows()
        .to_dtype("image")
        .batch(4)
        .mixup_or_cutmix("image", "label", num_classes=5, switch=0.25, key="k")
    )
    assert pipe.node.written() == {
        "column": "image", "label": "label", "num_classes": 5, "switch": 0.25, "key": "k",
    }  # fmt: skip


def test_a_spec_with_mixing_is_the_same_pipeline(tmp_path: Any) -> None:
    images = [_pixels(number).ravel().tolist() for number in range(8)]
    table = pa.table({"image": images, "label": list(range(8))})
    pq.write_table(table, tmp_path / "rows.parquet")
    rows = flow.read(str(tmp_path / "*.parquet")).pad({"image": 144}).cast({"image": "float32[144]"})
    pipe = rows.batch(4).mixup("image", "label", 0.4, num_classes=8)
    spec = tmp_path / "train.json"
    spec.write_text(json.dumps(pipe.to_spec()))
    again = flow.load_spec(spec)
    assert again.to_spec() == pipe.to_spec()
    assert all(_same(one, other) for one, other in zip(_batches(pipe), _batches(again), strict=True))
    assert "mixup" in pipe.explain()
