from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.file_info import NO_FILE
from connectors.paths import Listing, resolve
from dataflow.errors import ConnectorError, DataflowError, PlanError


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * len(name))


def names(url: str | Path | Sequence[str | Path]) -> list[str]:
    return relative(resolve(url))


def relative(listing: Listing) -> list[str]:
    """The files' names relative to the root."""
    return [info.path.removeprefix(listing.root).lstrip("/") for info in listing.files]


@pytest.fixture
def remote() -> Iterator[str]:
    fs = fsspec.filesystem("memory")
    yield "memory://bucket"
    if fs.exists("/bucket"):
        fs.rm("/bucket", recursive=True)


def test_a_file_is_itself_with_size_and_time(tmp_path: Path) -> None:
    put(tmp_path, "one.parquet")
    os.utime(tmp_path / "one.parquet", (5, 1234.5))
    for url in (tmp_path / "one.parquet", str(tmp_path / "one.parquet"), f"file://{tmp_path}/one.parquet"):
        listing = resolve(url)
        assert listing.root == str(tmp_path)
        assert [(f.path, f.size, f.mtime) for f in listing.files] == [(f"{tmp_path}/one.parquet", 11, 1234.5)]


def test_a_folder_is_every_file_below_it_in_natural_order(tmp_path: Path) -> None:
    put(tmp_path, "10", "2", "b/x1", "a-b/x", "a/x10", "a/x9", "1")
    put(tmp_path, "_SUCCESS", ".hidden", "_delta_log/0.json", ".cache/y", "a/_temporary/z")
    assert names(tmp_path) == names(f"{tmp_path}/") == ["1", "2", "10", "a/x9", "a/x10", "a-b/x", "b/x1"]


def test_the_working_folder_and_the_home_folder_are_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "d/a.tar")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve("d").root == resolve("~/d").root == resolve("./d/../d/").root == f"{tmp_path}/d"


def test_a_list_keeps_its_order_and_each_url_its_own(tmp_path: Path) -> None:
    put(tmp_path, "z", "a", "f/10", "f/9")
    assert names([tmp_path / "z", f"{tmp_path}/f", f"{tmp_path}/a"]) == ["z", "f/9", "f/10", "a"]


def test_wildcards_find_names_but_not_hidden_ones(tmp_path: Path) -> None:
    put(
        tmp_path,
        "p-1.pq",
        "p-2.pq",
        "q-1.pq",
        ".p-3.pq",
        "_p-4.pq",
        "deep/p-5.pq",
        "deep/er/p-6.pq",
        "_x/p-7.pq",
    )
    assert names(f"{tmp_path}/p-*.pq") == ["p-1.pq", "p-2.pq"]
    assert names(f"{tmp_path}/?-1.pq") == ["p-1.pq", "q-1.pq"]
    assert names(f"{tmp_path}/[!p]-1.pq") == ["q-1.pq"]
    assert names(f"{tmp_path}/_*.pq") == ["_p-4.pq"]
    assert names(f"{tmp_path}/*/p-*.pq") == ["deep/p-5.pq"]
    assert names(f"{tmp_path}/**/p-*.pq") == ["deep/er/p-6.pq", "deep/p-5.pq", "p-1.pq", "p-2.pq"]
    assert names(f"{tmp_path}/deep/**") == ["er/p-6.pq", "p-5.pq"]
    assert names(f"{tmp_path}/de*") == ["deep/er/p-6.pq", "deep/p-5.pq"]


def test_the_root_is_the_folder_before_the_first_pattern(tmp_path: Path) -> None:
    put(tmp_path, "a/1/x", "a/2/y")
    assert resolve(f"{tmp_path}/a/*/x").root == f"{tmp_path}/a"
    assert resolve([f"{tmp_path}/a/1/x", f"{tmp_path}/a/2/y"]).root == f"{tmp_path}/a"
    assert resolve([f"{tmp_path}/a/1", f"{tmp_path}/a/1/../2/*"]).root == f"{tmp_path}/a"


def test_braces_stand_for_each_of_their_names(tmp_path: Path) -> None:
    put(tmp_path, *(f"s-{k:03d}.tar" for k in range(12)), "a/x", "b/x", "c/d/x")
    assert names(f"{tmp_path}/s-{{000..011}}.tar") == [f"s-{k:03d}.tar" for k in range(12)]
    assert names(f"{tmp_path}/s-{{011..009}}.tar") == ["s-009.tar", "s-010.tar", "s-011.tar"]
    assert names(f"{tmp_path}/s-0{{0{{1,2}},1{{0..1}}}}.tar") == [f"s-{k:03d}.tar" for k in (1, 2, 10, 11)]
    assert names(f"{tmp_path}/{{a,c/d}}/x") == ["a/x", "c/d/x"]
    assert names(f"{tmp_path}/{{a,b}}/*") == ["a/x", "b/x"]


