"""Arguments of wrong types: whatever is given, a PlanError says what is wrong, and what would be right."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataflow as flow
from dataflow.errors import DataflowError, PlanError

NONE, WHOLE, FLOAT, FLAG, TEXT, BYTES, LIST, NAMES, DICT, ODD_DICT, ARRAY, THING, FUNCTION, PIPELINE = range(
    14
)
LISTS = (LIST, NAMES, ARRAY)
Pipe: Any = flow.Pipeline


def identity(row: Any) -> Any:
    return row


VALUES: dict[int, Any] = {
    NONE: None, WHOLE: -3, FLOAT: 1.5, FLAG: True, TEXT: "text", BYTES: b"bytes", LIST: [3], NAMES: ["name"],
    DICT: {"name": 3}, ODD_DICT: {3: object()}, ARRAY: np.arange(3), THING: object(), FUNCTION: identity,
}  # fmt: skip
SOURCE: Any = flow.from_columns({"x": [1, 2, 3], "s": ["a", "b", "c"]})
LISTED = flow.from_arrow(pa.table({"x": [1, 2, 3], "l": [[1], [2], [3]]}))
STRUCTS = flow.from_arrow(pa.table({"x": [{"a": 1}]}))
IMAGES = flow.from_columns({"image": np.zeros((2, 8, 8, 3), np.uint8)})
FILES = flow.from_columns({"image": [b""]})
PHOTOGRAPHS = flow.from_columns({"image": [b""], "label": [0], "text": [""]})
BATCHES = (
    flow.from_columns({"image": np.zeros((2, 8, 8, 3), np.uint8), "label": [0, 1]}).to_dtype("image").batch(2)
)
NUMBERS = SOURCE.select("x").batch(2)
VALUES[PIPELINE] = SOURCE


def loader(**options: Any) -> None:
    NUMBERS.loader(**options).close()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "a.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(**options: Any) -> None:
    flow.read("a.parquet", **options).schema  # noqa: B018


# Of every argument, what is done with it, and the kinds of values that are right in some way.
CALLS: dict[str, tuple[Callable[[Any], object], tuple[int, ...]]] = {
    "select columns": (lambda v: SOURCE.select(v), ()),
    "drop columns": (lambda v: SOURCE.drop(v), ()),
    "rename names": (lambda v: SOURCE.rename(v), ()),
    "rename to": (lambda v: SOURCE.rename({"x": v}), (TEXT,)),
    "field column": (lambda v: STRUCTS.field(v, "a"), ()),
    "field name": (lambda v: STRUCTS.field("x", v), ()),
    "cast types": (lambda v: SOURCE.cast(v), ()),
    "cast type": (lambda v: SOURCE.cast({"x": v}), ()),
    "cast safe": (lambda v: SOURCE.cast({"x": "int8"}, safe=v), (FLAG,)),
    "nulls columns": (lambda v: SOURCE.nulls(v), ()),
    "nulls value": (lambda v: SOURCE.nulls("x", value=v), (WHOLE,)),
    "nulls mask": (lambda v: SOURCE.nulls("x", mask=v), (FLAG,)),
    "pad lengths": (lambda v: LISTED.pad(v), ()),
    "pad length": (lambda v: LISTED.pad({"l": v}), ()),
    "pad value": (lambda v: LISTED.pad({"l": 2}, value=v), (WHOLE, FLAG)),
    "pad truncate": (lambda v: LISTED.pad({"l": 2}, truncate=v), (FLAG,)),
    "pad mask": (lambda v: LISTED.pad({"l": 2}, mask=v), (FLAG,)),
    "map function": (lambda v: SOURCE.map(v), (FUNCTION,)),
    "map batched": (lambda v: SOURCE.map(identity, batched=v), (FLAG,)),
    "map batch_size": (lambda v: SOURCE.map(identity, batch_size=v), ()),
    "map add": (lambda v: SOURCE.map(identity, add=v), (FLAG,)),
    "map rng": (lambda v: SOURCE.map(identity, rng=v), (FLAG,)),
    "map schema": (lambda v: SOURCE.map(identity, schema=v), (NONE,)),
    "map type": (lambda v: SOURCE.map(identity, schema={"x": v}), ()),
    "map key": (lambda v: SOURCE.map(identity, key=v), (NONE, TEXT)),
    "flat_map function": (lambda v: SOURCE.flat_map(v), (FUNCTION,)),
    "flat_map rng": (lambda v: SOURCE.flat_map(identity, rng=v), (FLAG,)),
    "flat_map schema": (lambda v: SOURCE.flat_map(identity, schema=v), (NONE,)),
    "flat_map key": (lambda v: SOURCE.flat_map(identity, key=v), (NONE, TEXT)),
    "filter condition": (lambda v: SOURCE.filter(v), (FUNCTION,)),
    "filter column": (lambda v: SOURCE.filter([(v, ">", 1)]), ()),
    "filter operator": (lambda v: SOURCE.filter([("x", v, 1)]), ()),
    "filter value": (lambda v: SOURCE.filter([("x", ">", v)]), (WHOLE, FLOAT)),
    "filter list": (lambda v: SOURCE.filter([("x", "in", v)]), (*LISTS, ODD_DICT)),
    "filter batched": (lambda v: SOURCE.filter(identity, batched=v), (FLAG,)),
    "filter batch_size": (lambda v: SOURCE.filter(identity, batch_size=v), ()),
    "take rows": (lambda v: SOURCE.take(v), ()),
    "skip rows": (lambda v: SOURCE.skip(v), ()),
    "split parts": (lambda v: SOURCE.split(v), ()),
    "split share": (lambda v: SOURCE.split({"part": v}), ()),
    "split by": (lambda v: SOURCE.split({"part": 0.5}, by=v), (NONE,)),
    "shuffle window": (lambda v: SOURCE.shuffle(v), ()),
    "repeat passes": (lambda v: SOURCE.repeat(v), ()),
    "batch size": (lambda v: SOURCE.batch(v), ()),
    "batch global_size": (lambda v: SOURCE.batch(global_size=v), ()),
    "batch lanes": (lambda v: SOURCE.batch(2, lanes=v), (NONE,)),
    "batch remainder": (lambda v: SOURCE.batch(2, remainder=v), ()),
    "seed n": (lambda v: SOURCE.seed(v), ()),
    "then node": (lambda v: SOURCE.then(v), ()),
    "__getitem__ row": (lambda v: SOURCE[v], (WHOLE,)),
    "explain world_size": (lambda v: NUMBERS.explain(world_size=v), (NONE,)),
    "explain memory_limit": (lambda v: NUMBERS.explain(memory_limit=v), (NONE,)),
    "explain threads": (lambda v: NUMBERS.explain(threads=v), (NONE,)),
    "explain on_error": (lambda v: NUMBERS.explain(on_error=v), ()),
    "explain backend": (lambda v: NUMBERS.explain(backend=v), ()),
    "explain device": (lambda v: NUMBERS.explain(device=v), (NONE,)),
    "outline world_size": (lambda v: NUMBERS.outline(world_size=v), (NONE,)),
    "outline memory_limit": (lambda v: NUMBERS.outline(memory_limit=v), (NONE,)),
    "outline threads": (lambda v: NUMBERS.outline(threads=v), (NONE,)),
    "outline on_error": (lambda v: NUMBERS.outline(on_error=v), ()),
    "outline backend": (lambda v: NUMBERS.outline(backend=v), ()),
    "outline device": (lambda v: NUMBERS.outline(device=v), (NONE,)),
    "loader device": (lambda v: loader(device=v), (NONE,)),
    "loader rank": (lambda v: loader(rank=v, world_size=2), ()),
    "loader world_size": (lambda v: loader(rank=0, world_size=v), ()),
    "loader mesh": (lambda v: loader(mesh=v), (NONE,)),
    "loader group": (lambda v: loader(group=v), (NONE,)),
    "loader ids": (lambda v: loader(ids=v), (FLAG,)),
    "loader memory_limit": (lambda v: loader(memory_limit=v), (NONE,)),
    "loader threads": (lambda v: loader(threads=v), (NONE,)),
    "loader prefetch": (lambda v: loader(prefetch=v), (NONE,)),
    "loader epochs": (lambda v: loader(epochs=v), (NONE,)),
    "loader executor": (lambda v: loader(executor=v), ()),
    "loader collate": (lambda v: loader(collate=v), (NONE, FUNCTION)),
    "loader on_error": (lambda v: loader(on_error=v), ()),
    "loader max_errors": (lambda v: loader(on_error="skip", max_errors=v), (NONE,)),
    "loader quarantine": (lambda v: loader(quarantine=v), (NONE, TEXT)),
    "loader trace": (lambda v: loader(trace=v), (NONE, TEXT)),
    "loader backend": (lambda v: loader(backend=v), ()),
    "loader output": (lambda v: loader(output=v), ()),
    "read url": (lambda v: flow.read(v), (TEXT, NAMES)),
    "read format": (lambda v: read(format=v), (NONE,)),
    "read columns": (lambda v: read(columns=v), (NONE,)),
    "read filter": (lambda v: read(filter=v), (NONE, FUNCTION)),
    "read storage_options": (lambda v: read(storage_options=v), (NONE, DICT)),
    "read index": (lambda v: read(index=v), (NONE, TEXT)),
    "read name": (lambda v: read(name=v), (NONE, TEXT)),
    "from_arrow rows": (lambda v: flow.from_arrow(v), ()),
    "from_arrow name": (lambda v: flow.from_arrow(pa.table({"x": [1]}), name=v), (NONE, TEXT)),
    "from_columns columns": (lambda v: flow.from_columns(v), ()),
    "from_columns column": (lambda v: flow.from_columns({"x": v}), LISTS),
    "from_columns name": (lambda v: flow.from_columns({"x": [1]}, name=v), (NONE, TEXT)),
    "from_dataset dataset": (lambda v: flow.from_dataset(v), (*LISTS, TEXT, BYTES, DICT, ODD_DICT, PIPELINE)),
    "from_dataset columns": (lambda v: flow.from_dataset([1], columns=v), (NONE, NAMES)),
    "from_dataset schema": (lambda v: flow.from_dataset([1], schema=v), (NONE,)),
    "from_dataset name": (lambda v: flow.from_dataset([1], name=v), (NONE, TEXT)),
    "concat pipelines": (lambda v: flow.concat(SOURCE, v), (PIPELINE,)),
    "concat a list": (lambda v: flow.concat(v), (PIPELINE,)),
    "zip pipelines": (lambda v: flow.zip(LISTED.select("l"), v), (PIPELINE,)),
    "load_spec path": (lambda v: flow.load_spec(v), ()),
    "load_spec allow_modules": (lambda v: flow.load_spec(flow.read("a.parquet").to_spec(), v), (NAMES,)),
    "merge_states states": (lambda v: flow.merge_states(v), ()),
}  # fmt: skip
KEYED: dict[str, tuple[int, ...]] = {"column": (), "key": (NONE, TEXT)}
# Of every verb on images, arguments that are right, and of each argument the kinds of values that are.
IMAGE_VERBS: dict[str, tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "decode_image": ({}, {"column": (), "mode": (), "max_pixels": (), "reduced": (FLAG,), "verify": (FLAG,)}),
    "annotate": ({}, {"column": (), "boxes": (), "keypoints": (), "masks": (), "mask_fill": ()}),
    "resize": (
        {"size": 4},
        {"column": (), "size": (), "shorter": (NONE,), "longer": (NONE,), "max_size": (NONE,), "filter": ()},
    ),
    "center_crop": ({"size": 4}, {"column": (), "size": ()}),
    "random_crop": (
        {"size": 4},
        {**KEYED, "size": (), "padding": (NONE,), "pad_if_needed": (FLAG,), "fill": (), "padding_mode": ()},
    ),
    "random_resized_crop": ({"size": 4}, {**KEYED, "size": (), "scale": (), "ratio": (), "filter": ()}),
    "random_flip": ({}, {**KEYED, "horizontal": (), "vertical": ()}),
    "random_rotate": (
        {"degrees": 4}, {**KEYED, "degrees": (FLOAT,), "filter": (), "expand": (FLAG,), "center": (NONE,), "fill": ()},
    ),
    "color_jitter": (
        {}, {**KEYED, "brightness": (FLOAT,), "contrast": (FLOAT,), "saturation": (FLOAT,), "hue": ()},
    ),
    "random_grayscale": ({}, {**KEYED, "p": ()}),
    "to_grayscale": ({}, {"column": (), "channels": ()}),
    "gaussian_blur": ({"kernel_size": 3}, {**KEYED, "kernel_size": (), "sigma": (FLOAT,), "p": ()}),
    "random_erasing": ({}, {**KEYED, "p": (), "scale": (), "ratio": (), "value": ()}),
    "trivial_augment": ({}, {**KEYED, "levels": (), "filter": (), "fill": ()}),
    "rand_augment": ({}, {**KEYED, "num_ops": (), "magnitude": (), "levels": (), "filter": (), "fill": ()}),
    "normalize": (
        {"mean": (0, 0, 0), "std": (1, 1, 1)}, {"column": (), "mean": (), "std": (), "dtype": (), "layout": ()},
    ),
    "to_dtype": ({}, {"column": (), "dtype": (), "scale": (FLAG,), "layout": ()}),
}  # fmt: skip
MIXED: dict[str, tuple[int, ...]] = {**KEYED, "label": (), "num_classes": ()}
# The same of every verb that mixes the rows of a batch.
MIXING_VERBS: dict[str, tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "mixup": ({}, {**MIXED, "alpha": (FLOAT,)}),
    "cutmix": ({}, {**MIXED, "alpha": (FLOAT,), "layout": ()}),
    "mixup_or_cutmix": ({}, {**MIXED, "mixup": (FLOAT,), "cutmix": (FLOAT,), "switch": (), "layout": ()}),
}


BATCHED: dict[str, tuple[int, ...]] = {
    "mean": (), "std": (), "dtype": (), "layout": (), "batch_size": (), "global_size": (NONE,), "lanes": (NONE,),
}  # fmt: skip
SHUFFLED: dict[str, tuple[int, ...]] = {**BATCHED, "size": (), "scale": (), "window": (), "seed": (NONE,)}
SOURCES = (TEXT, NAMES, PIPELINE)
# The arguments of every ready pipeline.
RECIPES: dict[str, tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "imagenet_train": (
        {},
        {**SHUFFLED, "source": SOURCES, "image": (NONE,), "label": (NONE,), "augment": (), "erasing": ()},
    ),
    "imagenet_eval": (
        {},
        {**BATCHED, "source": SOURCES, "image": (NONE,), "label": (NONE,), "size": (), "resize": (NONE,)},
    ),
    "clip_pairs": (
        {"tokenize": identity},
        {
            **SHUFFLED,
            "source": SOURCES,
            "image": (NONE,),
            "text": (NONE, TEXT),
            "tokenize": (NONE, FUNCTION),
            "length": (),
        },
    ),
}


def make_recipe(recipe: str, others: dict[str, Any], argument: str, value: Any) -> None:
    getattr(flow.recipes, recipe)(**{"source": PHOTOGRAPHS, **others, argument: value})


def change_images(verb: str, others: dict[str, Any], argument: str, value: Any) -> None:
    pipe = FILES if verb == "decode_image" else IMAGES
    getattr(pipe, verb)(**{"column": "image", **others, argument: value})


def mix_images(verb: str, others: dict[str, Any], argument: str, value: Any) -> None:
    right = {"column": "image", "label": "label", "num_classes": 5, **others}
    getattr(BATCHES, verb)(**{**right, argument: value})


CALLS |= {
    f"{verb} {argument}": (partial(call, verb, others, argument), right)
    for call, verbs in ((change_images, IMAGE_VERBS), (mix_images, MIXING_VERBS), (make_recipe, RECIPES))
    for verb, (others, arguments) in verbs.items()
    for argument, right in arguments.items()
}


@pytest.mark.parametrize("name", CALLS)
def test_a_value_of_a_wrong_type_is_an_error_with_a_hint(name: str) -> None:
    call, right = CALLS[name]
    for kind in VALUES.keys() - set(right):
        with pytest.raises(PlanError) as caught:
            call(VALUES[kind])
        assert caught.value.message
        assert caught.value.hint, f"{name}: {VALUES[kind]!r}"


@pytest.mark.parametrize("name", CALLS)
def test_a_value_that_may_be_right_raises_no_error_of_pythons_own(name: str) -> None:
    call, right = CALLS[name]
    for kind in right:
        with suppress(DataflowError):
            call(VALUES[kind])


def test_every_verb_and_every_function_is_tried() -> None:
    verbs = [name for name, _ in inspect.getmembers(Pipe, inspect.isfunction) if not name.startswith("_")]
    functions = [name for name in flow.__all__ if inspect.isfunction(getattr(flow, name))]
    tried = {tuple(call.split(" ")[:2]) for call in CALLS}
    others = {("concat", "a"), ("seed", "n"), ("__getitem__", "row")}
    for name in [*verbs, *functions, *flow.recipes.__all__]:
        function = getattr(Pipe, name, None) or getattr(flow, name, None) or getattr(flow.recipes, name)
        for parameter in inspect.signature(function).parameters:
            if parameter not in ("self", "unknown"):
                assert (name, parameter) in tried | others, f"{name}({parameter}=)"


@pytest.mark.parametrize(
    ("name", "value", "said", "hint"),
    [
        ("read url", 123, "read: 123 is no path or URL", "a text or a pathlib.Path"),
        ("read columns", "x", "read(columns='x') is no list", "columns=['x']"),
        ("concat a list", [SOURCE, SOURCE], "is no pipeline", "concat(*pipes)"),
        ("pad lengths", 8, "pad: 8 has no values by name", "pad({'tokens': 512})"),
        ("split parts", [0.5], "split: [0.5] has no values by name", "{'train': 0.98"),
        ("rename names", "x", "rename: 'x' has no values", "rename({'old': 'new'})"),
        ("cast safe", "no", "cast(safe='no') is neither true nor false", "safe=True"),
        ("filter list", "ab", "in 'ab' is no list", "('x', 'in', ['ab'])"),
        ("loader on_error", "skp", "on_error='skp' is unknown", "'raise', 'skip' or 'replace'"),
        ("batch size", "8", "batch(size='8') is no whole number", "batch(32)"),
        ("shuffle window", [1], "shuffle(window=[1]) is no window", "'64MB'"),
    ],
)  # fmt: skip
def test_the_message_names_argument_and_value_and_the_hint_the_right_form(
    name: str, value: Any, said: str, hint: str
) -> None:
    with pytest.raises(PlanError) as caught:
        CALLS[name][0](value)
    assert said in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("wrong", ["yes", 1.5, None, [], np.arange(2)])
def test_a_loaders_methods_refuse_wrong_types_too(wrong: Any) -> None:
    with NUMBERS.loader(output="numpy") as made:
        state = made.state_dict()
        calls: list[Callable[[], object]] = [
            lambda: made.load_state_dict(state, new_files=wrong),
            lambda: made.load_state_dict(wrong),
            lambda: made.state_dict(wrong),
            lambda: made.set_epoch(wrong),
        ]
        for call in calls:
            with pytest.raises(PlanError) as caught:
                call()
            assert caught.value.hint


HUGE = 1 << 70


@pytest.mark.parametrize(
    ("call", "said", "hint"),
    [
        (lambda: SOURCE.shuffle(1 << 63), "shuffle(window=9223372036854775808) is no window", "up to 1,099,"),
        (lambda: SOURCE.shuffle("999999999999GB"), "window='999999999999GB' is more than any memory", "'64MB'"),
        (lambda: SOURCE.repeat(HUGE), "is no number of passes", "from 1 to 1,048,576"),
        (lambda: SOURCE.repeat(1 << 31), "is no number of passes", "one more epoch"),
        (lambda: LISTED.pad({"l": HUGE}), "pad: length", "from 1 to 2,147,483,647"),
        (lambda: SOURCE.batch(1 << 62, remainder="pad"), "from 1 to 2,147,483,648", "batch(32)"),
        (lambda: SOURCE.batch(global_size=1 << 40, lanes=1 << 20), "batch(global_size=", "batch(32)"),
        (lambda: SOURCE.batch(global_size=1 << 21, lanes=1 << 21), "batch(lanes=2097152) is no whole number "
         "from 1 to 1,048,576", "batch(32)"),
        (lambda: SOURCE.map(identity, batched=True, batch_size=HUGE), "map(batch_size=", "to 2,147,483,648"),
        (lambda: SOURCE.filter(identity, batched=True, batch_size=HUGE), "filter(batch_size=", "to 2,147,"),
        (lambda: NUMBERS.outline(world_size=HUGE), "world_size=", "from 1 to 1,048,576"),
        (lambda: loader(rank=0, world_size=HUGE), "world_size=1180591620717411303424 is too large", "1,048,576 ranks"),
        (lambda: loader(memory_limit="999999999999GB"), "is more than any memory", "'1GiB'"),
    ],
)  # fmt: skip
def test_a_number_that_is_too_large_is_an_error_on_its_line(
    call: Callable[[], object], said: str, hint: str
) -> None:
    with pytest.raises(PlanError) as caught:
        call()
    assert said in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("call", "said", "hint"),
    [
        (lambda: SOURCE.select(), "select() names no column", "select('label', 'text')"),
        (lambda: SOURCE.drop(), "drop() names no column", "drop('label', 'text')"),
        (lambda: SOURCE.nulls(), "nulls() names no column", "nulls('label', 'text')"),
        (lambda: flow.read("a.parquet", columns=[]), "read(columns=[]) names no column", "leave columns= out"),
        (lambda: flow.read("a.parquet", columns=["y"]), "read(columns=): there is no column 'y'", "'x'"),
        (lambda: SOURCE.select(["x", "s"]), "select: ['x', 's'] is not a column name", "select('x', 's')"),
        (lambda: SOURCE.drop(("x",)), "drop: ('x',) is not a column name", "drop('x')"),
        (lambda: SOURCE.drop({"x": 1}), "is not a column name", "drop('x')"),
        (lambda: SOURCE.nulls(["x"]), "nulls: ['x'] is not a column name", "nulls('x')"),
        (lambda: SOURCE.nulls({"x": 0}), "nulls: {'x': 0} is not a column name", "nulls('x', value=0)"),
        (lambda: SOURCE.filter(("x", ">", 3)), "('x', '>', 3) is one term", "filter([('x', '>', 3)])"),
        (lambda: SOURCE.shuffle("1000"), "shuffle(window='1000') is a text without a unit",
         "shuffle(1000) for rows, shuffle('1000B') for bytes"),
        (lambda: loader(memory_limit="4000000"), "memory_limit='4000000' has no unit", "'4000000B' or 4000000"),
    ],
)  # fmt: skip
def test_a_call_in_another_form_is_an_error_that_shows_the_right_one(
    call: Callable[[], object], said: str, hint: str
) -> None:
    with pytest.raises(PlanError) as caught:
        call()
    assert said in caught.value.message
    assert hint in caught.value.hint


def test_the_largest_numbers_are_taken() -> None:
    assert SOURCE.shuffle(1 << 40).batch(2).loader().remaining == 1
    assert SOURCE.repeat(1 << 20).count() == 3 << 20
    assert NUMBERS.outline(world_size=1)
