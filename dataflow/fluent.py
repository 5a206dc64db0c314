"""`flow.Pipeline`: every verb that a pipeline has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Never, NoReturn, TypeAlias, TypeVar, Unpack, overload

import pyarrow as pa

from connectors.contract import Json
from dataflow.execute import ask
from dataflow.execute.outline import Outline, outline
from dataflow.given import as_dict, as_whole, check_text
from dataflow.graph.columns import check_named
from dataflow.graph.node import Node
from dataflow.graph.spec import to_spec
from dataflow.image_verbs import ImageVerbs
from dataflow.ops.batch import Batch
from dataflow.ops.cast import Cast
from dataflow.ops.drop import Drop
from dataflow.ops.field import Field
from dataflow.ops.filter import Condition, Filter
from dataflow.ops.flat_map import FlatMap
from dataflow.ops.function_step import Types
from dataflow.ops.map import Map
from dataflow.ops.nulls import Nulls
from dataflow.ops.pad import Pad
from dataflow.ops.rename import Rename
from dataflow.ops.repeat import Repeat
from dataflow.ops.select import Select
from dataflow.ops.shuffle import Shuffle
from dataflow.ops.skip import Skip
from dataflow.ops.split import Split, split_ranges
from dataflow.ops.take import Take
from dataflow.optimize.place import check_place
from dataflow.options import MOST_RANKS, OnError
from dataflow.order.quality import Quality
from loaders.arguments import Arguments, GivenOptions
from loaders.backends import Backend
from loaders.foreign_names import refuse_unknown

if TYPE_CHECKING:
    from loaders.plain import NumpyBatch
    from loaders.ranked import RankedLoader
    from loaders.torch import TorchLoader

__all__ = ["Pipeline"]

Row = dict[str, Any]
B = TypeVar("B")
T = TypeVar("T")
# From a batch to what the loader gives in its place.
Collate: TypeAlias = Callable[[B], T]


class Pipeline(ImageVerbs):
    """An immutable description of what to read and what to do with it; nothing runs until a loader does.

    Every verb returns a new pipeline, and raises PlanError on the line that is wrong.
    """

    def then(self, node: Node) -> Pipeline:
        """This pipeline with one more step.

        Raises:
            PlanError: the step does not fit behind the ones there are.
        """
        made = super().then(node)
        check_place(made.node)
        return made

    # ---- columns

    def select(self, *columns: str) -> Pipeline:
        """Keep these columns, in this order."""
        check_named("select", columns)
        return self.then(Select(columns=columns))

    def drop(self, *columns: str) -> Pipeline:
        """Leave out these columns."""
        return self.then(Drop(columns=columns))

    def rename(self, names: Mapping[str, str]) -> Pipeline:
        """Give columns new names: {"old": "new"}."""
        return self.then(Rename(names=as_dict("rename", names, hint="as rename({'old': 'new'})")))

    def cast(self, types: Mapping[str, str | pa.DataType], *, safe: bool = True) -> Pipeline:
        """Change types: {"label": "int64"}; a value that does not fit is a bad row, or cut if not `safe`."""
        named = as_dict("cast", types, hint="as cast({'label': 'int64'})")
        return self.then(Cast(types={name: str(kind) for name, kind in named.items()}, safe=safe))

    def field(self, column: str, name: str) -> Pipeline:
        """Put a field of a column of structs in the place of the struct: field("image", "bytes")."""
        return self.then(Field(column=column, name=name))

    def nulls(self, *columns: str, value: int | float | str | bool = 0, mask: bool = False) -> Pipeline:
        """Fill the nulls of these columns with `value`.

        With `mask`, add `<name>__mask`, True where a value was present.
        """
        return self.then(Nulls(columns=columns, value=value, mask=mask))

    def pad(
        self,
        lengths: Mapping[str, int],
        *,
        value: int | float = 0,
        truncate: bool = False,
        mask: bool = False,
    ) -> Pipeline:
        """Bring list columns to a fixed length: {"tokens": 512}; with `mask`, add `<name>__mask`."""
        named = as_dict("pad", lengths, hint="as pad({'tokens': 512})")
        return self.then(Pad(lengths=named, value=value, truncate=truncate, mask=mask))

    # ---- rows

    def map(
        self, function: Callable[..., Any], *, batched: bool = False, batch_size: int = 1024,
        add: bool = False, rng: bool = False, schema: Types | None = None, key: str | None = None,
    ) -> Pipeline:  # fmt: skip
        """Let `function` make a new row of each row (a dict of NumPy scalars, arrays, str, bytes).

        The dict it returns replaces the row, or adds to it with `add`. `batched`: it gets and gives columns,
        for fixed blocks of `batch_size` rows. `rng`: it also gets a generator of the sample's own, named by
        `key`.
        """
        return self.then(
            Map(
                function=function,
                batched=batched,
                batch_size=batch_size,
                add=add,
                rng=rng,
                schema_=schema,
                draws=key,
            )
        )

    def filter(
        self, condition: Condition, *, batched: bool = False, batch_size: int = 1024
    ) -> Pipeline:  # fmt: skip
        """Keep the rows for which `condition` holds.

        It is a function of a row (`batched`: of the columns of fixed blocks of `batch_size` rows), an Arrow
        expression, or terms as [("label", ">", 3)].
        """
        return self.then(Filter(condition=condition, batched=batched, batch_size=batch_size))

    def flat_map(
        self,
        function: Callable[..., Any],
        *,
        rng: bool = False,
        schema: Types | None = None,
        key: str | None = None,
    ) -> Pipeline:
        """Let `function` make any number of rows of each row."""
        return self.then(FlatMap(function=function, rng=rng, schema_=schema, draws=key))

    def take(self, rows: int) -> Pipeline:
        """The first `rows` rows, in file order."""
        return self.then(Take(rows=rows))

    def skip(self, rows: int) -> Pipeline:
        """All but the first `rows` rows, in file order."""
        return self.then(Skip(rows=rows))

    def split(self, parts: Mapping[str, float], by: str | None = None) -> dict[str, Pipeline]:
        """Parts by name and share, as {"train": 0.98, "val": 0.02}: the same rows when files are added.

        A row goes by its sample, which is its file's name and its place in the file; with `by`, by its value in that
        column, so that rows of one value stay together. `by="id"` also means the sample.

        Raises:
            PlanError: a share or `by` is wrong, or `by="id"` and there is a column of that name: either may be meant.
        """
        ranges = split_ranges(as_dict("split", parts, hint="as split({'train': 0.98, 'val': 0.02})"))
        check_text("split", "by", by)
        return {name: self.then(Split(low=low, high=high, by=by)) for name, (low, high) in ranges.items()}

    # ---- order

    def shuffle(self, window: int | str = "64MB", **unknown: Never) -> Pipeline:
        """Another order in every epoch: fragments are permuted, then rows in windows of bytes or rows.

        "full" permutes single rows, for sources that read them cheaply.
        """
        refuse_unknown(unknown, self.shuffle)
        return self.then(Shuffle(window=window))

    def repeat(self, passes: int) -> Pipeline:
        """Go through the rows `passes` times in an epoch."""
        return self.then(Repeat(passes=passes))

    def batch(
        self, size: int | None = None, *, global_size: int | None = None, lanes: int | None = None,
        remainder: Literal["drop", "pad", "keep"] = "drop", **unknown: Never,
    ) -> Pipeline:  # fmt: skip
        """Batches of `size` rows a rank, or of `global_size` rows over all ranks."""
        refuse_unknown(unknown, self.batch)
        return self.then(Batch(size=size, global_size=global_size, lanes=lanes, remainder=remainder))

    # ---- asking

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the class folders that are read: `classes[label]`.

        Raises:
            PlanError: no source has class folders, or two of them have others.
        """
        return ask.classes(self.node)

    def count(self) -> int:
        """How many rows one epoch has below batch; counts them where a function decides."""
        return ask.count(self.node, self.seed_value or 0)

    def counted(self) -> Pipeline:
        """The same pipeline, its filters by function evaluated beforehand: lengths are known.

        That is one pass, run when something first needs it, and shared by all that is made of this pipeline.

        Raises:
            PlanError: a filter stands behind a random operator, or one that makes several rows of one.
        """
        return Pipeline(ask.counted(self.node), seed_value=self.seed_value)

    def shuffle_quality(self) -> Quality:
        """How well the order of epoch 0 is mixed: rank correlation with file order, and mean displacement."""
        return ask.quality(self.node, self.seed_value or 0)

    def explain(
        self, *, world_size: int | None = None, memory_limit: int | str | None = None,
        threads: int | None = None, on_error: OnError = "raise", backend: Backend = "auto", device: Any = None,
    ) -> str:  # fmt: skip
        """The steps as written and as the rules have rewritten them, and the facts of `outline`, one a line."""
        facts = self.outline(
            world_size=world_size, memory_limit=memory_limit, threads=threads, on_error=on_error,
            backend=backend, device=device,
        )  # fmt: skip
        return facts.explained()

    def outline(
        self, *, world_size: int | None = None, memory_limit: int | str | None = None,
        threads: int | None = None, on_error: OnError = "raise", backend: Backend = "auto", device: Any = None,
    ) -> Outline:  # fmt: skip
        """How the pipeline will be read: sources, lane reads, windows, memory; on these ranks, or on `world_size`.

        `memory_limit`, `threads`, `on_error`, `backend` and `device` are those of the loader. Opens the indexes and
        works out the order of epoch 0. No row is read, and no function or filter is run.

        Raises:
            PlanError: the steps do not fit together, or an argument is wrong.
        """
        from loaders.dali.choice import choose
        from loaders.make import check_device
        from loaders.membership import Membership
        from loaders.output import Output

        if world_size is None:
            size = Membership().world().size
        else:
            said = f"world_size={world_size!r} is no number of ranks."
            hint = f"use a whole number from 1 to {MOST_RANKS:,}"
            size = as_whole(world_size, said, hint=hint, least=1, below=MOST_RANKS + 1)
        if device is not None:
            check_device(device)
        return outline(
            self.node, self.seed_value or 0, size,
            GivenOptions(memory_limit=memory_limit, threads=threads, on_error=on_error, backend=backend).settled(),
            choose(backend, self.node, Output(device=device)).lines(self.node),
        )  # fmt: skip

    def to_spec(self) -> dict[str, Json]:
        """The pipeline as plain data, which `flow.load_spec` reads back from YAML or JSON."""
        return to_spec(self.node, self.seed_value)

    def __getitem__(self, row: int) -> Row:
        """Row `row` of the unshuffled pipeline at epoch 0, its operators applied.

        Raises:
            IndexError: there is no such row.
            PlanError: the number of rows is not known, or one row may become several.
        """
        return ask.row(self.node, row, self.seed_value or 0)

    def __iter__(self) -> NoReturn:
        """Refuse: through `__getitem__` Python would give single rows, unshuffled and unbatched."""
        raise TypeError("a pipeline is not iterable: call .loader()")

    # ---- running

    @overload
    def loader(
        self, *, output: Literal["torch"] = ..., device: Any = ..., collate: Collate[Any, Any] | None = ...,
        **more: Unpack[Arguments],
    ) -> TorchLoader: ...  # fmt: skip

    @overload
    def loader(
        self, *, output: Literal["numpy"], collate: None = ..., **more: Unpack[Arguments]
    ) -> RankedLoader[NumpyBatch]: ...

    @overload
    def loader(
        self, *, output: Literal["arrow"], collate: None = ..., **more: Unpack[Arguments]
    ) -> RankedLoader[pa.RecordBatch]: ...

    @overload
    def loader(
        self, *, output: Literal["numpy"], collate: Collate[NumpyBatch, T], **more: Unpack[Arguments]
    ) -> RankedLoader[T]: ...

    @overload
    def loader(
        self, *, output: Literal["arrow"], collate: Collate[pa.RecordBatch, T], **more: Unpack[Arguments]
    ) -> RankedLoader[T]: ...

    def loader(
        self, *, device: Any = None, rank: int | None = None, world_size: int | None = None,
        mesh: Any = None, group: Any = None, ids: bool = False, memory_limit: int | str | None = None,
        threads: int | None = None, prefetch: int | None = None, epochs: int | None = None,
        executor: str = "threads", collate: Collate[Any, Any] | None = None, on_error: OnError = "raise",
        max_errors: int | None = None, quarantine: str | Path | None = None, trace: str | Path | None = None,
        backend: Backend = "auto",
        output: Literal["torch", "numpy", "arrow"] = "torch", **unknown: Never,
    ) -> RankedLoader[Any]:  # fmt: skip
        """An iterable of batches: dicts of torch tensors or NumPy arrays, or Arrow record batches (`output`).

        See docs/loader.md for every argument.

        Raises:
            PlanError: an argument is wrong or unknown, or the pipeline cannot be delivered as it is.
        """
        from loaders.make import make_loader
        from loaders.membership import Membership
        from loaders.output import Output

        refuse_unknown(unknown, self.loader)
        options = GivenOptions(
            ids=ids, memory_limit=memory_limit, threads=threads, prefetch=prefetch, epochs=epochs,
            executor=executor, on_error=on_error, max_errors=max_errors, quarantine=quarantine, trace=trace,
            backend=backend,
        ).settled()  # fmt: skip
        membership = Membership(rank=rank, world_size=world_size, mesh=mesh, group=group)
        made = Output(kind=output, device=device, collate=collate)
        return make_loader(self.node, self.seed_value or 0, options, membership, made, backend)
