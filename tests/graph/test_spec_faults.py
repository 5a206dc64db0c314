"""What is wrong in a spec file is named with its line, what it is, and what would be right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataflow as flow
from dataflow.spec import open_spec

READ = "version: 1\npipeline:\n  - read: {url: data.parquet}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pq.write_table(pa.table({"x": np.arange(20), "text": ["a"] * 20}), tmp_path / "data.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(folder: Path, text: str, name: str = "pipe.yaml") -> flow.Pipeline:
    (folder / name).write_text(text)
    return flow.load_spec(folder / name)


@pytest.mark.parametrize(
    ("text", "line", "what", "hint"),
    [
        (READ + "  - shufle: {window: 4}\n", 4, "no operator 'shufle'", "did you mean 'shuffle'"),
        (READ + "  - output_shuffle: {window: 4}\n", 4, "no operator 'output_shuffle'", "'shuffle'"),
        (READ + "  - shuffle:\n      windw: 4\n", 5, "shuffle has no key 'windw'", "did you mean 'window'"),
        (READ + "  - batch:\n      global_size: '8'\n", 5, "a valid integer, not '8'", "quotes"),
        (READ + "  - batch:\n      size: true\n", 5, "a valid integer, not True", "quotes"),
        (READ + "  - select: {columns: x}\n", 4, "select.columns should be a valid array, not 'x'", "columns: [x]"),
        (READ + "  - select: {columns: 'x, y'}\n", 4, "select.columns should be", "columns: [x, y]"),
        (READ + "  - nulls: {columns: 7}\n", 4, "nulls.columns should be", "columns: [7]"),
        ("version: 1\npipeline:\n  - read: {url: data.parquet, columns: x}\n", 3, "read.columns", "columns: [x]"),
        ("version: 1\npipeline: {read: {url: data.parquet}}\n", 2, "pipeline should be", "behind a dash"),
        ("version: 1\npipeline:\n  - zip: {inputs: data.parquet}\n", 3, "zip.inputs", "inputs: [data.parquet]"),
        (READ + "  - pad: {lengths: 3}\n", 4, "pad.lengths should be", "lengths: {name: value}"),
        (READ + "  - rename: {names: [x, y]}\n", 4, "rename.names should be", "names: {name: value}"),
        (READ + "  - select: {columns: [x, 7]}\n", 4, "a valid string, not 7", "quotes"),
        (READ + "  - take: {row: 3}\n", 4, "take has no key 'row'", "did you mean 'rows'"),
        (READ + "  - take: {}\n", 4, "take lacks the key 'rows'", "add rows"),
        (READ + "  - take: {rows: -1}\n", 4, "take(-1) is no number of rows", "whole number"),
        (READ + "  - take: 5\n", 4, "a step is one name with its arguments", "- shuffle: {window"),
        (READ + "  - take\n", 4, "'take' is no step", "- shuffle: {window"),
        (READ + "  - take: {rows: 5}\n    skip: {rows: 1}\n", 4, "a step is one name", "a dash of its own"),
        (READ + "  - select: {columns: [y]}\n", 4, "there is no column 'y'", "'x'"),
        (READ + "  - batch: {size: 4}\n  - take: {rows: 4}\n", 5, "stands behind batch", "before .batch"),
        (READ + "  - read: {url: data.parquet}\n", 4, "read stands behind another step", "concat or zip"),
        (READ + "  - map: {function: 'os:getcwd'}\n", 4, "'os', which is not allowed", "--allow os"),
        (READ + "  - map:\n      function: getcwd\n", 5, "'getcwd' names no function", "package.module:function"),
        (READ + "  - cast:\n      types:\n        x: int46\n", 4, "'int46' is no type", "'int64'"),
        (READ + "  - filter:\n      condition: {arrow: x > 3}\n", 5, "no Arrow expression", "terms"),
        (READ + "  - filter:\n      condition: [[x, '~', 3]]\n", 4, "'~' is no operator", "'=='"),
        (READ + "loader:\n  thread: 2\n", 5, "loader has no key 'thread'", "did you mean 'threads'"),
        (READ + "loader:\n  on_error: skp\n", 5, "loader.on_error should be 'raise', 'skip' or 'replace'", ""),
        (READ + "loader:\n  ids: true\n  threads: 0\n", 6, "threads=0 is no whole number over 0", "default"),
        (READ + "loader:\n  threads: two\n", 5, "loader.threads should be a valid integer", "needs quotes"),
        (READ + "loader:\n  memory_limit: 4 parsecs\n", 5, "memory_limit='4 parsecs' is no size", "'64MB'"),
        (READ + "loader:\n  prefetch: -1\n", 5, "prefetch=-1 is no whole number over 0", "default"),
        (READ + "loader:\n  executor: dask\n", 5, "executor='dask' is unknown", "'threads'"),
        (READ + "loader:\n  on_error: skip\n  max_errors: -1\n", 6, "max_errors=-1 is no number of rows", "0 or"),
        (READ + "loader:\n  max_errors: 3\n  ids: true\n", 5, "max_errors= has no meaning", "on_error='skip'"),
        (READ + "loader:\n  device: gpu0\n", 5, "device='gpu0' is no device", "'cuda:1'"),
        (READ + "loader:\n  device: cpu\n  output: numpy\n", 6, "output='numpy' with device='cpu'", "'torch'"),
        (READ + "loader:\n  quarantine: .\n", 5, "quarantine='.' is a folder", "a file in it"),
        (READ + "loader:\n  trace: .\n", 5, "trace='.' is a folder", "a file in it"),
        (READ + "seed: 1\nseed: 2\n", 5, "'seed' is there twice, first on line 4", "leave one out"),
        (READ + "seed: -1\n", 4, "seed(-1) is no whole number", "seed(7)"),
        (READ + "sed: 1\n", 4, "the spec has no key 'sed'", "did you mean 'seed'"),
        ("version: 2\npipeline: []\n", 1, "version 2 is unknown", "reads version 1"),
        ("pipeline: []\n", 1, "the spec lacks the key 'version'", "add version"),
        ("version: 1\npipeline: []\n", 2, "a pipeline is a list of steps", "- read:"),
        ("version: 1\npipeline:\n  - take: {rows: 3}\n", 3, "take needs a step in front", "begin with - read"),
        ("version: 1\npipeline:\n  - concat: {inputs: []}\n", 3, "nothing to join", "list of lists"),
        (
            "version: 1\npipeline:\n  - concat:\n      inputs:\n        - - read: {url: data.parquet}\n"
            "          - batch: {size: 2}\n", 5, "an input makes batches", "behind the join",
        ),
        (
            "version: 1\npipeline:\n  - concat:\n      inputs:\n        - - read: {url: data.parquet}\n"
            "          - tke: {rows: 2}\n", 6, "no operator 'tke'", "'take'",
        ),
        (
            "version: 1\npipeline:\n  - read:\n      url: data.parquet\n      format:\n        name: tar\n"
            "        key_dott: last\n", 7, "tar has no key 'key_dott'", "did you mean 'key_dot'",
        ),
        (
            "version: 1\npipeline:\n  - read:\n      url: data.parquet\n      format: parket\n",
            5, "'parket' is unknown", "'parquet'",
        ),
        ("version: 1\npipeline: [\n", 3, "stream end", "brackets"),
        ("version: 1\npipeline:\n\t- read: {}\n", 3, "cannot start any token", "indentation"),
        ("version: !!python/object:os.system 1\n", 1, "the tag", "plain values"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_line(folder: Path, text: str, line: int, what: str, hint: str) -> None:
    with pytest.raises(flow.PlanError) as caught:
        load(folder, text)
    assert type(caught.value) is flow.PlanError
    assert caught.value.message.startswith(f"pipe.yaml:{line}: ")
    assert what in caught.value.message
    assert hint in caught.value.hint


def test_the_lines_of_a_json_file_are_named_too(folder: Path) -> None:
    text = (
        '{\n\t"version": 1,\n\t"pipeline": [\n\t\t{"read": {"url": "data.parquet",\n\t\t\t"clumns": ["x"]}}]}'
    )
    with pytest.raises(flow.PlanError, match=r"^pipe\.json:5: read has no key 'clumns'"):
        load(folder, text, "pipe.json")


def test_a_missing_data_file_is_named_with_the_line_that_reads_it(folder: Path) -> None:
    with pytest.raises(flow.ConnectorError, match=r"^pipe\.yaml:3: ") as caught:
        load(folder, READ.replace("data.parquet", "date.parquet"))
    assert "did you mean 'data.parquet'" in caught.value.hint


def test_a_missing_spec_names_those_that_are_there(folder: Path) -> None:
    load(folder, READ, "train.yaml")
    with pytest.raises(flow.PlanError, match="cannot be read") as caught:
        flow.load_spec(folder / "trian.yaml")
    assert "train.yaml" in caught.value.hint


def test_a_spec_that_is_there_and_cannot_be_read_is_not_suggested_again(folder: Path) -> None:
    load(folder, READ, "train.yaml")
    (folder / "bad.yaml").write_bytes(b"version: 1 # \xff")
    for given, hint in (("bad.yaml", "save it as UTF-8"), (".", "it is a folder")):
        with pytest.raises(flow.PlanError, match="cannot be read") as caught:
            flow.load_spec(folder / given)
        assert hint in caught.value.hint
        assert ".yaml" not in caught.value.hint


def test_a_spec_of_plain_data_needs_no_file() -> None:
    spec = flow.read("data.parquet").take(3).to_spec()
    assert flow.load_spec(spec).count() == 3
    with pytest.raises(flow.PlanError, match=r"^spec: the spec lacks the key 'pipeline'"):
        flow.load_spec({"version": 1})


def test_the_loader_section_becomes_arguments_of_the_loader(folder: Path) -> None:
    text = READ + "  - batch: {size: 5}\nloader: {memory_limit: 1GB, threads: 2, ids: true, output: numpy}\n"
    load(folder, text)
    opened = open_spec(folder / "pipe.yaml")
    assert opened.loader == {"memory_limit": "1GB", "threads": 2, "ids": True, "output": "numpy"}
    with opened.pipeline.loader(**opened.loader) as loader:
        assert next(iter(loader))["__id__"].tolist() == [0, 1, 2, 3, 4]


def test_a_device_that_only_another_machine_has_is_no_fault_of_a_spec(folder: Path) -> None:
    load(folder, READ + "loader: {device: 'cuda:7'}\n")
    assert open_spec(folder / "pipe.yaml").loader == {"device": "cuda:7"}


def test_columns_and_filter_of_read_are_those_of_the_function(folder: Path) -> None:
    text = READ.replace("data.parquet", "data.parquet, columns: [x], filter: [[x, '>', 4]]")
    wanted = flow.read("data.parquet", columns=["x"], filter=[("x", ">", 4)])
    assert load(folder, text).explain() == wanted.explain()


def test_shared_reads_must_agree(folder: Path) -> None:
    part = "        - - read: {{url: data.parquet, name: {0}, shared: s}}\n"
    text = "version: 1\npipeline:\n  - concat:\n      inputs:\n" + part.format("a") + part.format("b")
    with pytest.raises(flow.PlanError, match=r"^pipe\.yaml:6: .*'s', and differ") as caught:
        load(folder, text)
    assert "same arguments" in caught.value.hint


def test_modules_to_allow_are_a_list(folder: Path) -> None:
    load(folder, READ)
    with pytest.raises(flow.PlanError, match="is no list") as caught:
        flow.load_spec(folder / "pipe.yaml", allow_modules="os")
    assert "['os']" in caught.value.hint


class TestWhatNoSpecCanHold:
    def test_rows_in_memory(self) -> None:
        with pytest.raises(flow.PlanError, match="in memory") as caught:
            flow.from_columns({"x": np.arange(3)}).to_spec()
        assert "files" in caught.value.hint

    def test_lambdas_closures_and_methods(self) -> None:
        def inner(row: dict[str, object]) -> dict[str, object]:
            return row

        for function in (lambda row: row, inner, "text".join):
            with pytest.raises(flow.PlanError, match="cannot be found again by its name") as caught:
                flow.read("data.parquet").map(function, schema={"x": "int64"}).to_spec()
            assert "top of a module" in caught.value.hint

    def test_functions_of_the_running_program(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(test_a_spec_of_plain_data_needs_no_file, "__module__", "__main__")
        with pytest.raises(flow.PlanError, match="of the program that runs") as caught:
            flow.read("data.parquet").filter(test_a_spec_of_plain_data_needs_no_file).to_spec()
        assert "module of its own" in caught.value.hint

    @pytest.mark.parametrize(
        ("options", "place"),
        [
            ({"client": {"x": 1}, "secret": "s"}, "['secret']"),
            ({"client": {"x": 1, "token": "s"}}, "['client']['token']"),
        ],
    )
    def test_credentials(self, options: dict[str, Any], place: str) -> None:
        pipe = flow.read("data.parquet", storage_options=options)
        with pytest.raises(flow.PlanError, match=re.escape(f"storage_options{place} looks like")) as caught:
            pipe.to_spec()
        assert "environment" in caught.value.hint
        # The value itself must not come into a log.
        assert "'s'" not in str(caught.value)


def test_a_filter_that_cannot_be_counted_beforehand_is_named_with_its_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "spec_rows.py").write_text("def twice(row): return [row, row]\n")
    monkeypatch.syspath_prepend(folder)
    text = READ + "  - flat_map: {function: 'spec_rows:twice'}\n"
    text += "  - filter: {condition: [[x, '>', 3]], counted: true}\n"
    (folder / "pipe.yaml").write_text(text)
    with pytest.raises(flow.PlanError, match="cannot be counted beforehand") as caught:
        flow.load_spec(folder / "pipe.yaml", ["spec_rows"])
    assert "pipe.yaml:5" in str(caught.value)
    assert "in front of it" in caught.value.hint