def test_a_name_of_a_brace_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, "s-0.tar", "s-2.tar")
    with pytest.raises(ConnectorError, match=r"s-1\.tar does not exist") as caught:
        resolve(f"{tmp_path}/s-{{0..2}}.tar")
    assert "'s-0.tar'" in caught.value.hint


@pytest.mark.parametrize("braces", ["{0..1000000}", "{0..999}{0..999}{0..999}"])
def test_a_brace_that_would_fill_the_memory_is_refused(tmp_path: Path, braces: str) -> None:
    with pytest.raises(PlanError, match="more than 1,000,000") as caught:
        resolve(f"{tmp_path}/{braces}")
    assert "folder" in caught.value.hint


ODD = [
    "a#b",
    "[1]",
    "a[0-9]b",
    "x@y",
    "100%",
    "a b",
    "a%20b",
    "{1,2}",
    "{x}",
    "what?",
    "*",
    "a::b",
    ".cache",
    "_x",
    "é",
    "~",
    "&=+;,'\"",
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "pattern", ["{odd}/f.pq", "{odd}", "{odd}/*.pq", "{odd}/{{f,g}}.pq", "{odd}/g.{odd}"]
)
@pytest.mark.parametrize("scheme", ["local", "memory"])
def test_a_name_that_exists_is_taken_literally(
    tmp_path: Path, remote: str, odd: str, pattern: str, scheme: str
) -> None:
    if scheme == "memory" and "::" in odd:
        pytest.skip("in a URL with a scheme, :: chains filesystems")
    files = [f"{odd}/f.pq", f"{odd}/g.pq", f"{odd}/g.{odd}"]
    # What the name would find if it were taken for a pattern.
    decoys = ["a1b/f.pq", "1/f.pq", "2/f.pq", "x/f.pq", "whats/f.pq", "1", "what!"]
    if scheme == "local":
        put(tmp_path, *files, *(decoy for decoy in decoys if "/" in decoy))
        base = str(tmp_path)
    else:
        for name in [*files, *decoys]:
            fsspec.filesystem("memory").pipe(f"/bucket/{name}", b"x")
        base = remote
    expected = {
        "{odd}/f.pq": files[:1],
        "{odd}": files,
        "{odd}/*.pq": files[:2],
        "{odd}/{{f,g}}.pq": files[:2],
        "{odd}/g.{odd}": files[2:],
    }[pattern]
    url = f"{base}/{pattern.format(odd=odd)}"
    assert sorted(f"{resolve(url).root.rpartition('/')[2]}/{name}" for name in names(url)) == sorted(expected)


@given(
    st.text(st.characters(blacklist_characters="/\x00", blacklist_categories=["Cs"]), min_size=1, max_size=12)
)
def test_any_name_of_a_file_finds_that_file(name: str) -> None:
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    # `Store` paths are literal; a URL loses what its filesystem strips, so only names that it keeps count.
    path = f"/any/{name}"
    if fs._strip_protocol(f"memory:/{path}") != path or name in (".", ".."):
        return
    fs.pipe(path, b"x")
    fs.pipe("/any/other", b"yy")
    assert [info.path for info in resolve(f"memory:/{path}").files] == [path]
    fs.store.clear()


def test_a_remote_store_is_listed_like_the_disk(tmp_path: Path, remote: str) -> None:
    files = ["d/10.pq", "d/2.pq", "d/e/1.pq", "d/_SUCCESS", "d/.x/1.pq", "other.txt"]
    put(tmp_path, *files)
    for name in files:
        fsspec.filesystem("memory").pipe(f"/bucket/{name}", b"x" * len(name))
    for pattern in ("d", "d/*.pq", "d/**/*.pq", "d/{2,10}.pq", "d/**", "*.txt", "d/_SUCCESS"):
        here, there = resolve(f"{tmp_path}/{pattern}"), resolve(f"{remote}/{pattern}")
        assert relative(there) == relative(here)
        assert [f.size for f in there.files] == [f.size for f in here.files]
        assert here.root.removeprefix(str(tmp_path)) == there.root.removeprefix("/bucket")
    assert all(f.mtime > 0 for f in resolve(remote).files)


