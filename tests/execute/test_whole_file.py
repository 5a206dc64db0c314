"""A file that is written whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from dataflow.execute.whole_file import target_of, write_whole


def test_it_has_the_text_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    for text in ("first", "\u00e9" * 10):
        write_whole(tmp_path / "a.json", text)
        assert (tmp_path / "a.json").read_text("utf-8") == text
        assert len(list(tmp_path.iterdir())) == 1


def test_one_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "a.json", "\ud800")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "folder", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "folder"]
    assert (tmp_path / "a.json").read_text() == "before"


def test_of_several_that_write_it_at_once_each_writes_its_own_whole_text(tmp_path: Path) -> None:
    texts = [letter * 100_000 for letter in "abcd"]
    failures: list[BaseException] = []

    def write(text: str) -> None:
        try:
            for _ in range(20):
                write_whole(tmp_path / "a.json", text)
                assert (tmp_path / "a.json").read_text() in texts
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_stays_one_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    link = tmp_path / "a.json"
    link.symlink_to("far/real.json")
    for text in ("first", "second"):
        write_whole(link, text)
        assert link.is_symlink()
        assert (tmp_path / "far" / "real.json").read_text() == text
    assert len(list((tmp_path / "far").iterdir())) == 1


def test_what_is_no_regular_file_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "round").symlink_to("round")
    for name in ("pipe", "link", "round"):
        with pytest.raises(OSError, match=r"no regular file|symbolic links"):
            write_whole(tmp_path / name, "text")
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "round").is_symlink()
    with pytest.raises(OSError, match="no regular file"):
        target_of(Path(os.devnull))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "round"]
