from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from connectors.contract import FileInfo
from connectors.kept import Kept
from connectors.store import Store

STORE = Store()


def info(name: int, mtime: float = 0) -> FileInfo:
    return FileInfo(str(name), 1, mtime)


def test_a_value_is_made_once_and_again_when_the_file_has_changed() -> None:
    kept: Kept[int] = Kept(100)
    made: list[int] = []

    def make() -> tuple[int, int]:
        made.append(1)
        return len(made), 10

    assert [kept.get(STORE, info(1), make) for _ in range(3)] == [1, 1, 1]
    assert kept.get(STORE, info(1, mtime=2), make) == 2


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 60)), max_size=40))
def test_what_was_used_last_stays_within_the_bytes_allowed(uses: list[tuple[int, int]]) -> None:
    kept: Kept[int] = Kept(100)
    model: dict[int, int] = {}
    for name, weight in uses:
        made: list[int] = []

        def make(made: list[int] = made, weight: int = weight) -> tuple[int, int]:
            made.append(1)
            return 0, weight

        kept.get(STORE, info(name), make)
        assert bool(made) == (name not in model)
        model[name] = model.pop(name, weight)
        while sum(model.values()) > 100:
            del model[next(iter(model))]


def test_one_value_larger_than_allowed_is_kept_alone() -> None:
    kept: Kept[str] = Kept(10)
    kept.get(STORE, info(1), lambda: ("small", 5))
    kept.get(STORE, info(2), lambda: ("large", 500))
    assert kept.get(STORE, info(2), lambda: ("made again", 1)) == "large"
    assert kept.get(STORE, info(1), lambda: ("made again", 1)) == "made again"


def test_a_copy_begins_empty() -> None:
    kept: Kept[int] = Kept(10)
    kept.get(STORE, info(1), lambda: (1, 1))
    for other in (pickle.loads(pickle.dumps(kept)), copy.deepcopy(kept), copy.copy(kept)):
        assert other.max_bytes == 10
        assert other.get(STORE, info(1), lambda: (2, 1)) == 2


def test_threads_get_the_value_of_their_file() -> None:
    kept: Kept[int] = Kept(20)

    def get(number: int) -> int:
        return kept.get(STORE, info(number % 5), lambda: (number % 5, 7))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(get, range(2000))) == [number % 5 for number in range(2000)]
