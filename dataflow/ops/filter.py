"""Filter: keep the rows for which a condition holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.contract import Json
from dataflow.errors import PlanError, StageError, near
from dataflow.given import as_block_rows, check_flags
from dataflow.graph.block import BadSample, Block
from dataflow.graph.calls import call_rows, columns_view, first_id, function_name
from dataflow.graph.draw import Draw
from dataflow.graph.node import NameRows, Node, Traits, walk
from dataflow.graph.registry import register
from dataflow.graph.rows import plain_value
from dataflow.ops.condition_key import Terms, condition_key
from dataflow.ops.forms import CONDITION, settled_terms
from dataflow.ops.selecting import SelectingNode
from dataflow.wording import text_of

__all__ = ["Condition", "Filter", "columns_read", "expression_of"]

Condition = pc.Expression | Terms | Callable[..., object]
_OPERATORS = ("=", "==", "!=", "<", ">", "<=", ">=", "in", "not in")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_BESIDE_NULL = re.compile(r"(?:[=!<>]=|[<>]) null\[|\(null\[[^()]*\] (?:[=!<>]=|[<>]) ")


def expression_of(condition: Condition) -> pc.Expression | None:
    """A condition as an Arrow expression; None for a function.

    Of terms as [("label", ">", 3), ...] all must hold; a list of such lists is an "or" of "and"s. A column that is
    `==` None is null, and one that is `!=` None is not.

    Raises:
        PlanError: it is none of the three.
    """
    if isinstance(condition, pc.Expression):
        return condition
    if callable(condition):
        return None
    try:
        if not isinstance(condition, Sequence):
            raise TypeError("terms are a list")
        first: object = condition[0]
        if isinstance(first, str) and isinstance(condition, tuple | list):
            raise PlanError(
                f"filter: {condition!r} is one term.", hint=f"put it in a list: filter([{condition!r}])"
            )
        groups: Sequence[Any] = [condition] if isinstance(condition[0][0], str) else condition
        whole: pc.Expression | None = None
        for group in groups:
            part: pc.Expression | None = None
            for term in group:
                part = _term(term) if part is None else part & _term(term)
            assert part is not None
            whole = part if whole is None else whole | part
    except PlanError:
        raise
    except (TypeError, IndexError, ValueError, AssertionError, pa.ArrowException) as error:
        raise PlanError(
            f"filter: {condition!r} is no condition.",
            hint="use a function, an Arrow expression, or terms as [('label', '>', 3)]",
        ) from error
    return whole


def _term(term: Sequence[object]) -> pc.Expression:
    name, operator, value = term
    if operator not in _OPERATORS:
        raise PlanError(
            f"filter: {operator!r} is no operator.", hint=near(str(operator), _OPERATORS, what="operator")
        )
    field = pc.field(str(name))
    if operator in ("in", "not in"):
        if isinstance(value, str | bytes):
            # The list of its letters would be found in no column of words.
            raise PlanError(
                f"filter: {operator} {value!r} is no list.", hint=f"as ({str(name)!r}, 'in', [{value!r}])"
            )
        found = field.isin(list(value))  # type: ignore[call-overload]
        return found if operator == "in" else ~found
    if value is None:
        return _null_term(field, operator)
    made: pc.Expression = {
        "=": field.__eq__, "==": field.__eq__, "!=": field.__ne__, "<": field.__lt__,
        ">": field.__gt__, "<=": field.__le__, ">=": field.__ge__,
    }[str(operator)](value)  # fmt: skip
    return made


def _null_term(field: pc.Expression, operator: object) -> pc.Expression:
    if operator not in ("=", "==", "!="):
        raise PlanError(
            f"filter: a value is never {operator} None.", hint="use '==' for nulls, '!=' for all else"
        )
    null = field.is_null()
    return ~null if operator == "!=" else null


def _refuse_null(expression: pc.Expression) -> None:
    """Arrow compares nothing with a null: such a condition would hold for no row, and nor would its opposite."""
    if _BESIDE_NULL.search(_TEXT.sub('""', str(expression))):
        raise PlanError(
            f"filter: {expression} compares with None, which holds for no row.",
            hint="use pc.field(name).is_valid(), or .is_null() for the nulls",
        )


def columns_read(expression: pc.Expression, schema: pa.Schema) -> frozenset[str]:
    """The columns that an expression reads: those without which it cannot be evaluated.

    Raises:
        PlanError: it names a column that is not there, or compares types that do not compare.
    """
    # Schema.empty_table() has no way to make a tensor column that names its axes' order.
    empty = pa.Table.from_batches([], schema)
    try:
        empty.filter(expression)
    except pa.ArrowException as error:
        missing = str(error).partition("FieldRef.Name(")[2].partition(")")[0]
        if missing and missing not in schema.names:
            raise PlanError(
                f"filter: there is no column {missing!r}.", hint=near(missing, schema.names, what="column")
            ) from error
        raise PlanError(
            f"filter: {expression} cannot be evaluated: {error}", hint="check the types"
        ) from error
    needed = set()
    for name in schema.names:
        try:
            empty.drop_columns([name]).filter(expression)
        except pa.ArrowException:
            needed.add(name)
    return frozenset(needed)


@register("filter")
@dataclass(frozen=True, kw_only=True, eq=False)
class Filter(SelectingNode):
    """Keep the rows for which `condition` holds; a null is not kept.

    A function gets a row as in `map`; `batched`: the columns of blocks of `batch_size` rows of a window, and it
    returns bool (rows,).

    With `counted`, the kept rows are found in one pass beforehand: the length is then known, and lanes are
    equal. A rule sets it for conditions on columns of the source. Where the pass could not decide about every row, the
    condition is asked again as rows are delivered, so that those rows are bad where they come.
    """

    condition: Condition = field(metadata={"form": CONDITION})
    batched: bool = False
    batch_size: int = 1024
    counted: bool = False

    def __post_init__(self) -> None:
        check_flags("filter", batched=self.batched)
        by_function = expression_of(self.condition) is None
        if not by_function and self.batched:
            raise PlanError("filter(batched=True) is for functions.", hint="leave it out")
        object.__setattr__(self, "batch_size", as_block_rows("filter", self.batch_size))
        if isinstance(self.condition, pc.Expression):
            _refuse_null(self.condition)
        elif not by_function:
            object.__setattr__(self, "condition", settled_terms(self.condition))

    @classmethod
    def from_arguments(cls, inputs: tuple[Node, ...], values: Mapping[str, Any]) -> Node:
        made = cls(inputs=inputs, **values)
        return made.counted_before() if made.counted else made

    @property
    def expression(self) -> pc.Expression | None:
        """The condition as an Arrow expression, None for a function."""
        return expression_of(self.condition)

    @property
    def traits(self) -> Traits:
        function = callable(self.condition) and not isinstance(self.condition, pc.Expression)
        kernel = not self.counted or (self.kept is not None and self.kept.open)
        return Traits(
            kernel=kernel, keeps_rows=self.counted, selects=self.counted, filters=True,
            holds_gil=function and kernel, reads=None if function else self._reads,
            chunk=self.batch_size if self.batched and kernel else None,
        )  # fmt: skip

    @cached_property
    def _reads(self) -> frozenset[str] | None:
        # The columns that a counted one reads need not reach it: its own pass reads them.
        schema, expression = (self.reads_from if self.counted else self.input).schema, self.expression
        return columns_read(expression, schema) if schema is not None and expression is not None else None

    def order_fact(self) -> Json:
        return [self.selection_key or function_name(self.condition), self.counted]

    def counted_before(self, basis: Node | None = None) -> Node:
        """The same filter, its kept rows found beforehand; over `basis`, where that is not its input.

        Raises:
            PlanError: it stands behind a random operator, or one that makes several rows of one.
        """
        for step in walk(self.input):
            if step.traits.random or step.traits.many:
                raise PlanError(
                    f"{self.label()} cannot be counted beforehand: it stands behind {step.label()}.",
                    hint="put the filter in front of it",
                )
        return replace(self, counted=True, basis=basis)

    def needs(self, wanted: frozenset[str] | None) -> tuple[frozenset[str] | None, ...]:
        # The pass that finds the kept rows reads its own columns.
        return Node.needs(self, wanted) if self.traits.kernel else (wanted,)

    @property
    def title(self) -> str:
        return f"filter({function_name(self.condition)})" if self.expression is None else self.kind

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        expression = self.expression
        if schemas[0] is not None and expression is not None and not self.counted:
            columns_read(expression, schemas[0])
        return schemas[0]

    @property
    def selection_key(self) -> str | None:
        condition = self.condition
        if not isinstance(condition, pc.Expression) and callable(condition):
            return None
        return f"filter {condition_key(condition)}"

    def selected(self, block: Block, named: NameRows) -> Block:
        mask, bad = self.keeps(block)
        return block.without(bad, mask)

    def keeps(self, block: Block) -> tuple[npt.NDArray[np.bool_], list[BadSample]]:
        """Which rows are kept, bool (rows,), and the rows that could not be decided."""
        expression = self.expression
        if expression is not None:
            table = (
                pa.table({"keep": np.arange(block.rows)})
                if not block.columns
                else pa.Table.from_batches([block.record_batch()])
            )
            numbered = table.append_column("__row__", pa.array(np.arange(block.rows)))
            kept = numbered.filter(expression).column("__row__").to_numpy()
            mask = np.zeros(block.rows, np.bool_)
            mask[kept] = True
            return mask, []
        function: Callable[..., object] = self.condition  # type: ignore[assignment]
        if self.batched:
            pieces = [block.slice(at, at + self.batch_size) for at in range(0, block.rows, self.batch_size)]
            masks = [_as_mask(function(columns_view(piece)), piece, self.title) for piece in pieces]
            return np.concatenate(masks), []
        results, bad = call_rows(lambda row: self._decided(function(row)), block, self.title)
        return np.array(results, np.bool_), bad

    def _decided(self, result: object) -> bool:
        try:
            return bool(result)
        except Exception as error:
            raise StageError(
                f"returned {type(result).__name__}, which is neither true nor false: {text_of(error)}",
                operator=self.title, hint="return one truth value for a row, or bool (rows,) with batched=True",
            ) from error  # fmt: skip

    def apply(self, block: Block, draw: Draw) -> Block:
        mask, bad = self.keeps(block)
        if self.counted:
            bad = [*bad, *_fickle(block, mask, bad, self.title)]
        return block if mask.all() else block.without(bad, mask)


def _fickle(
    block: Block, mask: npt.NDArray[np.bool_], bad: Sequence[BadSample], operator: str
) -> list[BadSample]:
    """The rows of a block that were kept beforehand, and are now left out."""
    failed = {sample.origin for sample in bad}
    fickle = []
    for row in np.flatnonzero(~mask).tolist():
        origin, sample = int(block.origin[row]), first_id(block, row)
        if origin not in failed:
            error = StageError(
                f"kept sample {sample >> 40}:{sample & (1 << 40) - 1} when rows were counted, and leaves it out now.",
                operator=operator, hint="let the condition depend on nothing but the row",
            )  # fmt: skip
            fickle.append(BadSample(origin, sample, operator, error))
    return fickle


def _as_mask(result: object, block: Block, operator: str) -> npt.NDArray[np.bool_]:
    mask = np.asarray(plain_value(result))
    if mask.shape != (block.rows,) or mask.dtype != np.bool_:
        raise StageError(
            f"returned {mask.dtype} {mask.shape}, not bool ({block.rows},).", operator=operator,
            hint="return one truth value a row, as columns['label'] > 3",
        )  # fmt: skip
    return mask
