"""A loader whose images DALI makes: order, states, damaged files and the end are those of the CPU kernel."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from dali_case import MEAN, STD, Batch, augmented, delivered, images_of, needs_dali, psnr_db, source, trained
from photographs import encoded, photograph
from PIL import Image

import dataflow as flow
from dataflow.errors import DataError

pytestmark = needs_dali

HERE = Path(__file__).parent


def same(one: list[Batch], other: list[Batch], *, exactly: bool = False) -> None:
    """The same samples, and the same images, as near as backends come."""
    assert [b["__id__"].tolist() for b in one] == [b["__id__"].tolist() for b in other]
    assert [b["label"].tolist() for b in one] == [b["label"].tolist() for b in other]
    if one and exactly:
        assert np.array_equal(images_of(one), images_of(other))
    elif one:
        assert psnr_db(images_of(one), images_of(other), 1 / min(STD)) >= 35


def from_state(pipe: flow.Pipeline, state: Any, backend: Any, **options: Any) -> list[Batch]:
    with pipe.loader(output="numpy", ids=True, backend=backend, **options) as loader:
        loader.load_state_dict(json.loads(json.dumps(state)))
        return list(loader)


@pytest.mark.parametrize("pipe", [
    trained(source()).batch(3),
    trained(source()).filter(lambda row: row["label"] % 5 != 0).batch(2, remainder="keep"),
    augmented(source().shuffle(8).repeat(2)).batch(5, remainder="pad"),
], ids=["counted", "uncounted", "padded"])  # fmt: skip
def test_a_state_of_either_backend_is_one_of_both(pipe: flow.Pipeline) -> None:
    whole = {backend: delivered(pipe, backend) for backend in ("cpu", "dali")}
    same(whole["cpu"], whole["dali"])
    backends: tuple[Any, ...] = ("cpu", "dali")
    for saved_under in backends:
        for stop in range(1, len(whole["cpu"])):
            with pipe.loader(output="numpy", ids=True, backend=saved_under) as loader:
                batches = iter(loader)
                for _ in range(stop):
                    next(batches)
                state = loader.state_dict()
            same(from_state(pipe, state, "dali"), whole["dali"][stop:], exactly=True)
            same(from_state(pipe, state, "cpu"), whole["cpu"][stop:], exactly=True)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_files_damaged_below_a_crop_are_bad_on_both_backends_in_every_epoch(on_error: Any) -> None:
    files = [encoded(photograph(number, 200, 250)) for number in range(12)]
    for number in range(1, 12, 2):
        at = len(files[number]) * 85 // 100
        files[number] = files[number][:at] + bytes(100) + files[number][at + 100 :]
    pipe = flow.from_columns({"image": files}).decode_image("image").random_resized_crop("image", 32).batch(2)
    found: dict[str, list[Any]] = {}
    backends: tuple[Any, ...] = ("cpu", "dali")
    for backend in backends:
        with pipe.loader(output="numpy", ids=True, backend=backend, on_error=on_error) as loader:
            epochs = [list(loader) for _ in range(3)]
        named = "__id__" if on_error == "skip" else "__replaced_by__"
        found[backend] = [np.concatenate([batch[named] for batch in batches]).tolist() for batches in epochs]
    assert found["cpu"] == found["dali"]
    bad = [[row < 0 for row in rows] if on_error == "replace" else rows for rows in found["cpu"]]
    assert bad[0] == bad[1] == bad[2]


def test_a_sample_has_the_same_pixels_whatever_batches_lanes_ranks_and_threads() -> None:
    pipe = trained(source())

    def by_id(*loaders: Any) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for loader in loaders:
            with loader:
                for batch in loader:
                    found |= {
                        i: image.tobytes()
                        for i, image in zip(batch["__id__"].tolist(), batch["image"], strict=True)
                    }
        return found  # fmt: skip

    options: Any = {"output": "numpy", "ids": True, "backend": "dali"}
    one = by_id(pipe.batch(6).loader(threads=1, **options))
    lanes = by_id(pipe.batch(global_size=4, lanes=4).loader(threads=3, **options))
    ranked = pipe.batch(global_size=6, lanes=2)
    ranks = by_id(*[ranked.loader(rank=rank, world_size=2, **options) for rank in range(2)])
    assert len(one) == 12
    assert one == lanes == ranks


def test_images_of_joined_sources_several_columns_and_blended_rows_are_those_of_the_kernel() -> None:
    joined = trained(flow.concat(source(8), source(5))).batch(4, remainder="keep")
    same(delivered(joined, "cpu"), delivered(joined, "dali"))
    blended = trained(source()).batch(4).mixup("image", label="label", num_classes=12)
    same(delivered(blended, "cpu"), delivered(blended, "dali"))
    two = flow.zip(source(), source().select("image").rename({"image": "other"}))
    pipe = trained(two).decode_image("other", "L", reduced=False).resize("other", 40).batch(4)
    kernel, dali = delivered(pipe, "cpu"), delivered(pipe, "dali")
    same(kernel, dali)
    others = [np.concatenate([batch["other"] for batch in batches]) for batches in (kernel, dali)]
    assert psnr_db(others[0], others[1], 255) >= 35


def test_boxes_and_masks_follow_the_same_parts_exactly() -> None:
    table = {
        "boxes": [[[10.0, 20.0, 90.0 + row, 100.0]] for row in range(12)],
        "mask": [encoded(photograph(row, 150 + row, 220 - row)[..., 0] // 64, "PNG") for row in range(12)],
    }
    marked = flow.zip(source(), flow.from_columns(table)).shuffle(8).decode_image("image")
    marked = marked.annotate("image", boxes="boxes", masks="mask")
    pipe = (
        marked.random_resized_crop("image", 64)
        .random_flip("image", 0.5, 0.5)
        .normalize("image", MEAN, STD)
        .batch(4)
    )
    for one, other in zip(delivered(pipe, "cpu"), delivered(pipe, "dali"), strict=True):
        assert np.array_equal(np.stack(one["boxes"]), np.stack(other["boxes"]))
        assert np.array_equal(one["mask"], other["mask"])


def printed(number: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(photograph(number, 150, 220)).convert("CMYK").save(file, "JPEG")
    return file.getvalue()


def odd_files() -> dict[str, bytes]:
    whole = encoded(photograph(3, 150, 220))
    scrambled, headless = bytearray(whole), bytearray(whole)
    scrambled[len(whole) // 2 : len(whole) // 2 + 40] = bytes(range(40))
    headless[160:170] = b"\xff" * 10
    return {
        "cut in the middle": whole[: len(whole) // 2], "cut at the end": whole[:-2], "cut in its head": whole[:300],
        "scrambled": bytes(scrambled), "broken tables": bytes(headless), "empty": b"", "text": b"no image" * 20,
        "PNG": encoded(photograph(3, 150, 220), "PNG"), "grey": encoded(photograph(3, 150, 220)[..., 0]),
        "CMYK": printed(3), "progressive": encoded(photograph(3, 150, 220), progressive=True),
        "one pixel": encoded(photograph(3, 1, 1)), "a line": encoded(photograph(3, 1, 200)),
    }  # fmt: skip


def with_odd(file: bytes) -> flow.Pipeline:
    files = [encoded(photograph(row, 150, 220)) for row in range(12)]
    files[5] = file
    pipe = flow.from_columns({"image": files, "label": list(range(12))})
    return trained(pipe)


def outcome(file: bytes, backend: Any, on_error: Any, quarantine: Path) -> tuple[list[Batch], str, str]:
    """The batches, the error that ended the run, and the quarantine file."""
    quarantine.unlink(missing_ok=True)
    pipe = with_odd(file).batch(4, remainder="keep")
    found, error = list[Batch](), ""
    try:
        with pipe.loader(
            output="numpy", ids=True, backend=backend, on_error=on_error, quarantine=quarantine
        ) as loader:
            found.extend(loader)
    except DataError as raised:
        error = str(raised)
    return found, error, quarantine.read_text() if quarantine.exists() else ""


@pytest.mark.parametrize("on_error", ["skip", "replace"])
@pytest.mark.parametrize("kind", odd_files())
def test_an_odd_file_has_the_same_fate_on_both_backends(kind: str, on_error: str, tmp_path: Path) -> None:
    file, quarantine = odd_files()[kind], tmp_path / "bad.jsonl"
    kernel, dali = (outcome(file, backend, on_error, quarantine) for backend in ("cpu", "dali"))
    assert kernel[1:] == dali[1:]
    same(kernel[0], dali[0])


@pytest.mark.parametrize("kind", [k for k in odd_files() if k not in ("cut at the end", "scrambled")])
def test_where_a_bad_row_ends_the_run_file_and_row_are_named_alike(kind: str, tmp_path: Path) -> None:
    file, quarantine = odd_files()[kind], tmp_path / "bad.jsonl"
    kernel, dali = (outcome(file, backend, "raise", quarantine) for backend in ("cpu", "dali"))
    assert kernel[1] == dali[1]
    assert kernel[2] == dali[2]
    same(kernel[0][:1], dali[0][:1])


def test_what_dali_cannot_make_costs_no_other_row_a_pixel() -> None:
    whole = images_of(delivered(with_odd(odd_files()["grey"]).batch(12), "dali"))
    kinds = ["CMYK", "PNG", "one pixel"]
    for kind in kinds:
        batches = delivered(with_odd(odd_files()[kind]).batch(12), "dali")
        others = np.concatenate([batch["label"] for batch in batches]) != 5
        assert np.array_equal(images_of(batches)[others], whole[others])


_EVERY_FILE = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from test_dali_loader import odd_files, outcome
for file in odd_files().values():
    for on_error in ("raise", "skip"):
        outcome(file, "dali", on_error, Path(sys.argv[1]))
print("alive")
"""


