"""annotate in pipelines: what follows an image is read, moved, checked and delivered as the image is."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import torch
from photographs import encoded, photograph
from PIL import Image

import dataflow as flow
from dataflow.errors import DataError, PlanError

ROWS = 24
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BOX = pa.list_(pa.float32(), 4)


def palette(numbers: npt.NDArray[np.uint8], bits: int = 8) -> bytes:
    """A PNG whose colours have nothing to do with its class numbers."""
    image = Image.fromarray(numbers).convert("P")
    image.putdata(numbers.reshape(-1).tolist())
    image.putpalette([value * 37 % 256 for value in range(3 * 2**bits)])
    file = io.BytesIO()
    image.save(file, "PNG", bits=bits)
    return file.getvalue()


def scene(row: int) -> dict[str, Any]:
    """A photograph, a mask of a box on it, that box row % 3 times, and its upper left corner."""
    height, width = 90 + row, 160 - row
    numbers = np.zeros((height, width), np.uint8)
    numbers[20:60, 30:100] = 7
    return {
        "image": encoded(photograph(row, height, width)), "mask": palette(numbers),
        "boxes": [[30.0, 20.0, 100.0, 60.0]] * (row % 3), "corner": [30, 20], "label": row,
    }  # fmt: skip


@pytest.fixture(scope="module")
def source() -> flow.Pipeline:
    rows = [scene(row) for row in range(ROWS)]
    return flow.from_columns({name: [row[name] for row in rows] for name in rows[0]})


def annotated(source: flow.Pipeline) -> flow.Pipeline:
    return source.shuffle(10).seed(3).decode_image("image").annotate(
        "image", boxes="boxes", keypoints=["corner"], masks=("mask",), mask_fill=255
    )  # fmt: skip


def augmented(source: flow.Pipeline) -> flow.Pipeline:
    return (
        annotated(source).random_rotate("image", 15, filter="bilinear").random_crop("image", 90, padding=3)
        .random_resized_crop("image", (48, 56)).random_flip("image").normalize("image", MEAN, STD)
    )  # fmt: skip


def by_id(
    loaders: list[Any], names: tuple[str, ...] = ("image", "mask", "boxes", "corner")
) -> dict[int, Any]:
    found = {}
    for loader in loaders:
        with loader:
            for batch in loader:
                for place, sample in enumerate(batch["__id__"].tolist()):
                    found[sample] = [np.asarray(batch[name][place]).tobytes() for name in names]
    return found


def test_types_are_declared_before_anything_runs(source: flow.Pipeline) -> None:
    schema = annotated(source).schema
    assert schema is not None
    assert [str(schema.field(name).type) for name in ("boxes", "corner")] == [
        "list<item: fixed_size_list<item: float>[4]>", "fixed_size_list<item: float>[2]",
    ]  # fmt: skip
    assert "image" in str(schema.field("mask").type), "of many sizes, as the images are"
    schema = augmented(source).schema
    assert schema is not None
    assert schema.field("mask").type == pa.fixed_shape_tensor(pa.uint8(), (48, 56, 1))


def test_a_batch_has_all_that_follows_its_images(source: flow.Pipeline) -> None:
    with augmented(source).batch(8).loader() as loader:
        for batch in loader:
            assert batch["image"].shape == (8, 3, 48, 56)
            assert (batch["mask"].shape, batch["mask"].dtype) == ((8, 48, 56, 1), torch.uint8)
            assert set(batch["mask"].unique().tolist()) <= {0, 7, 255}
            assert (batch["corner"].shape, batch["corner"].dtype) == ((8, 2), torch.float32)
            for boxes, label in zip(batch["boxes"], batch["label"].tolist(), strict=True):
                assert (boxes.shape, boxes.dtype) == ((label % 3, 4), torch.float32)
                assert ((boxes >= 0) & (boxes <= torch.tensor([56, 48, 56, 48]))).all()
            batch["mask"].zero_()  # ours


def test_the_same_sample_is_moved_alike_in_any_batch_and_on_any_rank(source: flow.Pipeline) -> None:
    pipe = augmented(source)
    one = by_id([pipe.batch(6).loader(ids=True, threads=1)])
    assert len(one) == ROWS
    ranks = [
        pipe.batch(global_size=12, lanes=2).loader(ids=True, rank=rank, world_size=2) for rank in range(2)
    ]
    assert one == by_id([pipe.batch(global_size=8, lanes=4).loader(ids=True, threads=3)]) == by_id(ranks)


def test_what_follows_a_resume_is_what_would_have_come(source: flow.Pipeline) -> None:
    pipe = augmented(source).batch(7)
    with pipe.loader(ids=True) as loader:
        batches = iter(loader)
        next(batches)
        state = json.loads(json.dumps(loader.state_dict()))
        rest = list(batches)
    with pipe.loader(ids=True) as loader:
        loader.load_state_dict(state)
        for made, wanted in zip(loader, rest, strict=True):
            assert torch.equal(made["mask"], wanted["mask"])
            assert all(map(torch.equal, made["boxes"], wanted["boxes"]))


def _same(row: dict[str, Any]) -> dict[str, Any]:
    return row


def between(pipe: flow.Pipeline) -> flow.Pipeline:
    """A function between steps keeps them apart."""
    return pipe.map(_same, schema=pipe.schema)


def test_steps_that_stand_apart_find_what_follows(source: flow.Pipeline) -> None:
    apart = between(annotated(source)).random_rotate("image", 15, filter="bilinear")
    apart = between(apart).random_crop("image", 90, padding=3)
    apart = between(apart).random_resized_crop("image", (48, 56))
    apart = between(between(apart).random_flip("image")).normalize("image", MEAN, STD)
    assert by_id([augmented(source).batch(8).loader(ids=True)]) == by_id([apart.batch(8).loader(ids=True)])


def test_a_function_of_unknown_columns_may_stand_between(source: flow.Pipeline) -> None:
    pipe = annotated(source).map(_same).random_flip("image", 1).center_crop("image", 64)
    wanted = annotated(source).random_flip("image", 1).center_crop("image", 64)
    assert by_id([pipe.batch(8).loader(ids=True)]) == by_id([wanted.batch(8).loader(ids=True)])


def test_renamed_columns_follow_under_their_new_names(source: flow.Pipeline) -> None:
    renamed = annotated(source).rename({"boxes": "objects", "image": "picture"}).random_flip("picture", 1)
    made = by_id([renamed.batch(8).loader(ids=True)], ("mask", "objects"))
    wanted = annotated(source).random_flip("image", 1).batch(8).loader(ids=True)
    assert made == by_id([wanted], ("mask", "boxes"))


def test_parts_that_are_alike_follow_behind_concat(source: flow.Pipeline) -> None:
    def part() -> flow.Pipeline:
        return source.take(6).decode_image("image").annotate("image", boxes="boxes")

    pipe = flow.concat(part(), part()).random_flip("image", 1).select("boxes")
    with pipe.batch(12).loader() as loader:
        boxes = next(iter(loader))["boxes"]
    assert boxes[1].tolist() == boxes[7].tolist() == [[59, 20, 129, 60]]
    bare = source.take(6).decode_image("image").cast({"boxes": pa.list_(BOX)})
    with pytest.raises(PlanError, match="other columns follow"):
        flow.concat(part(), bare).random_flip("image")


def test_what_follows_an_image_does_so_behind_zip(source: flow.Pipeline) -> None:
    left = source.decode_image("image").annotate("image", boxes="boxes", masks="mask")
    pipe = flow.zip(left, flow.from_columns({"more": list(range(ROWS))})).random_flip("image", 1)
    assert pipe[1]["boxes"].tolist() == [[59, 20, 129, 60]]
    assert np.array_equal(pipe[1]["mask"], left[1]["mask"][:, ::-1])


def test_only_what_is_wanted_is_read(source: flow.Pipeline) -> None:
    text = augmented(source).select("image", "boxes").explain()
    ran = text[text.index("as it runs") :]
    assert "columns=('image', 'boxes')" in ran
    rows = [scene(row) for row in range(4)]
    rows[2]["mask"] = b"no mask"
    broken = flow.from_columns({name: [row[name] for row in rows] for name in rows[0]})
    with augmented(broken).drop("mask").batch(4).loader() as loader:
        assert "mask" not in next(iter(loader))


def test_boxes_are_moved_for_a_filter_that_reads_them(source: flow.Pipeline) -> None:
    def has_some(row: dict[str, Any]) -> bool:
        return len(row["boxes"]) > 0 and float(row["boxes"][0][0]) == 59

    pipe = source.decode_image("image").center_crop("image", (90, 159)).annotate("image", boxes="boxes")
    kept = pipe.random_flip("image", 1).filter(has_some).select("label")
    with kept.batch(4).loader() as loader:
        labels = [label for batch in loader for label in batch["label"].tolist()]
    assert labels == [row for row in range(ROWS) if row % 3]


@pytest.mark.parametrize(
    "boxes",
    [
        pa.array([[[1, 2, 3, 4]], [], None, [[1, 2, 3, 4]]]),
        pa.array([[[1, 2, 3, 4]], [], None, [[1, 2, 3, 4]]], pa.list_(pa.list_(pa.float64(), 4))),
        pa.array([[[1, 2, 3, 4]], [], None, [[1, 2, 3, 4]]], pa.large_list(pa.list_(pa.int16()))),
    ],
)
def test_nulls_and_empty_lists_are_rows_without_boxes(boxes: Any) -> None:
    images = pa.array([encoded(photograph(row, 20, 30)) for row in range(4)])
    table = pa.table({"image": images, "boxes": boxes})
    pipe = (
        flow.from_arrow(table).decode_image("image").annotate("image", boxes="boxes").random_flip("image", 1)
    )
    assert pipe.schema is not None
    assert pipe.schema.field("boxes").type == pa.list_(BOX)
    with pipe.batch(4).loader() as loader:
        made = [boxes.tolist() for boxes in next(iter(loader))["boxes"]]
    assert made == [[[27, 2, 29, 4]], [], [], [[27, 2, 29, 4]]]


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.list_(pa.int32(), 4)])
def test_one_box_a_row_stays_one(kind: Any) -> None:
    images = pa.array([encoded(photograph(row, 20, 30)) for row in range(3)])
    table = pa.table({"image": images, "box": pa.array([[1, 2, 3, 4], None, [0, 0, 30, 20]], kind)})
    pipe = flow.from_arrow(table).decode_image("image").annotate("image", boxes="box").random_flip("image", 1)
    rows = [pipe[row]["box"] for row in range(3)]
    assert [row if row is None else row.tolist() for row in rows] == [[27, 2, 29, 4], None, [0, 0, 30, 20]]
    with pipe.nulls("box", value=0).batch(3).loader() as loader:
        assert next(iter(loader))["box"].tolist() == [[27, 2, 29, 4], [0, 0, 0, 0], [0, 0, 30, 20]]


def _masks(files: list[Any], height: int = 8, width: int = 16) -> flow.Pipeline:
    pixels = np.zeros((len(files), height, width, 3), np.uint8)
    return flow.from_columns({"image": pixels, "mask": files}).annotate("image", masks="mask")


def test_masks_keep_their_class_numbers_whatever_the_file_has() -> None:
    numbers = (np.arange(128) % 4).reshape(8, 16).astype(np.uint8)
    files = [
        *[palette(numbers, bits) for bits in (2, 4, 8)],
        *[encoded(numbers, format) for format in ("PNG", "BMP", "TIFF")], encoded(numbers.astype(np.uint16), "PNG"),
    ]  # fmt: skip
    with _masks(files).batch(len(files)).loader(output="numpy") as loader:
        for mask in next(iter(loader))["mask"]:
            assert np.array_equal(mask[..., 0], numbers)


def test_masks_of_one_bit_are_0_and_1() -> None:
    there = photograph(0, 8, 16)[..., 0] > 128
    with _masks([encoded(there, "PNG")]).batch(1).loader(output="numpy") as loader:
        assert np.array_equal(next(iter(loader))["mask"][0, ..., 0], there)


@pytest.mark.parametrize("bits", [2, 4])
def test_grey_of_few_bits_is_not_spread(bits: int) -> None:
    numbers = (np.arange(128) % 2**bits).reshape(8, 16)
    shifts = np.arange(8 - bits, -1, -bits)
    packed = (numbers.reshape(8, -1, 8 // bits) << shifts).sum(axis=2).astype(np.uint8)
    lines = b"".join(b"\0" + line.tobytes() for line in packed)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 16, 8, bits, 0, 0, 0, 0)
    png = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )
    with _masks([png]).batch(1).loader(output="numpy") as loader:
        assert np.array_equal(next(iter(loader))["mask"][0, ..., 0], numbers)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("shape", [(8, 16), (8, 16, 1)])
def test_masks_may_be_pixels(dtype: Any, shape: tuple[int, ...]) -> None:
    numbers = np.arange(256).reshape(2, *shape).astype(dtype)
    pipe = flow.from_columns({"image": np.zeros((2, 8, 16, 3), np.uint8), "mask": numbers})
    pipe = pipe.annotate("image", masks="mask").random_flip("image", 1)
    with pipe.batch(2).loader(output="numpy") as loader:
        mask = next(iter(loader))["mask"]
    assert mask.dtype == dtype
    assert np.array_equal(mask, numbers.reshape(2, 8, 16, 1)[:, :, ::-1])
    assert numbers.flat[1] == 1, "the source is as it was"


GOOD = encoded(np.zeros((8, 16), np.uint8), "PNG")
BAD_MASKS: dict[str, tuple[Any, str]] = {
    "null": (None, "null"),
    "empty": (b"", "no image"),
    "text": (b"no image", "no image"),
    "cut off": (palette(photograph(0, 8, 16)[..., 0])[:-60], "broken"),
    "colours": (encoded(photograph(0, 8, 16), "PNG"), "class number"),
    "another size": (encoded(np.zeros((16, 8), np.uint8), "PNG"), "16 x 8"),
    "large numbers": (encoded(np.full((8, 16), 300, np.uint16), "PNG"), "300"),
}


@pytest.mark.parametrize("name", BAD_MASKS)
def test_a_mask_that_does_not_fit_costs_its_row(name: str) -> None:
    bad, what = BAD_MASKS[name]
    pipe = _masks([GOOD, bad, GOOD]).random_flip("image")
    with pytest.raises(DataError, match=what), pipe.batch(1).loader() as loader:
        list(loader)
    with pipe.batch(1).loader(on_error="skip", ids=True) as loader:
        assert [batch["__id__"].tolist() for batch in loader] == [[0], [2]]


LISTS, ONE = pa.list_(pa.list_(pa.int64())), pa.list_(pa.int64())


@pytest.mark.parametrize(
    ("boxes", "kind"),
    [
        ([[1, 2, 3]], LISTS), ([None], LISTS), ([[None, 1, 2, 3]], LISTS), ([1, 2, 3], ONE),
        ([1, 2, 3, None], pa.list_(pa.int64(), 4)),
    ],
)  # fmt: skip
def test_boxes_that_are_none_cost_their_row(boxes: Any, kind: Any) -> None:
    good = [[1, 2, 3, 4]] if kind == LISTS else [1, 2, 3, 4]
    images = [encoded(photograph(row, 20, 30)) for row in range(3)]
    table = pa.table({"image": images, "boxes": pa.array([good, boxes, good], kind)})
    pipe = flow.from_arrow(table).decode_image("image").annotate("image", boxes="boxes").batch(1)
    with pytest.raises(DataError, match="row 1"), pipe.loader() as loader:
        list(loader)
    with pipe.loader(on_error="skip", ids=True) as loader:
        assert [batch["__id__"].tolist() for batch in loader] == [[0], [2]]
    with pipe.loader(on_error="replace") as loader:
        assert len([batch["boxes"] for batch in loader]) == 3


def test_keypoints_of_several_bodies_keep_their_shape() -> None:
    points = np.arange(2 * 3 * 5 * 2, dtype=np.float64).reshape(2, 3, 5, 2)
    pipe = flow.from_columns({"image": np.zeros((2, 40, 70, 3), np.uint8), "points": points})
    pipe = pipe.annotate("image", keypoints="points").resize("image", (80, 70))
    with pipe.batch(2).loader(output="numpy") as loader:
        assert np.array_equal(next(iter(loader))["points"], points * [1, 2])


def test_a_pipeline_with_annotations_is_a_spec_and_back(tmp_path: Any) -> None:
    folder = tmp_path / "cats"
    folder.mkdir()
    for row in range(3):
        (folder / f"{row}.jpg").write_bytes(encoded(photograph(row, 60, 60)))
    pipe = flow.read(str(tmp_path)).rename({"bytes": "image"})
    pipe = pipe.decode_image("image").random_crop("image", 40, padding=2, fill=(1, 2, 3), key="crop")
    pipe = pipe.random_rotate("image", 10, center=(3.5, 4), fill=9).annotate("image", masks=[]).batch(3)
    spec = tmp_path / "train.json"
    spec.write_text(json.dumps(pipe.to_spec()))
    assert flow.load_spec(spec).to_spec() == pipe.to_spec()


WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "no such column": (lambda p: p.annotate("image", boxes="bxes"), "boxes"),
    "named twice": (lambda p: p.annotate("image", boxes="boxes", keypoints="boxes"), "once"),
    "follows already": (
        lambda p: p.annotate("image", boxes="boxes").random_flip("image").annotate("image", boxes="boxes"), "once",
    ),
    "itself": (lambda p: p.annotate("image", masks="image"), "once"),
    "no boxes": (lambda p: p.annotate("image", boxes="label"), "(x1, y1, x2, y2)"),
    "boxes of two": (lambda p: p.annotate("image", keypoints="box"), "(x, y)"),
    "no mask": (lambda p: p.annotate("image", masks="label"), "uint8"),
    "files": (lambda p: p.annotate("file", boxes="boxes"), "decode"),
    "fill": (lambda p: p.annotate("image", masks="mask", mask_fill=256), "255"),
    "fill of text": (lambda p: p.annotate("image", mask_fill="0"), "class number"),
    "number": (lambda p: p.annotate("image", boxes=3), "give a list"),
    "normalized": (
        lambda p: p.resize("image", 8).normalize("image", MEAN, STD).annotate("image", boxes="boxes"), "in front",
    ),
    "replaced": (
        lambda p: p.annotate("image", boxes="boxes").cast({"boxes": pa.list_(pa.list_(pa.string()))})
        .random_flip("image"), "(x1, y1, x2, y2)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_work_is_an_error_where_it_is_written(name: str) -> None:
    make, hint = WRONG[name]
    file = encoded(photograph(0, 8, 16))
    pipe = flow.from_columns({
        "image": [file], "file": [file], "boxes": [[[1, 2, 3, 4]]], "box": pa.array([[1.0, 2, 3, 4]], BOX),
        "mask": [GOOD], "label": [3],
    }).decode_image("image")  # fmt: skip
    with pytest.raises(PlanError) as caught:
        make(cast(Any, pipe))
    assert hint in f"{caught.value} {caught.value.hint}"