def test_many_names_of_a_remote_folder_cost_one_listing(remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = fsspec.filesystem("memory")
    for k in range(100):
        fs.pipe(f"/bucket/{k}.pq", b"x")
    asked: list[str] = []
    info = fs.info

    def noted(path: str, **options: Any) -> Any:
        asked.append(path)
        return info(path, **options)

    monkeypatch.setattr(fs, "info", noted)
    assert len(resolve([f"{remote}/{k}.pq" for k in range(100)]).files) == 100
    assert asked == []
    assert len(resolve([f"{remote}/{k}.pq" for k in range(3)]).files) == 3
    assert len(asked) == 3


def test_files_of_one_folder_by_the_hundred_thousand_are_listed_without_asking_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, *(str(k) for k in range(300)))
    calls: list[str] = []
    real = os.scandir

    def noted(path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        calls.append(path)
        return real(path)

    monkeypatch.setattr(os, "scandir", noted)
    monkeypatch.setattr(os, "listdir", lambda path: pytest.fail("listed twice"))
    assert names(tmp_path) == [str(k) for k in range(300)]
    assert calls == [str(tmp_path)]


def test_links_are_followed_but_not_in_a_circle(tmp_path: Path) -> None:
    put(tmp_path, "blobs/0a1b", "data/x.pq")
    (tmp_path / "data/link.pq").symlink_to(tmp_path / "blobs/0a1b")
    (tmp_path / "data/more").symlink_to(tmp_path / "blobs")
    (tmp_path / "data/up").symlink_to(tmp_path / "data")
    assert names(tmp_path / "data") == ["link.pq", "more/0a1b", "x.pq"]


def test_a_link_to_nothing_is_listed_as_no_file(tmp_path: Path) -> None:
    put(tmp_path, "x.pq")
    (tmp_path / "gone.pq").symlink_to(tmp_path / "nowhere")
    sizes = {Path(info.path).name: info.size for info in resolve(tmp_path).files}
    assert sizes.pop("gone.pq") == NO_FILE
    assert list(sizes) == ["x.pq"]


@pytest.mark.parametrize("base", ["local", "memory"])
@pytest.mark.parametrize(
    ("url", "said", "hint"),
    [
        ("trian/a.pq", "trian/a.pq does not exist", "'train'"),
        ("train/b.qp", "train/b.qp does not exist", "'b.pq'"),
        ("train/*.parquet", "matches no file", "known: 'a.pq', 'b.pq'"),
        ("train/a.pq/", "is a file", "slash"),
        ("nothing/at/all", "does not exist", "known: 'train'"),
    ],
)
def test_what_is_not_found_has_the_near_matches(
    tmp_path: Path, remote: str, base: str, url: str, said: str, hint: str
) -> None:
    put(tmp_path, "train/a.pq", "train/b.pq")
    for name in ("a.pq", "b.pq"):
        fsspec.filesystem("memory").pipe(f"/bucket/train/{name}", b"x")
    with pytest.raises(ConnectorError, match=said) as caught:
        resolve(f"{tmp_path if base == 'local' else remote}/{url}")
    assert hint in caught.value.hint


def test_a_folder_without_files_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, "_SUCCESS", ".hidden")
    with pytest.raises(ConnectorError, match="has no files") as caught:
        resolve(tmp_path)
    assert "begin with . or _" in caught.value.hint


@pytest.mark.parametrize("again", ["a.pq", "./a.pq", "*.pq", "{a,b}.pq", ""])
def test_a_file_named_twice_is_an_error(tmp_path: Path, again: str) -> None:
    put(tmp_path, "a.pq", "b.pq")
    with pytest.raises(PlanError, match=r"a\.pq is named twice") as caught:
        resolve([f"{tmp_path}/a.pq", f"{tmp_path}/{again}"])
    assert "repeat" in caught.value.hint


@pytest.mark.parametrize("nothing", ["", [], [""]])
def test_no_url_is_an_error(nothing: str | list[str]) -> None:
    with pytest.raises(PlanError, match="names no file") as caught:
        resolve(nothing)
    assert "pattern" in caught.value.hint


def test_two_stores_at_once_are_an_error(tmp_path: Path, remote: str) -> None:
    put(tmp_path, "a")
    with pytest.raises(PlanError, match="another store") as caught:
        resolve([tmp_path / "a", f"{remote}/a"])
    assert "concat" in caught.value.hint


@pytest.mark.parametrize(
    ("url", "hint"),
    [("s4://bucket/a", "known: "), ("memry://a", "'memory'"), ("s3://bucket/a", "dataflow-engine[s3]")],
)
def test_a_scheme_that_cannot_be_opened_says_what_would_help(
    url: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    with pytest.raises(DataflowError) as caught:
        resolve(url)
    assert hint in caught.value.hint


def test_storage_options_reach_the_filesystem(tmp_path: Path) -> None:
    put(tmp_path, "a/x.pq", "a/y.pq")
    options = {"path": str(tmp_path), "target_protocol": "file"}
    assert relative(resolve("dir://a", options)) == ["x.pq", "y.pq"]


def test_hidden_names_are_no_near_matches_unless_a_hidden_one_is_wanted(tmp_path: Path) -> None:
    put(tmp_path, ".secret", "_SUCCESS", *(f"file{k}" for k in range(12)))
    with pytest.raises(ConnectorError) as caught:
        resolve(tmp_path / "nope.parquet")
    assert ".secret" not in caught.value.hint
    assert "_SUCCESS" not in caught.value.hint
    assert caught.value.hint.count("'file") == 8
    with pytest.raises(ConnectorError) as caught:
        resolve(tmp_path / ".secrte")
    assert "did you mean '.secret'" in caught.value.hint