def test_damaged_files_end_no_process(tmp_path: Path) -> None:
    words = [str(tmp_path / "bad.jsonl"), str(HERE), str(HERE.parent / "ops" / "images")]
    done = subprocess.run(
        [sys.executable, "-c", _EVERY_FILE, *words], capture_output=True, text=True, check=False, timeout=250
    )
    assert done.stdout == "alive\n", done.stderr[-2000:]


def test_images_stay_what_they_are_while_others_are_made() -> None:
    pipe = trained(source()).batch(2)
    with pipe.loader(output="numpy", backend="dali") as loader:
        taken = [(batch["image"], batch["image"].copy()) for _ in range(3) for batch in loader]
    assert all(np.array_equal(image, then) for image, then in taken)


def test_no_thread_or_process_is_left_behind_a_break_or_an_error() -> None:
    pipe = trained(source()).batch(2)

    def broken_off() -> None:
        with pipe.loader(output="numpy", backend="dali", threads=2) as loader:
            next(iter(loader))
            next(iter(loader))

    def failed() -> None:
        with (
            pytest.raises(DataError),
            with_odd(odd_files()["cut in the middle"])
            .batch(4)
            .loader(output="numpy", backend="dali") as loader,
        ):
            list(loader)

    broken_off()
    failed()
    this = psutil.Process()
    threads, children = this.num_threads(), this.children()
    for _ in range(3):
        broken_off()
        failed()
    assert this.num_threads() <= threads
    assert this.children() == children
    assert not [each for each in threading.enumerate() if each.name.startswith("dataflow-")]


def test_a_closed_loader_may_be_closed_again_and_an_abandoned_one_is_no_fault() -> None:
    pipe = trained(source()).batch(2)
    loader = pipe.loader(output="numpy", backend="dali")
    next(iter(loader))
    loader.close()
    loader.close()
    abandoned = pipe.loader(output="numpy", backend="dali")
    next(iter(abandoned))
    del abandoned
