"""Files beside the data that are no data: which are left out, and which are not."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataflow as flow
from dataflow.errors import ConnectorError, PlanError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for number in range(2):
        pq.write_table(pa.table({"x": [2 * number, 2 * number + 1]}), tmp_path / f"part-{number}.parquet")
    for hidden in ("_SUCCESS", "_metadata", ".part-0.parquet.crc"):
        (tmp_path / hidden).write_text("no data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def numbers(pipe: flow.Pipeline) -> list[int]:
    return [int(pipe[row]["x"]) for row in range(pipe.count())]


@pytest.mark.parametrize("url", [".", "./*"])
def test_hidden_files_are_left_out_silently(url: str, caplog: pytest.LogCaptureFixture) -> None:
    assert numbers(flow.read(url)) == [0, 1, 2, 3]
    assert caplog.records == []


@pytest.mark.parametrize("url", [".", "./*"])
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["README.md"], "1 file of no known format is left out, as {}/README.md"),
        (
            ["notes.txt", "info.json", "part-2.parquet.tmp"],
            "3 files of no known format are left out, as {}/info.json",
        ),
        (["LICENSE"], "1 file of no known format is left out, as {}/LICENSE"),
    ],
)
def test_files_of_no_known_format_are_left_out_and_said_once(
    folder: Path, url: str, names: list[str], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name in names:
        (folder / name).write_text("no data")
    pipe = flow.read(url)
    assert numbers(pipe) == [0, 1, 2, 3]
    pipe.select("x").count()
    assert numbers(flow.read(url)) == [0, 1, 2, 3]  # another read of the same files says it no more
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert said.format(folder) in record.getMessage()
    assert "format=" in record.getMessage()


def test_a_readme_that_is_added_changes_nothing_for_a_saved_state(folder: Path) -> None:
    with flow.read(".").batch(1).loader(output="numpy") as loader:
        next(iter(loader))
        state = loader.state_dict()
    (folder / "A-README.md").write_text("read me")
    with flow.read(".").batch(1).loader(output="numpy") as loader:
        loader.load_state_dict(state)
        assert [int(batch["x"][0]) for batch in loader] == [1, 2, 3]


@pytest.mark.parametrize("url", [["README.md", "part-0.parquet"], "{README.md,part-0.parquet}"])
def test_a_file_that_is_asked_for_by_name_is_never_left_out(folder: Path, url: str | list[str]) -> None:
    (folder / "README.md").write_text("read me")
    with pytest.raises(PlanError, match=r"1 parquet, 1 of no known format, as .*README\.md") as caught:
        flow.read(url).count()
    assert "format=" in caught.value.hint


def test_two_known_formats_are_an_error_that_names_format(folder: Path) -> None:
    (folder / "rows.jsonl").write_text('{"x": 1}\n')
    (folder / "README.md").write_text("read me")
    with pytest.raises(PlanError, match="2 parquet, 1 jsonl, 1 of no known format") as caught:
        flow.read(".").count()
    assert "format=" in caught.value.hint
    assert "*.parquet" in caught.value.hint
    assert numbers(flow.read("*.parquet")) == [0, 1, 2, 3]


def test_with_format_every_file_is_read_whatever_its_name(folder: Path) -> None:
    (folder / "part-0.parquet").rename(folder / "part-0")
    assert numbers(flow.read(".", format="parquet")) == [0, 1, 2, 3]


def no_file(kind: str, path: Path) -> None:
    """Put what is no file under a name."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "pipe behind a link":
        os.mkfifo(path.with_name("_pipe"))
        path.symlink_to("_pipe")
    else:
        path.symlink_to("gone" if kind == "link to nothing" else path.name)


no_files = pytest.mark.parametrize(
    "kind", ["pipe", "pipe behind a link", "link to nothing", "link to itself"]
)


@no_files
@pytest.mark.parametrize("url", [".", "./*"])
def test_what_is_no_file_and_of_no_known_format_is_left_out_and_said(
    folder: Path, url: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    no_file(kind, folder / "latest")
    assert numbers(flow.read(url)) == [0, 1, 2, 3]
    assert f"1 file of no known format is left out, as {folder}/latest" in caplog.text


@no_files
@pytest.mark.parametrize("url", [".", "./*", "part-2.parquet", ["part-0.parquet", "part-2.parquet"]])
def test_what_is_no_file_and_has_the_suffix_of_one_is_an_error_that_names_it(
    folder: Path, url: str | list[str], kind: str
) -> None:
    no_file(kind, folder / "part-2.parquet")
    with pytest.raises(ConnectorError, match=r"part-2\.parquet"):
        flow.read(url).count()
