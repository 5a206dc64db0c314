"""A short text for the condition of a filter, by which saved states and cached bitmaps know it again."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dataflow.errors import PlanError
from dataflow.graph.expression import written_expression
from dataflow.graph.value_bytes import value_bytes

__all__ = ["Term", "Terms", "condition_key"]

Term = tuple[str, str, object]
Terms = Sequence[Term] | Sequence[Sequence[Term]]


def condition_key(condition: pc.Expression | Terms) -> str:
    """The same for the same terms or the same expression, now and later; an expression that no spec can hold has one
    that goes with the version of Arrow.
    """
    form = _expression_form(condition) if isinstance(condition, pc.Expression) else _terms_form(condition)
    return hashlib.blake2b(form, digest_size=16).hexdigest()


def _expression_form(expression: pc.Expression) -> bytes:
    try:
        return written_expression(expression).encode()
    except PlanError:
        # What Arrow prints of it is not exact, as it leaves out the middle of a long list; how it serialises it is.
        return pickle.dumps(expression, protocol=4)


def _terms_form(terms: Terms) -> bytes:
    groups = [terms] if isinstance(terms[0][0], str) else terms
    return json.dumps([[_term_form(*term) for term in group] for group in groups]).encode()  # type: ignore[misc]


def _term_form(name: str, operator: str, value: object) -> list[str]:
    if operator in ("in", "not in"):
        # A set of texts has another order in every process.
        return [name, operator, *sorted({_value_form(item) for item in value})]  # type: ignore[attr-defined]
    return [name, "==" if operator == "=" else operator, _value_form(value)]


def _value_form(value: object) -> str:
    (found,) = value_bytes(pa.array([value]))
    return found.hex()
