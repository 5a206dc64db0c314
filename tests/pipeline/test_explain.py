"""`pipe.explain()`: what it prints, and the same as fields on the command line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from delivered import parquet, tar
from typer.testing import CliRunner

import dataflow as flow
from dataflow.cli import app
from loaders import arguments

SPEC = """
version: 1
pipeline:
  - read: {url: rows.parquet}
  - filter: {condition: [[x, ">", 9]]}
  - shuffle: {window: 160}
  - batch: {global_size: 24, lanes: 4}
"""
TEXT = """\
as written
  batch(global_size=24, lanes=4)
    shuffle(window=160)
      filter(condition=[('x', '>', 9)])  [changes the number of rows: lane by lane]
        read(data='rows.parquet')
as it runs
  batch(global_size=24, lanes=4)
    shuffle(window=160)
      filter(condition=[('x', '>', 9)], counted=True)  [index work: kept rows are found in one pass beforehand]
        read(data='rows.parquet', columns=('x',))
columns: x: int64
sources
  rows: parquet, 1 file, 10 fragments, 1,000 rows
ranks
  world: 3
  B: 24 rows, 8 a rank
  lanes: 4
  lane reads: 6 in all, 2 a rank
  2 more than lanes: each rank decodes what it shares
order
  shuffle(160): windows of 160 rows in every lane
    it moves to the source, past filter
    its window counts source rows, before any are left out or added
  fragments: 10, about 2 a lane
  windows: 9 in epoch 0, 2 to 3 a lane
  all source rows count here: what a filter keeps is found when a loader is made
memory
  resident on a rank: 50 MB
    windows of 3 lanes at most and one ahead, each 160 rows of 8 bytes
    50 MB beside them: 1 thread, allocators
  memory_limit: 100 MB"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rows, and a machine of one core and little memory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(arguments, "default_memory_limit", lambda: 100_000_000)
    monkeypatch.setattr(arguments, "available_cores", lambda: 1)
    parquet(tmp_path / "rows.parquet", pa.table({"x": range(1000)}), group=100)
    (tmp_path / "pipe.yaml").write_text(SPEC)
    return tmp_path


def rows() -> flow.Pipeline:
    return flow.read("rows.parquet").filter([("x", ">", 9)]).shuffle(160)


def section(text: str, title: str) -> list[str]:
    """The lines below a title."""
    lines = text.splitlines()
    found = []
    for line in lines[lines.index(title) + 1 :]:
        if not line.startswith(" "):
            break
        found.append(line.strip())
    return found


def of_command(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["explain", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_whole_text() -> None:
    assert rows().batch(global_size=24, lanes=4).explain(world_size=3) == TEXT


def test_without_a_batch_step_ranks_and_memory_are_left_out() -> None:
    text = rows().explain()
    assert [line for line in text.splitlines() if not line.startswith(" ")] == [
        "as written", "as it runs", "columns: x: int64", "sources", "order",
    ]  # fmt: skip
    assert "fragments: 10" in section(text, "order")


def test_the_world_is_that_which_a_loader_finds_unless_another_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe = rows().batch(8)
    assert section(pipe.explain(), "ranks")[0] == "world: 1"
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert section(pipe.explain(), "ranks") == [
        "world: 4",
        "B: 32 rows, 8 a rank",
        "lanes: 4, the world size at the first start",
        "lane reads: 4 in all, 1 a rank",
    ]
    assert section(pipe.explain(world_size=2), "ranks")[0] == "world: 2"


def test_a_world_on_which_no_run_can_begin_says_why() -> None:
    text = rows().batch(global_size=8, lanes=4).explain(world_size=3)
    assert section(text, "ranks") == [
        "world: 3",
        "B: 8 rows, 2 to 3 a rank",
        "lanes: 4",
        "no run can begin on 3 ranks: a global batch of 8 is not a multiple of lanes=4 and world=3; use 12",
        "lane reads: 5 in all, 1 to 2 a rank, of a run that began on others",
        "1 more than lanes: each rank decodes what it shares",
    ]


def test_a_shuffle_of_single_rows_and_none_at_all_say_so() -> None:
    table = flow.from_arrow(pa.table({"x": range(50)}))
    assert section(table.explain(), "order") == ["no shuffle: file order", "fragments: 1"]
    assert section(table.shuffle("full").explain(), "order") == [
        "shuffle('full'): single rows are permuted over all of the source",
        "fragments: 1",
    ]


def test_passes_are_told_from_the_epoch() -> None:
    text = rows().repeat(3).batch(8).explain()
    assert "windows: 10 in the first of 3 passes" in section(text, "order")


# ---- compressed streams


def lines(count: int) -> bytes:
    return b"".join(json.dumps({"x": number}).encode() + b"\n" for number in range(count))


def test_compressed_streams_are_named_with_their_source_and_number(folder: Path) -> None:
    for number in range(3):
        (folder / f"c{number}.jsonl.gz").write_bytes(gzip.compress(lines(20)))
    (folder / "c9.jsonl.gz").write_bytes(gzip.compress(b""))
    (folder / "plain.jsonl").write_bytes(lines(30))
    packed = flow.read("c*.jsonl.gz", name="packed")
    pipe = flow.concat(flow.read("plain.jsonl"), packed)
    assert [source.compressed_files for source in pipe.outline().sources] == [0, 3]
    assert section(pipe.explain(), "sources") == [
        "plain: jsonl, 1 file, 1 fragment, 30 rows",
        "packed: jsonl, 4 files, 3 fragments, 60 rows",
        "packed: 3 compressed files, one fragment each, read forward",
        "each is decoded once per lane in it, and a restore inside it reads from its start",
        "with lanes=1 a rank decodes each once; re-sharded into smaller files, less is read twice",
    ]
    once = flow.concat(packed, packed).outline().sources
    assert [source.compressed_files for source in once] == [3]


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "a.tar.zst"])
def test_a_compressed_tar_is_a_stream_and_a_plain_one_is_none(folder: Path, name: str) -> None:
    plain = tar(folder / "made", [(f"{number}.cls", b"1") for number in range(5)]).read_bytes()
    if name.endswith("gz"):
        plain = gzip.compress(plain)
    if name.endswith("zst"):
        plain = pa.Codec("zstd").compress(plain, asbytes=True)
    (folder / name).write_bytes(plain)
    (source,) = flow.read(name, format="tar").outline().sources
    assert (source.fragments, source.compressed_files) == (1, int(name != "a.tar"))


