"""The check of a GPU machine, as far as it can be seen without one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from typer.testing import CliRunner

import bench.device_check.__main__ as command
from bench.device_check.agree import MOST_DB, Unlike, both, like, made_alike, psnr_db, shift_px
from bench.device_check.check import Check, Noted, Verdict, run_checks
from bench.device_check.checks import checks_of
from bench.device_check.loop import trace_of
from bench.device_check.pictures import LEVELS_A_PIXEL, Dtype, Layout, maps, photographs, training
from bench.device_check.rates import Rates, decoded_per_s
from bench.device_check.report import as_json, line, summary
from bench.device_check.size import FULL, Size
from bench.device_check.trace import LOOP, STEP, Event, NotSeen, hidden_share, pinned_share, syncs

CPU = torch.device("cpu")
SMALL = Size(
    compared=12, photographs=16, batch=4, side=48, warm=2, traced=2, timed=2, rounds=1, width=16
)  # fmt: skip
needs_dali = pytest.mark.skipif(
    find_spec("nvidia") is None or find_spec("nvidia.dali") is None,
    reason="DALI is made for x86-64 Linux alone",
)


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATAFLOW_BENCH", str(tmp_path / "bench"))


def _broken() -> float:
    raise ValueError("no such thing\nand more of it")


GOOD = Check(name="good", measure=lambda: 40.0, unit="dB", at_least=35)
LOW = Check(name="low", measure=lambda: Noted(3, "three of them"), at_most=0)
BROKEN = Check(name="broken", measure=_broken, at_least=1)
SHOWN = Check(name="shown", measure=lambda: 1234.0, unit="images/s")


# The driver


def test_a_check_that_raises_fails_alone_and_the_next_ones_run() -> None:
    verdicts = list(run_checks([BROKEN, GOOD, LOW, SHOWN]))
    assert [verdict.ok for verdict in verdicts] == [False, True, False, True]
    assert verdicts[0].measured is None
    assert verdicts[0].note == "ValueError: no such thing\nand more of it"
    assert verdicts[2].measured == 3


@pytest.mark.parametrize(
    ("measured", "at_least", "at_most", "ok"),
    [
        (1, None, None, True), (1, 1, 1, True), (0.9, 1, None, False), (1.1, None, 1, False),
        (float("nan"), 1, None, False), (float("nan"), None, 1, False), (None, None, None, False),
    ],
)  # fmt: skip
def test_a_figure_reaches_its_bar_or_does_not(
    measured: float | None, at_least: float | None, at_most: float | None, ok: bool
) -> None:
    check = Check(name="x", measure=lambda: 0.0, at_least=at_least, at_most=at_most)
    assert Verdict(check=check, measured=measured).ok is ok


def test_a_line_says_what_the_value_the_bar_and_the_verdict() -> None:
    good, low, broken, shown = [line(verdict).split() for verdict in run_checks([GOOD, LOW, BROKEN, SHOWN])]
    assert good == ["good", "40.0", "dB", ">=", "35.0", "ok"]
    assert low == ["low", "3.00", "<=", "0", "FAILED", "three", "of", "them"]
    assert broken == ["broken", "no", "figure", ">=", "1.00", "FAILED", "ValueError:", "no", "such", "thing"]
    assert shown == ["shown", "1,234", "images/s"]


def test_the_summary_counts_what_failed() -> None:
    assert summary(list(run_checks([GOOD, LOW])), 61.4) == "2 checks in 61 s, 1 failed"
    assert summary(list(run_checks([GOOD])), 2) == "1 checks in 2 s, none failed"


def test_json_has_every_verdict() -> None:
    said = json.loads(json.dumps(as_json(list(run_checks([GOOD, BROKEN])), {"cores": 2}, "A GPU")))
    assert (said["gpu"], said["ok"], said["machine"]) == ("A GPU", False, {"cores": 2})
    assert said["checks"][0] == {
        "name": "good", "measured": 40, "unit": "dB", "at_least": 35, "at_most": None, "ok": True, "note": "",
    }  # fmt: skip
    assert said["checks"][1]["measured"] is None


# The command


@pytest.fixture
def a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"A GPU, {device}")


def _with_checks(monkeypatch: pytest.MonkeyPatch, *checks: Check) -> None:
    def checks_of_it(device: torch.device, size: Size) -> Iterator[Check]:
        assert (device, size) == (torch.device("cuda", 0), FULL)
        return iter(checks)

    monkeypatch.setattr(command, "checks_of", checks_of_it)


def test_without_a_gpu_nothing_is_checked_and_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    done = CliRunner().invoke(command.app)
    assert (done.exit_code, done.stdout) == (0, "no GPU: nothing checked\n")
    done = CliRunner().invoke(command.app, ["--json"])
    said = json.loads(done.stdout)
    assert done.exit_code == 0
    assert (said["gpu"], said["ok"], said["checks"]) == (None, True, [])


@pytest.mark.usefixtures("a_gpu")
def test_the_exit_code_is_one_where_a_check_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_checks(monkeypatch, GOOD, SHOWN)
    done = CliRunner().invoke(command.app)
    assert done.exit_code == 0
    assert done.stdout.startswith("A GPU, cuda:0")
    _with_checks(monkeypatch, GOOD, BROKEN, SHOWN)
    done = CliRunner().invoke(command.app)
    assert done.exit_code == 1
    assert [words.split()[0] for words in done.stdout.splitlines()] == ["A", "good", "broken", "shown", "3"]


@pytest.mark.usefixtures("a_gpu")
def test_json_is_one_object_and_has_the_same_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_checks(monkeypatch, LOW)
    done = CliRunner().invoke(command.app, ["--json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["gpu"] == "A GPU, cuda:0"


# The checks, on CPUs


def test_no_two_checks_bear_one_name() -> None:
    names = [check.name for check in checks_of(CPU, SMALL)]
    assert len(set(names)) == len(names)
    assert {f"photographs as {d} {y}: least PSNR" for d in get_args(Dtype) for y in get_args(Layout)} < set(
        names
    )


@needs_dali
def test_on_cpus_all_but_the_checks_of_a_gpu_are_met() -> None:
    failed = [verdict for verdict in run_checks(checks_of(CPU, SMALL)) if not verdict.ok]
    assert all(verdict.measured is None for verdict in failed), "what has a figure reaches its bar"
    assert all(verdict.check.name.startswith("images by") for verdict in failed)
    assert len(failed) == 7


def test_one_side_of_a_box_that_is_a_pixel_off_shifts_a_quarter_by_half_a_pixel() -> None:
    across, wider = (torch.linspace(10, last, 96).expand(96, 96) * LEVELS_A_PIXEL for last in (105, 106))
    rows = torch.zeros(96, 96)
    one, other = (torch.stack([places, rows, rows])[None] for places in (across, wider))
    assert shift_px(one, one) == 0
    assert shift_px(one, other) > 0.5
    assert shift_px(one, one.flip(3)) > 40


def test_psnr_is_that_of_the_worst_image_and_finite() -> None:
    one = torch.zeros(2, 3, 4, 4)
    other = one.clone()
    assert psnr_db(one, other, 255) == MOST_DB
    other[1] += 1
    assert psnr_db(one, other, 255) == pytest.approx(48.13, abs=0.01)
    other[0] += 10
    assert psnr_db(one, other, 255) == pytest.approx(28.13, abs=0.01)


@needs_dali
def test_photographs_that_dali_did_not_make_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made_alike(CPU, SMALL) == 0
    from loaders.dali.slot import BatchFailed, Slot

    def fails(self: Slot, stream: object = None) -> Any:
        raise BatchFailed

    monkeypatch.setattr(Slot, "take", fails)
    assert made_alike(CPU, SMALL) == SMALL.compared


@needs_dali
def test_steps_that_dali_does_not_do_are_not_compared() -> None:
    with pytest.raises(Unlike, match="then random_rotate, to_dtype by the CPU kernel"):
        both(photographs(SMALL).resize("image", 32).random_rotate("image", 30).to_dtype("image"), CPU, SMALL)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"__id__": torch.tensor([1, 3])}, r"ids are \[1, 3\], not \[1, 2\]"),
        ({"image": torch.zeros(2, 3, 4, 5, device="meta")}, "images lie on meta, not on cpu"),
        ({"image": torch.zeros(2, 3, 4, 5).half()}, r"dtype is torch.float16, not torch.float32"),
        ({"image": torch.zeros(2, 3, 5, 4)}, r"shape is torch.Size\(\[2, 3, 5, 4\]\)"),
        ({"image": torch.zeros(2, 4, 5, 3).permute(0, 3, 1, 2)}, r"strides are \(60, 1, 15, 3\)"),
    ],
)
def test_batches_of_other_samples_or_another_form_are_not_compared(other: Any, said: str) -> None:
    one = {"__id__": torch.tensor([1, 2]), "image": torch.zeros(2, 3, 4, 5)}
    assert like(one, one, CPU) is one["image"]
    with pytest.raises(Unlike, match=said):
        like(one, {**one, **other}, CPU)


def test_pictures_are_of_many_sizes_and_maps_say_where_a_pixel_was() -> None:
    sizes = {image["image"].shape for image in map(photographs(SMALL).__getitem__, range(6))}
    assert len(sizes) > 1
    place = maps(SMALL)[0]["image"][20, 37]
    assert int(place[0]) / LEVELS_A_PIXEL == pytest.approx(37, abs=0.25)
    assert int(place[1]) / LEVELS_A_PIXEL == pytest.approx(20, abs=0.25)


def test_training_has_the_batches_that_are_asked_for() -> None:
    assert len(training(SMALL, batches=9).loader()) >= 9


@needs_dali
def test_rates_are_those_of_the_same_rounds() -> None:
    rates = Rates(CPU, SMALL)
    assert rates.share() == pytest.approx(rates.end_to_end() / rates.resident())
    assert decoded_per_s(CPU, SMALL) > 0


def test_a_trace_without_a_gpu_has_the_loop_and_its_steps_and_no_copies() -> None:
    events = trace_of(CPU, SMALL, "cpu")
    assert [event["name"] for event in events].count(LOOP) == 1
    assert [event["name"] for event in events].count(STEP) == SMALL.traced
    for figure in (hidden_share, pinned_share, syncs):
        with pytest.raises(NotSeen):
            figure(events)


# Traces


def _event(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "args": args}


_mark = partial(_event, "user_annotation")
_call = partial(_event, "cuda_runtime")


def _step(number: int, ts: float, kernel: tuple[float, float]) -> list[Event]:
    """A step of 10 us that starts one kernel."""
    start, dur = kernel
    return [
        _mark(STEP, ts, 10),
        _call("cudaLaunchKernel", ts + 1, 2, correlation=number),
        _event("kernel", "gemm", start, dur, 7, correlation=number, stream=7),
    ]


def _copy(ts: float, dur: float, memory: str = "Pinned", size: int = 100) -> Event:
    return _event("gpu_memcpy", f"Memcpy HtoD ({memory} -> Device)", ts, dur, 9, bytes=size)


TWO_STEPS = [
    {"ph": "M", "name": "process_name"},
    _mark(LOOP, 0, 100),
    *_step(1, 0, (20, 100)),
    *_step(2, 20, (130, 100)),
]


def test_copies_are_hidden_as_far_as_kernels_of_steps_run() -> None:
    assert hidden_share([*TWO_STEPS, _copy(30, 20), _copy(115, 20)]) == pytest.approx((20 + 10) / 40)


def test_copies_between_kernels_hide_behind_nothing() -> None:
    assert hidden_share([*TWO_STEPS, _copy(121, 8)]) == 0


def test_copies_before_the_first_step_and_behind_the_last_do_not_count() -> None:
    assert hidden_share([*TWO_STEPS, _copy(0, 10), _copy(30, 10), _copy(400, 10)]) == 1
    with pytest.raises(NotSeen, match="no copy"):
        hidden_share([*TWO_STEPS, _copy(0, 10)])


def test_kernels_that_no_step_has_started_hide_nothing() -> None:
    others = [
        _call("cudaLaunchKernel", 3, 2, tid=2, correlation=5),
        _event("kernel", "decode", 120, 10, 8, correlation=5),
    ]
    assert hidden_share([*TWO_STEPS, *others, _copy(121, 8)]) == 0


def test_the_share_of_pinned_memory_is_one_of_bytes() -> None:
    assert pinned_share([_copy(0, 1, size=300), _copy(0, 1, "Pageable", 100)]) == 0.75


def test_waits_are_those_of_the_thread_of_the_loop_while_it_runs() -> None:
    waits = [
        _call("cudaStreamSynchronize", 50, 5),
        _call("cudaMemcpy", 60, 5),
        _event("cuda_driver", "cuEventSynchronize", 70, 5),
    ]
    others = [
        _call("cudaStreamSynchronize", 50, 5, tid=2),
        _call("cudaDeviceSynchronize", 101, 5),
        _call("cudaMemcpyAsync", 62, 5),
        _call("cudaStreamWaitEvent", 65, 5),
    ]
    assert syncs([*TWO_STEPS, *others]) == []
    found = syncs([*TWO_STEPS, *waits, *others])
    assert sorted(found) == ["cuEventSynchronize", "cudaMemcpy", "cudaStreamSynchronize"]
