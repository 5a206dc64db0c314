from __future__ import annotations

import pickle

import pytest

from connectors.scratch import Scratch


def test_what_is_given_back_is_lent_again_and_never_to_two_at_once() -> None:
    scratch = Scratch(100)
    with scratch.lend(100) as first, scratch.lend(10) as second:
        assert first.size == second.size == 100
        assert first.address != second.address
        lent = {first.address, second.address}
        del first, second
    with scratch.lend(1) as first, scratch.lend(1) as second:
        assert {first.address, second.address} == lent


def test_no_more_than_the_limit_is_kept_and_nothing_larger_than_usual() -> None:
    scratch = Scratch(100, limit=1)
    with scratch.lend(101) as large:
        assert large.size == 101
    with scratch.lend(1) as first, scratch.lend(1) as second:
        assert first.address not in (large.address, second.address)
        kept = second.address
    # The inner one comes back first.
    with scratch.lend(1) as first, scratch.lend(1) as second:
        assert first.address == kept


def test_what_was_lent_when_something_failed_is_let_go() -> None:
    scratch = Scratch(100)
    held = []

    def fail() -> None:
        with scratch.lend(1) as buffer:
            held.append(buffer)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with scratch.lend(1) as buffer:
        assert buffer.address != held[0].address


def test_a_copy_begins_empty() -> None:
    scratch = Scratch(100, limit=3)
    with scratch.lend(1) as lent:
        pass
    with pickle.loads(pickle.dumps(scratch)).lend(1) as buffer:
        assert buffer.size == 100
        assert buffer.address != lent.address