def test_the_page_about_order_shows_what_is_printed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "order.md").read_text("utf-8")
    shown = page.split("```text\n")[1].partition("memory\n")[0]
    numbers = flow.from_columns({"x": np.arange(1000)})
    pipe = numbers.shuffle(100).seed(7).batch(global_size=32, lanes=4)
    assert shown in pipe.explain(world_size=8)


# ---- the command


def test_the_command_prints_the_same() -> None:
    pipe = rows().batch(global_size=24, lanes=4)
    assert of_command("pipe.yaml") == f"{flow.load_spec('pipe.yaml').explain()}\n"
    assert section(of_command("pipe.yaml", "--world", "3"), "ranks") == section(TEXT, "ranks")
    assert of_command("pipe.yaml").splitlines()[-20:] == pipe.explain().splitlines()[-20:]


def test_the_command_gives_the_facts_as_fields() -> None:
    found: dict[str, Any] = json.loads(of_command("pipe.yaml", "--world", "3", "--json"))
    assert found["explain"] == flow.load_spec("pipe.yaml").explain(world_size=3)
    assert found["explain"].startswith(f"{found['steps']}\nsources\n")
    assert found["ranks"] == {
        "world_size": 3, "global_batch": 24, "lanes": 4, "lanes_asked": True,
        "refusal": None, "lane_reads": 6, "fewest_reads": 2, "most_reads": 2,
    }  # fmt: skip
    (source,) = found["sources"]
    assert (source["name"], source["format"], source["compressed_files"]) == ("rows", "parquet", 0)
    assert (source["files"], source["fragments"], source["rows"]) == (1, 10, 1000)
    assert found["shuffles"] == [
        {
            "window": 160, "window_rows": 160, "counts_source_rows": True, "moves_past": ["filter"],
            "permutes_outputs": False,
        }
    ]  # fmt: skip
    windows = found["windows"]
    assert (windows["fragments"], windows["windows"], windows["before_filters"]) == (10, 9, True)
    assert windows["permuted"] == {"fragments": 0, "slices": 0}
    assert found["memory"]["memory_limit"] == 100_000_000


def test_what_a_spec_says_of_its_loader_holds_in_its_outline(folder: Path) -> None:
    (folder / "pipe.yaml").write_text(SPEC + "loader: {memory_limit: 40MB, threads: 2, ids: true}\n")
    memory = section(of_command("pipe.yaml"), "memory")
    assert "memory_limit: 40 MB" in memory
    assert any("2 threads, allocators" in line for line in memory)
    found = json.loads(of_command("pipe.yaml", "--json"))
    asked = rows().batch(global_size=24, lanes=4).outline(memory_limit="40MB", threads=2)
    assert found["memory"] == asked.fields()["memory"]
    assert found["memory"]["memory_limit"] == 40_000_000


def test_the_command_refuses_a_world_without_ranks() -> None:
    assert CliRunner().invoke(app, ["explain", "pipe.yaml", "--world", "0"]).exit_code == 2
