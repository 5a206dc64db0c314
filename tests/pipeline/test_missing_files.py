"""What is not there is an error on the line that names it, without an index; a store is asked later."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataflow as flow
import dataflow.ops.read
from connectors.jsonl import Jsonl
from dataflow.errors import ConnectorError, PlanError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "empty").mkdir()
    (tmp_path / "data").mkdir()
    for name in ("data/a-0.parquet", "data/a-1.parquet"):
        pq.write_table(pa.table({"x": [1, 2]}), tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens an index fails."""

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("an index was opened")

    monkeypatch.setattr(dataflow.ops.read, "open_index", opened)


@pytest.mark.usefixtures("no_index")
@pytest.mark.parametrize(
    ("url", "what", "hint"),
    [
        ("nope.parquet", "nope.parquet does not exist", "'data'"),
        ("dta", "dta does not exist", "did you mean 'data'"),
        ("nope/*.parquet", "nope/*.parquet matches no file", "'data'"),
        ("data/*.tar", "data/*.tar matches no file", "a-0.parquet"),
        ("data/**/*.tar", "data/**/*.tar matches no file", "a-0.parquet"),
        ("data/a-{0..2}.parquet", "data/a-2.parquet does not exist", "a-0.parquet"),
        ("data/a-0.parquet/", "is a file, not a folder", "slash"),
        ("empty", "empty has no files", "begin with . or _"),
        (["data/a-0.parquet", "data/b-0.parquet"], "data/b-0.parquet does not exist", "a-0.parquet"),
        (Path("nope"), "nope does not exist", "'data'"),
    ],
)
def test_a_path_that_is_not_there_fails_where_it_is_read(
    url: str | Path | list[str], what: str, hint: str
) -> None:
    with pytest.raises(ConnectorError) as caught:
        flow.read(url)
    assert what in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.usefixtures("no_index")
def test_a_path_with_a_scheme_of_the_disk_is_looked_for_too(folder: Path) -> None:
    flow.read(f"file://{folder}/data")
    with pytest.raises(ConnectorError, match="nope does not exist"):
        flow.read(f"file://{folder}/nope")


@pytest.mark.usefixtures("no_index")
@pytest.mark.parametrize("url", ["data", "data/", "data/*.parquet", "data/a-{0,1}.parquet", "**/a-0.parquet"])
def test_a_path_that_is_there_opens_no_index_yet(url: str) -> None:
    flow.read(url)


@pytest.mark.usefixtures("no_index")
@pytest.mark.parametrize("url", ["", []])
def test_no_url_fails_where_it_is_read(url: str | list[str]) -> None:
    with pytest.raises(PlanError, match="names no file"):
        flow.read(url)


def test_a_store_is_asked_when_columns_are() -> None:
    pipe = flow.read("memory://nowhere/x.parquet")
    with pytest.raises(ConnectorError, match="does not exist"):
        pipe.schema  # noqa: B018 - what is asked


@pytest.mark.parametrize(("scheme", "near"), [("s3s", "'s3'"), ("fil", "'file'")])
def test_a_scheme_that_nobody_knows_fails_where_it_is_read(scheme: str, near: str) -> None:
    with pytest.raises(PlanError, match=f"there is no scheme '{scheme}'") as caught:
        flow.read(f"{scheme}://bucket/x.parquet")
    assert near in caught.value.hint


def test_a_filesystem_that_was_registered_as_a_class_is_known() -> None:
    class Own(fsspec.AbstractFileSystem):  # type: ignore[misc]
        protocol = "ownstore"

    fsspec.register_implementation("ownstore", Own, clobber=True)
    flow.read("ownstore://x.parquet")


def test_a_format_that_nobody_knows_fails_where_it_is_read() -> None:
    with pytest.raises(PlanError, match="format='parqet' is unknown") as caught:
        flow.read("data", format="parqet")
    assert "'parquet'" in caught.value.hint


def test_in_a_spec_the_line_is_named(folder: Path) -> None:
    Path("pipe.yaml").write_text("version: 1\npipeline:\n  - read: {url: 'nope/*.parquet'}\n")
    with pytest.raises(ConnectorError, match=r"^pipe\.yaml:3: .*nope/\*\.parquet matches no file") as caught:
        flow.load_spec("pipe.yaml")
    assert "'data'" in caught.value.hint


def test_a_file_of_no_known_format_is_an_error_on_the_line_that_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "README.md").write_text("words")
    (folder / "a.jsonl").write_text('{"x": 1}\n')
    with pytest.raises(PlanError, match=r"no format is known .*README\.md: \.md") as caught:
        flow.read(folder / "README.md")
    assert ".jsonl)" in caught.value.hint
    with pytest.raises(PlanError, match=r"1 jsonl, 1 of no known format, as .*README\.md"):
        flow.read([folder / "a.jsonl", folder / "README.md"])
    assert flow.read(folder / "README.md", format=Jsonl(schema=pa.schema({"x": pa.int8()}))).node.source
    assert flow.read(folder).count() == 1
