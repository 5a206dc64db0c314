"""YAML and JSON text as plain data that knows its lines.

Plain scalars follow the core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema), so that
`no`, `12:30` and `2024-01-01` are texts and `1e-3` is a number, as in JSON. Only plain data is made: a tag for
anything else is an error, and a key that comes twice is one too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import yaml

from connectors.contract import Json
from dataflow.errors import ConnectorError, DataError, MissingExtraError, PlanError
from dataflow.graph.arguments import Misfit

__all__ = ["Document", "parse"]

_CORE = "tag:yaml.org,2002:"
# Aliases make large data of a small text; no pipeline that a person wrote comes near this.
_MOST_PARTS = 200_000
_JSON_TABS = re.compile(r'"(?:[^"\\]|\\.)*"|\t')


class _CoreLoader(yaml.SafeLoader):
    """Finds tags as YAML 1.2 does."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's name


for _tag, _pattern, _first in (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", "~|null|Null|NULL|", "~nN"),
    ("int", "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+."),
):
    _first_letters: list[str | None] = [*_first, *([""] if _tag == "null" else [])]
    _CoreLoader.add_implicit_resolver(_CORE + _tag, re.compile(f"(?:{_pattern})\\Z"), _first_letters)


@dataclass(frozen=True)
class Document:
    """Plain data, and where each part of it stands; `name` is the file's name in messages."""

    name: str
    data: Json
    root: yaml.Node | None = None

    def where(self, path: Sequence[str | int]) -> str:
        """`file:line` of the part that `path` leads to, or of the last part on the way that is there."""
        line = _line(self.root, path)
        return self.name if line is None else f"{self.name}:{line}"

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        """Put the line of a part in front of the messages of errors."""
        try:
            yield
        except Misfit as error:
            where = self.where((*path, *error.path))
            raise PlanError(f"{where}: {error.message}", hint=error.hint) from error
        except (PlanError, ConnectorError, DataError, MissingExtraError) as error:
            error.message = f"{self.where(path)}: {error.message}"
            raise


def parse(text: str, name: str, *, json: bool = False) -> Document:
    """The data of a text.

    Raises:
        PlanError: the text is no YAML (or JSON), a key comes twice, or it has more than plain data; with the
            line.
    """
    if json:
        # YAML takes no tab between values; JSON does.
        text = _JSON_TABS.sub(lambda match: " " if match[0] == "\t" else match[0], text)
    try:
        root = yaml.compose(text, Loader=_CoreLoader)
        return Document(name, None if root is None else _Maker(name).value(root, ()), root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f":{mark.line + 1}"
        raise PlanError(
            f"{name}{line}: {error.problem or error.context}.",
            hint="check brackets, quotes and indentation there and on the line before",
        ) from error
    except yaml.reader.ReaderError as error:
        line = f":{text.count(chr(10), 0, error.position) + 1}"
        raise PlanError(f"{name}{line}: {error.reason}.", hint="save the file as UTF-8 text") from error
    except RecursionError:
        raise PlanError(
            f"{name}: it is nested too deeply.", hint="a spec has a few levels, see docs/spec.md"
        ) from None


class _Maker:
    def __init__(self, name: str) -> None:
        self._name = name
        self._parts = 0

    def value(self, node: yaml.Node, above: tuple[yaml.Node, ...]) -> Json:
        self._parts += 1
        if self._parts > _MOST_PARTS or any(node is one for one in above):
            raise self._fault(node, "it grows without end", "use fewer aliases (*name)")
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_CORE}map":
            return self._mapping(node, (*above, node))
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_CORE}seq":
            return [self.value(item, (*above, node)) for item in node.value]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        raise self._fault(node, f"the tag {node.tag!r} is not allowed", "write plain values")

    def _mapping(self, node: yaml.MappingNode, above: tuple[yaml.Node, ...]) -> dict[str, Json]:
        made: dict[str, Json] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._fault(key, "a key is no text", "write key: value")
            name = _text(key)
            if name in made:
                raise self._fault(
                    key, f"{name!r} is there twice, first on line {lines[name]}", "leave one out"
                )
            lines[name] = key.start_mark.line + 1
            made[name] = self.value(value, above)
        return made

    def _scalar(self, node: yaml.ScalarNode) -> Json:
        text: str = node.value
        kind = node.tag.removeprefix(_CORE)
        try:
            match kind:
                case "str":
                    return _text(node)
                case "int":
                    return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
                case "float":
                    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
                case "bool":
                    return {"true": True, "false": False}[text.lower()]
                case "null":
                    return None
        except (ValueError, KeyError):
            raise self._fault(node, f"{text!r} is no {kind}", "leave the tag out") from None
        raise self._fault(node, f"the tag {node.tag!r} is not allowed", "write plain values")

    def _fault(self, node: yaml.Node, what: str, hint: str) -> PlanError:
        return PlanError(f"{self._name}:{node.start_mark.line + 1}: {what}.", hint=hint)


def _text(node: yaml.Node) -> str:
    # JSON escapes letters beyond 16 bits as pairs.
    text: str = node.value
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _line(root: yaml.Node | None, path: Sequence[str | int]) -> int | None:
    if root is None:
        return None
    node, line = root, root.start_mark.line + 1
    for step in path:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if _text(key) == step), None)
            if found is None:
                break
            # A value that is a block begins below its key, and the key is what people look for.
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            break
    return line
