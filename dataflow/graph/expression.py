"""Arrow expressions as text, and back.

Arrow prints an expression, but has nothing that reads it; and of its Substrait form columns come back as
numbers, not names. So a spec holds what Arrow prints, and this file reads the part of it that filters use:

    expression  = "(" expression operator expression ")" | function "(" expression, ... [", {options}"] ")"
                | text in double quotes | number | true | false | date [time] | column

`written_expression` gives a text only where reading it gives an equal expression again.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataflow.errors import PlanError

__all__ = ["read_expression", "written_expression"]

_TOKEN = re.compile(
    r"\s*(?P<token>"
    r'"(?:[^"\\]|\\.)*"'
    r"|\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d+)?)?"
    r"|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
    r"|\{[^{}]*\}|==|!=|<=|>=|<|>|[(),]"
    r"|[A-Za-z_][\w.]*"
    r")"
)
_COMPARES: dict[str, Callable[[pc.Expression, pc.Expression], pc.Expression]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
}  # fmt: skip
_CALLS: dict[str, Callable[..., pc.Expression]] = {
    "invert": lambda a: ~a,
    "add_checked": lambda a, b: a + b,
    "subtract_checked": lambda a, b: a - b,
    "multiply_checked": lambda a, b: a * b,
    "divide_checked": lambda a, b: a / b,
    "is_valid": lambda a: a.is_valid(),
    "is_nan": lambda a: a.is_nan(),
    "utf8_length": pc.utf8_length,
}
_VALUE_SET = re.compile(r"\{value_set=\w+:\[(?P<values>.*)\], null_matching_behavior=MATCH\}", re.DOTALL)
_NULLS = re.compile(r"\{nan_is_null=(?P<nan>true|false)\}")
_WORDS = {"true": True, "false": False}


def written_expression(expression: pc.Expression) -> str:
    """The expression as a text that `read_expression` reads back to an equal one.

    Raises:
        PlanError: it has a part that is not read here.
    """
    text = re.sub(r"\s*\n\s*", "", str(expression))
    try:
        found: Any = read_expression(text)  # the stubs of pyarrow lack `equals`
        same = bool(found.equals(expression))
    except PlanError:
        same = False
    if not same:
        raise PlanError(
            f"the Arrow expression {expression} cannot be written in a spec.",
            hint="use terms, as [('label', '>', 3)], or a function of a module",
        )
    return text


def read_expression(text: str) -> pc.Expression:
    """The expression of a text as Arrow prints it. Nothing is evaluated but Arrow's own constructors.

    Raises:
        PlanError: it is no such text.
    """
    try:
        reader = _Reader(text)
        made = reader.expression()
        reader.expect("")
    except (ValueError, KeyError, TypeError, pa.ArrowException, RecursionError) as error:
        raise PlanError(
            f"{text!r} is no Arrow expression that a spec may hold.",
            hint="""write it as '((x > 3) and (y == "a"))', or use terms: [[x, ">", 3]]""",
        ) from error
    return made


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        place = 0
        text = text.rstrip()
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                raise ValueError(f"nothing known at {text[place:]!r}")
            self._tokens.append(match["token"])
            place = match.end()
        self._tokens.reverse()

    def next(self) -> str:
        return self._tokens.pop() if self._tokens else ""

    def expect(self, token: str) -> None:
        found = self.next()
        if found != token:
            raise ValueError(f"{found!r} where {token!r} should be")

    def expression(self) -> pc.Expression:
        token = self.next()
        if token == "(":
            left, operator = self.expression(), self.next()
            made = _COMPARES[operator](left, self.expression())
            self.expect(")")
            return made
        if self._tokens and self._tokens[-1] == "(":
            return self._call(token)
        if token[:1].isalpha() or token[:1] == "_":
            return pc.scalar(_WORDS[token]) if token in _WORDS else pc.field(token)
        return pc.scalar(_literal(token))

    def _call(self, name: str) -> pc.Expression:
        self.expect("(")
        arguments = [self.expression()]
        options = ""
        while (token := self.next()) == ",":
            if self._tokens and self._tokens[-1].startswith("{"):
                options = self.next()
            else:
                arguments.append(self.expression())
        if token != ")":
            raise ValueError(f"{token!r} where ')' should be")
        if name == "is_in" and (found := _VALUE_SET.fullmatch(options)):
            return arguments[0].isin([_word_or_literal(word) for word in _words(found["values"])])
        if name == "is_null" and (nulls := _NULLS.fullmatch(options)):
            return arguments[0].is_null(nan_is_null=_WORDS[nulls["nan"]])
        if options:
            raise ValueError(f"{name} with options")
        return _CALLS[name](*arguments)


def _words(values: str) -> list[str]:
    reader = _Reader(values)
    words = [reader.next()]
    while (token := reader.next()) == ",":
        words.append(reader.next())
    if token or not all(words):
        raise ValueError(f"{values!r} is no list")
    return words


def _word_or_literal(word: str) -> object:
    return _WORDS[word] if word in _WORDS else _literal(word)


def _literal(token: str) -> Any:
    if token.startswith('"'):
        text: str = json.loads(token, strict=False)  # Arrow prints control letters as they are
        return text
    if re.match(r"\d{4}-", token):
        kind = datetime.datetime if ":" in token else datetime.date
        return kind.fromisoformat(token)
    return float(token) if re.search(r"[.e]", token) else int(token)
