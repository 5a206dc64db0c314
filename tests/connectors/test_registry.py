from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pyarrow as pa
import pytest

import connectors.registry
from connectors.contract import Connector, FileInfo
from connectors.memory import InMemory
from connectors.parquet import Parquet
from connectors.registry import choose, names
from dataflow.errors import MissingExtraError, PlanError


def files(*paths: str) -> list[FileInfo]:
    return [FileInfo(f"/data/{path}", 1) for path in paths]


class Songs(InMemory):
    """A connector of another package."""

    @property
    def name(self) -> str:
        return "songs"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".song",)


def make_songs() -> Songs:
    return Songs(pa.table({"a": [1]}))


def make_nothing() -> str:
    return "not a connector"


def needs_extra() -> Connector:
    raise MissingExtraError("songs needs ffmpeg.", extra="all")


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Installs entry points of the group for this test."""

    def installed(**places: str) -> None:
        entries = EntryPoints(
            EntryPoint(name, place, connectors.registry.GROUP) for name, place in places.items()
        )
        monkeypatch.setattr(connectors.registry, "entry_points", lambda **params: entries.select(**params))

    return installed


@pytest.mark.parametrize(
    ("paths", "name"),
    [
        (["a.parquet", "b.PQ", "c.v2.parquet"], "parquet"),
        (["a.feather", "b.arrow", "c.arrows", "d.ipc"], "arrow"),
        (["a.tar", "b.tar.gz", "c.tgz", "own-000.tar"], "tar"),
        (["a.jsonl", "b.ndjson", "c.json.gz", "d.jsonl.gz", "e.ndjson.gz"], "jsonl"),
        (["cat/1.jpg", "cat/2.JPEG", "dog.b/3.png", "4.webp", "5.bmp", "6.gif", "7.tif", "8.tiff"], "folder"),
    ],
)
def test_suffixes_that_agree_choose_the_connector(paths: list[str], name: str) -> None:
    assert choose(None, files(*paths)).name == name


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["a.parquet", "b.parquet", "c.tar"], "2 parquet, 1 tar"),
        (["a.csv"], r"no format is known for the suffix of /data/a\.csv: \.csv\."),
        (["a"], "no format is known for the suffix of /data/a: none at all"),
        (["a.gz"], r"for the suffix of /data/a\.gz: \.gz"),
        (["dir.parquet/part-0"], "for the suffix of /data/dir.parquet/part-0: none at all"),
        (["a.csv", "b.xml", "c.csv"], r"the suffixes of 3 files, as /data/a\.csv: \.csv, \.xml"),
    ],
)
def test_suffixes_that_do_not_agree_are_an_error_that_names_format(paths: list[str], said: str) -> None:
    with pytest.raises(PlanError, match=said) as caught:
        choose(None, files(*paths))
    assert "format=" in caught.value.hint
    assert "parquet" in caught.value.hint


@pytest.mark.parametrize("beside", ["README.md", "LICENSE", "a.parquet.tmp", "notes.txt"])
def test_files_of_no_known_format_beside_others_choose_nothing(beside: str) -> None:
    assert choose(None, files("a.parquet", beside)).name == "parquet"
    with pytest.raises(PlanError, match="1 parquet, 1 of no known format") as caught:
        choose(None, files("a.parquet", beside), named=[f"/data/{beside}"])
    assert "format=" in caught.value.hint


def test_formats_are_named_with_their_suffixes_where_a_file_has_none_of_them(install: Any) -> None:
    install(songs=f"{__name__}:make_songs")
    with pytest.raises(PlanError) as caught:
        choose(None, files("a.csv"))
    for said in ("parquet (.parquet .pq)", "jsonl (", "songs (.song)", "say format="):
        assert said in caught.value.hint


def test_no_files_are_an_error() -> None:
    with pytest.raises(PlanError, match="no file") as caught:
        choose(None, [])
    assert "format=" in caught.value.hint


def test_a_name_or_a_connector_wins_over_the_suffix() -> None:
    connector = Parquet()
    assert choose(connector, files("a.tar")) is connector
    assert choose("parquet", files("a.tar")).name == "parquet"


def test_an_unknown_name_has_the_near_matches_and_a_class_is_told_apart() -> None:
    with pytest.raises(PlanError, match="'parqet' is unknown") as caught:
        choose("parqet", [])
    assert "'parquet'" in caught.value.hint
    wrong: Any = Parquet
    with pytest.raises(PlanError, match="format=Parquet is a class") as caught:
        choose(wrong, [])
    assert "Parquet()" in caught.value.hint


def test_a_package_adds_a_format_by_name_and_suffix(install: Any) -> None:
    install(songs=f"{__name__}:make_songs")
    assert choose("songs", []).name == "songs"
    with pytest.raises(PlanError) as caught:
        choose("song", [])
    assert "'songs'" in caught.value.hint
    assert "songs" in names()


def test_a_package_adds_suffixes(install: Any) -> None:
    install(songs=f"{__name__}:make_songs")
    assert choose(None, files("a.song", "b.SONG")).name == "songs"


@pytest.mark.parametrize(
    ("place", "said"),
    [("nowhere_at_all:Songs", "cannot be loaded"), (f"{__name__}:make_nothing", "is no Connector")],
)
def test_a_package_that_is_broken_is_named_and_does_no_harm_to_others(
    install: Any, place: str, said: str
) -> None:
    install(songs=place)
    with pytest.raises(PlanError, match=f"'songs' of .* {said}") as caught:
        choose("songs", [])
    assert caught.value.hint
    assert choose(None, files("a.parquet")).name == "parquet"


def test_a_library_that_is_not_installed_is_named_with_the_pip_line(install: Any) -> None:
    install(songs=f"{__name__}:needs_extra")
    with pytest.raises(MissingExtraError) as caught:
        choose("songs", [])
    assert "pip install" in caught.value.hint


def test_a_package_cannot_take_the_name_of_a_format_that_is_built_in(install: Any) -> None:
    install(parquet=f"{__name__}:make_songs")
    assert type(choose("parquet", [])) is Parquet
