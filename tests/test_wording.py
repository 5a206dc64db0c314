"""Counts in sentences."""

from __future__ import annotations

import pytest

from dataflow.wording import counted, plural, text_of


@pytest.mark.parametrize(
    ("one", "many"), [("row", "rows"), ("batch", "batches"), ("class", "classes"), ("bad row", "bad rows")]
)
def test_a_noun_has_its_plural(one: str, many: str) -> None:
    assert plural(one) == many


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 batches"), (1, "1 batch"), (2, "2 batches"), (12_000, "12,000 batches")]
)
def test_one_is_the_only_number_without_a_plural(number: int, text: str) -> None:
    assert counted(number, "batch") == text


def test_what_stands_behind_a_count_may_be_a_phrase() -> None:
    assert counted(1, "file is", "files are") == "1 file is"
    assert counted(3, "file is", "files are") == "3 files are"


def test_an_error_that_fails_to_say_what_it_is_has_a_text_as_in_a_traceback() -> None:
    class Speechless(Exception):
        def __str__(self) -> str:
            raise self

    assert text_of(KeyError("x")) == "'x'"
    assert text_of(Speechless()) == "<exception str() failed>"
