"""Which backend makes images: what is asked for, what is there, and what is said about it."""

from __future__ import annotations

import importlib.util
import platform
from typing import Any

import pytest
import torch
from dali_case import MEAN, STD, needs_dali, source, trained

import dataflow as flow
from dataflow.errors import MissingExtraError, PlanError
from loaders.dali import choice
from loaders.output import Output


@pytest.fixture
def pipe() -> flow.Pipeline:
    return trained(source(4)).batch(2)


@pytest.fixture
def without_dali(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(choice, "find_spec", lambda name: None if name.startswith("nvidia") else find(name))


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)


def said(pipe: flow.Pipeline, **options: Any) -> str:
    return "\n".join(pipe.outline(**options).images)


@pytest.mark.parametrize("asked", ["gpu", None, 3, "DALI"])
def test_an_unknown_backend_is_refused(pipe: flow.Pipeline, asked: Any) -> None:
    for call in (pipe.loader, pipe.explain):
        with pytest.raises(PlanError, match="backend=") as caught:
            call(backend=asked)
        assert caught.value.hint == "use 'auto', 'cpu' or 'dali'"


def test_without_a_gpu_auto_is_the_kernel_and_says_why(pipe: flow.Pipeline) -> None:
    assert said(pipe) == "the CPU kernel: batches stay in host memory"
    assert said(pipe, device="cpu") == "the CPU kernel: batches go to 'cpu', not to a GPU of CUDA's"
    assert "images\n  the CPU kernel: batches stay in host memory" in pipe.explain()
    assert said(pipe, backend="cpu") == "the CPU kernel: backend='cpu'"
    assert said(source(4).batch(2)) == ""


@needs_dali
def test_what_dali_makes_is_said_step_by_step(pipe: flow.Pipeline) -> None:
    asked = "DALI on CPUs: backend='dali'; batches stay in host memory\n  image: "
    assert said(pipe, backend="dali") == asked + "all steps by DALI"
    decoded = source(4).decode_image("image")
    jittered = decoded.resize("image", 32).color_jitter("image", hue=0.1).to_dtype("image").batch(2)
    assert said(jittered, backend="dali") == (
        asked + "decode_image, resize by DALI, then color_jitter, to_dtype by the CPU kernel"
    )
    followed = decoded.resize("image", 32).select("image").batch(2)
    assert said(followed, backend="dali").startswith(asked)
    ragged = decoded.batch(2)
    assert said(ragged, backend="dali") == asked + "the CPU kernel, for they have no one size"
    alpha = source(4).decode_image("image", "RGBA").resize("image", 8).batch(2)
    assert (
        said(alpha, backend="dali")
        == asked + "the CPU kernel, for DALI does not do decode_image as it is defined"
    )


@needs_dali
def test_the_loader_and_its_report_say_it_too(pipe: flow.Pipeline) -> None:
    with pipe.loader(backend="dali") as loader:
        list(loader)
        assert loader.stats()["images"] == [
            "DALI on CPUs: backend='dali'; batches stay in host memory", "  image: all steps by DALI",
        ]  # fmt: skip
        assert "\nimages: image: all steps by DALI" in loader.report()
        stages = loader.stats()["stages"]
        assert isinstance(stages, dict)
        assert stages["develop"]["rows"] == 4  # type: ignore[index,call-overload]
        assert stages["develop"]["bytes"] == 4 * 3 * 64 * 64 * 4  # type: ignore[index,call-overload]
    with source(4).select("label").batch(2).loader() as loader:
        assert loader.stats()["images"] == []


@pytest.mark.usefixtures("without_dali")
def test_dali_that_is_not_installed_is_named_with_the_line_that_installs_it(pipe: flow.Pipeline) -> None:
    with pytest.raises(MissingExtraError, match=r"nvidia.dali is not installed") as caught:
        pipe.loader(backend="dali")
    assert caught.value.hint == "pip install 'dataflow-engine[dali]'"


def test_where_dali_cannot_be_installed_the_error_says_so(
    pipe: flow.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(MissingExtraError, match="DALI is made for x86-64 Linux, and this is aarch64 Linux"):
        pipe.loader(backend="dali")


@needs_dali
@pytest.mark.usefixtures("with_gpu")
def test_where_batches_go_to_a_gpu_auto_is_dali_on_it(pipe: flow.Pipeline) -> None:
    for device, number in (("cuda", 3), ("cuda:1", 1)):
        found = choice.choose("auto", pipe.node, Output(device=device))
        assert (found.name, found.gpu) == (f"DALI on GPU {number}", number)
        assert found.why == "backend='auto', and batches go to a GPU"
    assert choice.choose("auto", pipe.node, Output()).images is None
    assert choice.choose("cpu", pipe.node, Output(device="cuda")).images is None


@needs_dali
@pytest.mark.usefixtures("with_gpu")
def test_on_a_gpu_a_chain_is_made_there_whole_or_by_the_kernel(pipe: flow.Pipeline) -> None:
    jittered = source(4).decode_image("image").resize("image", 32).color_jitter("image", hue=0.1).batch(2)
    assert said(jittered, device="cuda").endswith("for DALI does not do color_jitter as it is defined")
    mixed = source(4).decode_image("image").resize("image", 32).normalize("image", MEAN, STD).batch(2)
    blended = mixed.mixup("image", label="label", num_classes=4)
    assert said(blended, device="cuda") == "the CPU kernel: steps behind batch mix rows in host memory"
    assert said(blended, device="cuda", backend="dali").startswith("DALI on CPUs: ")


@pytest.mark.usefixtures("with_gpu", "without_dali")
def test_auto_without_the_extra_is_the_kernel(pipe: flow.Pipeline) -> None:
    assert said(pipe, device="cuda") == "the CPU kernel: nvidia.dali is not installed"
