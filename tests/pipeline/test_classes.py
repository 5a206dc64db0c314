"""The names of class folders, by label."""

from __future__ import annotations

from pathlib import Path

import pytest

import dataflow as flow
from connectors.folder import Folder
from dataflow.errors import PlanError


def write(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"image")
    return folder


def test_a_label_is_a_place_in_the_classes(tmp_path: Path) -> None:
    pipe = flow.read(write(tmp_path, "dog/1.jpg", "cat/1.jpg", "cat/2.jpg"))
    assert pipe.classes == ("cat", "dog")
    for row in (pipe[number] for number in range(3)):
        assert str(row["path"]).startswith(pipe.classes[int(row["label"])])


def test_steps_batches_and_joins_of_the_same_classes_keep_them(tmp_path: Path) -> None:
    pipe = flow.read(write(tmp_path, "dog/1.jpg", "cat/1.jpg"))
    assert pipe.select("label").shuffle(2).batch(1).classes == pipe.classes
    assert flow.concat(pipe, pipe).classes == pipe.classes


def test_without_class_folders_there_are_none(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no class folders") as caught:
        flow.read(write(tmp_path, "1.jpg", "2.jpg")).classes  # noqa: B018 - what is asked
    assert "label" in caught.value.hint


def test_sources_with_other_classes_are_an_error_that_says_how_they_agree(tmp_path: Path) -> None:
    one = flow.read(write(tmp_path / "one", "dog/1.jpg", "cat/1.jpg"))
    two = flow.read(write(tmp_path / "two", "dog/1.jpg", "cow/1.jpg"))
    joined = flow.concat(one, two)
    with pytest.raises(PlanError, match=r"\('cat', 'dog'\) and \('cow', 'dog'\)") as caught:
        joined.classes  # noqa: B018 - what is asked
    assert "Folder(classes=(...))" in caught.value.hint
    every = Folder(classes=("cat", "cow", "dog"))
    read = [flow.read(tmp_path / name, format=every) for name in ("one", "two")]
    assert flow.concat(*read).classes == ("cat", "cow", "dog")
