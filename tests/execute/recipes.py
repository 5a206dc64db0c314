"""Random pipelines, and what each must deliver: the design's sentences worked out row by row on plain lists."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import dataflow as flow
from connectors.contract import Traits
from connectors.memory import InMemory
from dataflow.execute.loader import Loader
from dataflow.ops.read import MemorySource, Read
from dataflow.order.philox import Key, draws, key_of

__all__ = [
    "CHANGING", "KEEPING", "Global", "Recipe", "Row", "delivered", "fragments", "json_copy", "loaders", "recipes",
    "values",
]  # fmt: skip

Window = int | Literal["full"] | None
Row = dict[str, Any]
KEEPING = ("none", "map", "map rng", "batched", "batched rng")
CHANGING = ("filter", "flat_map", "map then filter", "filter then batched")


@dataclass(frozen=True, eq=False)
class _Pieces(InMemory):
    """A table whose chunks are fragments however small, cheap to read in part or not."""

    cheap: bool = True

    @property
    def traits(self) -> Traits:
        return Traits(row_ranges=self.cheap, single_rows=self.cheap)

    @cached_property
    def _batches(self) -> Sequence[pa.RecordBatch]:
        return self.table.to_batches()


def fragments(
    sizes: Sequence[int], *, first: int = 0, column: str = "x", cheap: bool = True
) -> flow.Pipeline:
    """A source with fragments of these sizes; column `column` counts from `first`."""
    starts = [first, *accumulate(sizes, initial=first)]
    chunks = [np.arange(start, start + size) for start, size in zip(starts[1:], sizes, strict=False)]
    table = pa.table({column: pa.chunked_array(chunks, pa.int64())})
    return flow.Pipeline(Read(data=MemorySource(connector=_Pieces(table, cheap=cheap))))


@dataclass(frozen=True)
class _Piece:
    """Kept rows of a fragment as (sample id, source row), of the source rows lo to hi."""

    rows: tuple[tuple[int, int], ...]
    lo: int
    hi: int
    cheap: bool


@dataclass(frozen=True)
class Global:
    """One global batch: the values of its slots, sorted by lane, and which are there for the first time."""

    values: list[int]
    valid: list[bool]

    def share(self, rank: int, world: int) -> Global:
        """What one rank takes."""
        size, more = divmod(len(self.values), world)
        start = rank * size + min(rank, more)
        stop = start + size + (rank < more)
        return Global(self.values[start:stop], self.valid[start:stop])


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A pipeline as numbers. `parts` are the fragment sizes of each source."""

    parts: tuple[tuple[int, ...], ...]
    cheap: bool = True
    joined: Literal["concat", "zip"] = "concat"
    cut: tuple[Literal["take", "skip"], int] | None = None
    modulus: int = 1  # a filter on a column keeps the rows that this does not divide
    window: Window = None
    passes: int = 1
    seed: int = 0
    function: str = "none"
    chunk: int = 4
    batch: int = 4
    lanes: int = 1
    remainder: Literal["drop", "pad", "keep"] = "drop"

    @property
    def known(self) -> bool:
        """Whether the number of rows is known before they are read."""
        return self.function not in CHANGING

    # ---- as a pipeline

    def rows(self) -> flow.Pipeline:
        """The pipeline in front of batch."""
        inputs = [
            fragments(sizes, first=1000 * number, column="x" if not number or self.joined == "concat" else "y",
                      cheap=self.cheap)
            for number, sizes in enumerate(self.parts)
        ]  # fmt: skip
        join = flow.concat if self.joined == "concat" else flow.zip
        pipe = inputs[0] if len(inputs) == 1 else join(*inputs)
        if self.cut is not None:
            pipe = pipe.take(self.cut[1]) if self.cut[0] == "take" else pipe.skip(self.cut[1])
        if self.modulus > 1:
            every = [value for value in range(1000 * len(self.parts)) if value % self.modulus]
            pipe = pipe.filter([("x", "in", every)])
        if self.window is not None:
            pipe = pipe.shuffle(self.window)
        if self.passes > 1:
            pipe = pipe.repeat(self.passes)
        return self._with_function(pipe).seed(self.seed)

    def _with_function(self, pipe: flow.Pipeline) -> flow.Pipeline:
        if self.function == "map":
            return pipe.map(lambda row: {"x": row["x"], "double": 2 * row["x"]})
        if self.function == "map rng":
            return pipe.map(lambda row, rng: {"x": row["x"], "drawn": rng.random()}, rng=True)
        if self.function == "batched":
            return pipe.map(lambda columns: {"x": columns["x"]}, batched=True, batch_size=self.chunk)
        if self.function == "batched rng":
            return pipe.map(
                lambda columns, rng: {"x": columns["x"], "drawn": rng.random(len(columns["x"]))},
                batched=True, batch_size=self.chunk, rng=True,
            )  # fmt: skip
        if self.function == "flat_map":
            return pipe.flat_map(_several, schema={"x": "int64", "copy": "int64"})
        if self.function == "map then filter":
            pipe = pipe.map(lambda row: {"x": row["x"]})
        if self.function in ("filter", "map then filter", "filter then batched"):
            pipe = pipe.filter(lambda row: _is_kept(int(row["x"])))
        if self.function == "filter then batched":
            # The number of rows that come together must not show: only the fixed blocks of the window may.
            pipe = pipe.map(
                lambda columns, rng: {"x": columns["x"], "drawn": rng.random(len(columns["x"]))},
                batched=True, batch_size=self.chunk, rng=True,
            )  # fmt: skip
        return pipe

    def pipe(self) -> flow.Pipeline:
        """The whole pipeline."""
        return self.rows().batch(global_size=self.batch, lanes=self.lanes, remainder=self.remainder)

    # ---- as lists

    def outputs(self, value: int) -> list[int]:
        """What becomes of one row."""
        if self.function == "flat_map":
            return [row["x"] for row in _several({"x": value})]
        return [value] if self.known or _is_kept(value) else []

    @cached_property
    def _pieces(self) -> list[_Piece]:
        pieces = []
        for number, sizes in enumerate(self.parts if self.joined == "concat" else self.parts[:1]):
            for lo, hi in pairwise([0, *accumulate(sizes)]):
                rows = tuple((number << 40 | row, row) for row in range(lo, hi))
                pieces.append(_Piece(rows, lo, hi, self.cheap))
        if self.cut is not None:
            total = sum(len(piece.rows) for piece in pieces)
            wanted = min(self.cut[1], total)
            taken, left = _cut(pieces, [wanted, total - wanted])
            pieces = taken if self.cut[0] == "take" else left
        kept = [replace(p, rows=tuple(r for r in p.rows if self._keeps(r[0]))) for p in pieces]
        return [piece for piece in kept if piece.rows]

    def _keeps(self, sample_id: int) -> bool:
        return self.modulus == 1 or _value(sample_id) % self.modulus != 0

    @property
    def count(self) -> int:
        """Source rows of one pass."""
        return sum(len(piece.rows) for piece in self._pieces)

    def lane_rows(self, epoch: int) -> list[list[int]]:
        """The values that each lane gives in one epoch."""
        lanes: list[list[int]] = [[] for _ in range(self.lanes)]
        for turn in range(self.passes):
            key = key_of(self.seed, epoch * self.passes + turn, "shuffle.rows")
            for lane, windows in enumerate(self.lane_windows(epoch, turn)):
                for window in windows:
                    ids = [row[0] for piece in window for row in piece.rows]
                    order = _sorted(key, ids) if isinstance(self.window, int) else range(len(ids))
                    lanes[lane].extend(out for at in order for out in self.outputs(_value(ids[at])))
        return lanes

    def lane_windows(self, epoch: int, turn: int) -> list[list[list[_Piece]]]:
        """The windows of each lane in one pass of an epoch, each as pieces of fragments."""
        numbers = range(turn * self.count, (turn + 1) * self.count)
        runs = [sum(number % self.lanes == lane for number in numbers) for lane in range(self.lanes)]
        sequence = self._sequence(epoch * self.passes + turn)
        return [self._windows(run, lane) for lane, run in enumerate(_cut(sequence, runs))]

    def _sequence(self, turn: int) -> list[_Piece]:
        if self.window is None:
            return self._pieces
        groups: list[tuple[int, list[_Piece]]] = []  # with the first source row, kept or not
        for piece in self._pieces:
            if self.window == "full":
                groups += [(row[1], [_Piece((row,), row[1], row[1] + 1, True)]) for row in piece.rows]
                continue
            slices = _slices(piece, self.window)
            groups += [(one.lo, [one]) for one in slices] if piece.cheap else [(piece.lo, slices)]
        firsts = [group[0].rows[0][0] >> 40 << 40 | lo for lo, group in groups]
        order = _sorted(key_of(self.seed, turn, "shuffle.fragments"), firsts)
        return [piece for at in order for piece in groups[at][1]]

    def _windows(self, run: list[_Piece], lane: int) -> list[list[_Piece]]:
        if not isinstance(self.window, int):
            return [run]
        windows: list[list[_Piece]] = []
        room = 0.0
        for piece in run:
            size = piece.hi - piece.lo
            if not windows or size > room:
                room = self.window if windows else self.window * (lane + 1) / self.lanes
                windows.append([])
            windows[-1].append(piece)
            room -= size
        return windows

    def batches(self, epoch: int) -> list[Global]:
        """The global batches of one epoch."""
        lanes = self.lane_rows(epoch)
        at, turn, made = [0] * self.lanes, 0, []
        left = sum(map(len, lanes))
        while left >= (self.batch if self.remainder == "drop" else 1):
            dealt: list[list[int]] = [[] for _ in lanes]
            for _ in range(min(self.batch, left)):
                while at[turn] == len(lanes[turn]):
                    turn = (turn + 1) % self.lanes
                dealt[turn].append(lanes[turn][at[turn]])
                at[turn], turn, left = at[turn] + 1, (turn + 1) % self.lanes, left - 1
            rows = [value for lane in dealt for value in lane]
            if self.remainder == "pad":
                place = [slot * len(rows) // self.batch for slot in range(self.batch)]
                valid = [slot == 0 or place[slot] != place[slot - 1] for slot in range(self.batch)]
                made.append(Global([rows[p] for p in place], valid))
            else:
                made.append(Global(rows, [True] * len(rows)))
        return made


def _several(row: Row) -> list[Row]:
    return [{"x": int(row["x"]), "copy": copy} for copy in range(int(row["x"]) % 4)]


def _is_kept(value: int) -> bool:
    return value * 7 % 5 > 1


def _value(sample_id: int) -> int:
    return 1000 * (sample_id >> 40) + (sample_id & (1 << 40) - 1)


def _sorted(key: Key, ids: Sequence[int]) -> list[int]:
    words = draws(key, np.array(ids, np.int64), 1)[:, 0].tolist()
    return sorted(range(len(ids)), key=lambda at: (words[at], at))


def _slices(piece: _Piece, window: int) -> list[_Piece]:
    size = piece.hi - piece.lo
    number = -(-size // window)
    borders = [piece.lo + size * i // number for i in range(number + 1)]
    cut = [
        _Piece(tuple(row for row in piece.rows if lo <= row[1] < hi), lo, hi, piece.cheap)
        for lo, hi in pairwise(borders)
    ]
    return [one for one in cut if one.rows]


def _cut(pieces: Sequence[_Piece], lengths: Sequence[int]) -> list[list[_Piece]]:
    rest, runs = list(pieces), []
    for length in lengths:
        run, need = [], length
        while need:
            piece = rest.pop(0)
            if len(piece.rows) > need:
                border = piece.rows[need][1]
                rest.insert(0, replace(piece, rows=piece.rows[need:], lo=border))
                piece = replace(piece, rows=piece.rows[:need], hi=border)
            run.append(piece)
            need -= len(piece.rows)
        runs.append(run)
    return runs


# ---- strategies


@st.composite
def recipes(
    draw: st.DrawFn, functions: Sequence[str] = KEEPING, worlds: Sequence[int] = (1, 2, 3, 4)
) -> tuple[Recipe, int]:
    """A recipe that has at least one batch an epoch, and a number of ranks that can begin it."""
    sizes = st.lists(st.sampled_from([1, 2, 3, 5, 8, 13, 21]), min_size=1, max_size=6).map(tuple)
    first = draw(sizes)
    parts: tuple[tuple[int, ...], ...] = (first,)
    joined: Literal["concat", "zip"] = "concat"
    if draw(st.booleans()):
        joined = draw(st.sampled_from(["concat", "zip"]))
        parts = (first, draw(sizes) if joined == "concat" else tuple(reversed(first)))
    total = sum(map(sum, parts)) if joined == "concat" else sum(first)
    verbs: st.SearchStrategy[Literal["take", "skip"]] = st.sampled_from(["take", "skip"])
    cuts = st.tuples(verbs, st.integers(1, total))
    cheap = draw(st.booleans())
    windows: list[Window] = [None, 1, 3, 7, 16, 100]
    world = draw(st.sampled_from(worlds))
    lanes = draw(st.integers(1, 5))
    recipe = Recipe(
        parts=parts, cheap=cheap, joined=joined,
        cut=draw(st.none() | cuts) if total > 4 else None,
        modulus=draw(st.sampled_from([1, 1, 2, 3])),
        window=draw(st.sampled_from([*windows, "full"] if cheap else windows)),
        passes=draw(st.sampled_from([1, 1, 2, 3])), seed=draw(st.integers(0, 3)),
        function=draw(st.sampled_from(functions)), chunk=draw(st.integers(1, 7)),
        batch=int(np.lcm(lanes, world)) * draw(st.integers(1, 3)), lanes=lanes,
        remainder=draw(st.sampled_from(["drop", "pad", "keep"])),
    )  # fmt: skip
    if recipe.cut is not None and not recipe.count:
        recipe = replace(recipe, cut=None)
    if any(not recipe.batches(epoch) for epoch in range(2)):
        recipe = replace(recipe, remainder="pad")
    if not all(recipe.batches(epoch) for epoch in range(2)):
        recipe = replace(recipe, cut=None, modulus=1, parts=((7, 8, 13), *recipe.parts[1:]), joined="concat")
    if recipe.remainder == "keep" and any(len(b.values) < world for e in range(2) for b in recipe.batches(e)):
        recipe = replace(recipe, remainder="pad")
    return recipe, world


# ---- running


def loaders(
    pipe: flow.Pipeline, world: int, state: dict[str, Any] | None = None, **options: Any
) -> list[Loader[Any]]:
    """A loader for each rank, all in this process."""
    options = {"output": "numpy", "threads": 2, "ids": True, **options}
    made: list[Loader[Any]] = [
        pipe.loader(rank=rank, world_size=world, **options) if world > 1 else pipe.loader(**options)
        for rank in range(world)
    ]
    for loader in made:
        if state is not None:
            loader.load_state_dict(state)
    return made


def delivered(
    ranks: Sequence[Loader[Any]], epochs: int = 1, after: Callable[[], None] | None = None
) -> Generator[list[Row], None, None]:
    """The batches of all ranks, step by step; all ranks make the same number of steps. Closes the loaders."""
    try:
        for _ in range(epochs):
            running = [iter(loader) for loader in ranks]
            while True:
                row = [next(iterator, None) for iterator in running]
                if all(batch is None for batch in row):
                    break
                assert all(batch is not None for batch in row), "the ranks make different numbers of steps"
                if after is not None:
                    after()
                yield row  # type: ignore[misc]
    finally:
        for loader in ranks:
            loader.close()


def values(step: Sequence[Row], column: str = "x") -> list[Any]:
    """One column of a global batch."""
    return [value for batch in step for value in batch[column].tolist()]


def json_copy(state: dict[str, Any]) -> dict[str, Any]:
    """The state as it comes back from a checkpoint file."""
    copy: dict[str, Any] = json.loads(json.dumps(state))
    return copy
