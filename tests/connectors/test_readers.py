"""Readers that stay open between two fragments of a file."""

from __future__ import annotations

import errno
import threading

import pytest

from connectors.readers import Readers
from dataflow.errors import ConnectorError

FILE, OTHER = "a file", "another file"


class Reader:
    """Something that can be closed."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        assert not self.closed
        self.closed = True


def fresh() -> None:
    """The file is what it was."""


def lent(readers: Readers, key: str = FILE) -> Reader:
    with readers.lend(key, Reader, fresh) as reader:
        return reader


def test_a_reader_that_was_given_back_is_lent_again_for_the_same_file_only() -> None:
    readers = Readers(2)
    first = lent(readers)
    assert lent(readers) is first
    assert lent(readers, OTHER) is not first


def test_a_reader_is_lent_to_one_caller_at_a_time() -> None:
    readers = Readers(2)
    with readers.lend(FILE, Reader, fresh) as one, readers.lend(FILE, Reader, fresh) as another:
        assert one is not another
    assert {id(lent(readers)) for _ in range(3)} <= {id(one), id(another)}


def test_of_too_many_idle_readers_the_longest_unused_is_closed() -> None:
    readers = Readers(1)
    first, second = lent(readers), lent(readers, OTHER)
    assert [first.closed, second.closed] == [True, False]


def test_without_room_a_reader_is_closed_behind_its_use() -> None:
    reader = lent(Readers())
    assert reader.closed


def test_a_reader_whose_use_raised_is_closed_and_not_lent_again() -> None:
    readers = Readers(2)
    with pytest.raises(ValueError, match="damaged"), readers.lend(FILE, Reader, fresh) as broken:
        raise ValueError("damaged")
    assert broken.closed
    assert lent(readers) is not broken


def test_the_file_is_looked_at_again_where_an_idle_reader_is_used_and_not_where_a_new_one_is() -> None:
    readers = Readers(2)

    def changed() -> None:
        raise ValueError("it has changed")

    with readers.lend(FILE, Reader, changed) as idle:
        pass
    with pytest.raises(ValueError, match="changed"), readers.lend(FILE, Reader, changed):
        pass
    assert idle.closed
    assert lent(readers) is not idle


def test_closing_ends_the_idle_ones_at_once_and_those_in_use_when_they_are_given_back() -> None:
    readers = Readers(4)
    idle = lent(readers, OTHER)
    with readers.lend(FILE, Reader, fresh) as used:
        readers.close()
        assert [idle.closed, used.closed] == [True, False]
    assert [idle.closed, used.closed] == [True, True]
    readers.close()


def test_where_too_many_files_are_open_the_idle_ones_are_closed_for_a_new_one() -> None:
    readers = Readers(4)
    idle = lent(readers)

    def make() -> Reader:
        if not idle.closed:
            raise ConnectorError("it cannot be opened") from OSError(errno.EMFILE, "too many open files")
        return Reader()

    with readers.lend(OTHER, make, fresh) as reader:
        assert [idle.closed, reader.closed] == [True, False]


def test_other_errors_of_opening_a_file_close_nothing() -> None:
    readers = Readers(4)
    idle = lent(readers)

    def fail() -> Reader:
        raise ConnectorError("it cannot be opened") from FileNotFoundError(errno.ENOENT, "no such file")

    with pytest.raises(ConnectorError, match="opened"), readers.lend(OTHER, fail, fresh):
        pass
    assert not idle.closed


def test_threads_never_hold_the_same_reader() -> None:
    readers = Readers(4)
    held: set[Reader] = set()
    lock = threading.Lock()

    def use() -> None:
        for _ in range(300):
            with readers.lend(FILE, Reader, fresh) as reader:
                with lock:
                    assert reader not in held
                    held.add(reader)
                with lock:
                    held.remove(reader)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not held
