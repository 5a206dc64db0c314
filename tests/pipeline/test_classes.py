"""The names of class folders, by label."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataflow as flow
from connectors.folder import Folder
from dataflow.errors import PlanError
from dataflow.index.describe import describe


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
    with pytest.raises(PlanError, match="do not lie in a folder of their class") as caught:
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


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ("stray.jpg", "stray.jpg lies in no class folder: move it away"),
        ("cat/old/3.jpg", "cat/old/3.jpg lies deeper than in a class folder: format=Folder(label=True)"),
    ],
)
def test_a_file_that_keeps_all_others_from_having_a_label_is_named(
    tmp_path: Path, odd: str, said: str
) -> None:
    pipe = flow.read(write(tmp_path, "cat/1.jpg", "dog/1.jpg", odd))
    with pytest.raises(PlanError) as caught:
        pipe.classes  # noqa: B018 - what is asked
    assert said in caught.value.message
    assert pipe.node.source is not None
    problem = str(describe(pipe.node.source.index)["problems"])
    assert "3 files, as cat/1.jpg, have no column 'label', because" in problem
    assert said in problem


def test_what_the_problem_says_gives_the_labels_back(tmp_path: Path) -> None:
    write(tmp_path, "cat/1.jpg", "dog/1.jpg", "stray.jpg")
    assert flow.read(f"{tmp_path}/*/*").classes == ("cat", "dog")
    (tmp_path / "stray.jpg").unlink()
    deeper = flow.read(write(tmp_path, "cat/old/2.jpg"), format=Folder(label=True))
    assert (deeper.classes, deeper.count()) == (("cat", "dog"), 3)


def test_of_tables_nothing_is_said_of_folders(tmp_path: Path) -> None:
    pq.write_table(pa.table({"label": [1]}), tmp_path / "a.parquet")
    with pytest.raises(PlanError, match="the data has none in the format parquet") as caught:
        flow.read(tmp_path).classes  # noqa: B018 - what is asked
    assert "folder" not in caught.value.message + caught.value.hint
