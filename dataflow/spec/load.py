"""`load_spec`: a YAML or JSON file becomes a pipeline; `open_spec` also gives the options of its loader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from connectors.contract import Json
from dataflow.errors import PlanError, near
from dataflow.fluent import Pipeline
from dataflow.given import as_names, as_path
from dataflow.graph.arguments import PLAIN, Argument, FindFunction, Misfit, arguments_of, check, plain
from dataflow.graph.functions import find_function
from dataflow.graph.spec import VERSION
from dataflow.spec.build import Builder
from dataflow.spec.document import Document, parse
from loaders.arguments import GivenOptions
from loaders.foreign_names import same_here
from loaders.make import check_device
from loaders.output import Output

__all__ = ["LoaderSection", "Spec", "load_spec", "open_spec"]


@dataclass(frozen=True, kw_only=True)
class LoaderSection(GivenOptions):
    """What a spec may say under `loader`: options of `Pipeline.loader` that are plain data."""

    device: str | None = None
    output: Literal["torch", "numpy", "arrow"] = "torch"


@dataclass(frozen=True)
class Spec:
    """A spec that was read: the pipeline, and keyword arguments for its `loader()`."""

    pipeline: Pipeline
    loader: Mapping[str, Any]


_SECTIONS = (
    Argument(key="version", name="version", type=int, form=PLAIN, required=True),
    Argument(key="seed", name="seed", type=int | None, form=PLAIN),
    Argument(key="pipeline", name="pipeline", type=list[object], form=PLAIN, required=True),
    Argument(key="loader", name="loader", type=dict[str, object] | None, form=PLAIN),
)


def load_spec(path: str | Path | Mapping[str, Json], allow_modules: Sequence[str] = ()) -> Pipeline:
    """The pipeline of a YAML or JSON file (told by the suffix .json), or of what `to_spec` returned.

    Args:
        allow_modules: from which modules and packages functions may be imported, each with all below it.

    Relative URLs in the file start from the current folder, as everywhere else.

    Raises:
        PlanError: the file is wrong; the message begins with its name and the line, as `train.yaml:12: ...`.
        ConnectorError, DataError, MissingExtraError: files that it reads are.
    """
    return open_spec(path, allow_modules).pipeline


def open_spec(path: str | Path | Mapping[str, Json], allow_modules: Sequence[str] = ()) -> Spec:
    """As `load_spec`, with the options under `loader:`."""
    allowed = as_names("load_spec", "allow_modules", allow_modules)
    if isinstance(path, Mapping):
        document = Document("spec", plain(path))
    else:
        document = _read(Path(as_path("load_spec", path)))
    find = partial(find_function, allow_modules=allowed)
    data = document.data
    if not isinstance(data, dict):
        raise PlanError(f"{document.name}: it is no spec.", hint="begin with version: 1 and pipeline:")
    with document.at():
        check(_SECTIONS, data, "the spec", find)
    with document.at("version"):
        if data["version"] != VERSION:
            raise PlanError(
                f"version {data['version']} is unknown.", hint=f"this Dataflow reads version {VERSION}"
            )
    with document.at("loader"):
        loader = _loader(data.get("loader"), find)
    pipeline = Builder(document, find).pipeline(data["pipeline"], ("pipeline",))
    seed: Any = data.get("seed")
    with document.at("seed"):
        return Spec(pipeline if seed is None else pipeline.seed(seed), loader)


def _loader(given: Json, find: FindFunction) -> dict[str, object]:
    if not isinstance(given, dict):
        return {}
    for key in given:
        hint = same_here(key)
        if hint:
            raise Misfit(f"loader has no key {key!r}.", path=(key,), hint=hint)
    values = check(arguments_of(LoaderSection), given, "loader", find)
    for count, key in enumerate(values, start=1):
        try:
            _check_together(dict(list(values.items())[:count]))
        except PlanError as error:
            raise Misfit(f"loader: {error.message}", path=(key,), hint=error.hint) from error
    return values


def _check_together(values: dict[str, Any]) -> None:
    """Refuse what `Pipeline.loader` would refuse; whether this machine has the device is seen there."""
    output, device = values.pop("output", "torch"), values.pop("device", None)
    GivenOptions(**values).settled()
    Output(kind=output, device=device)
    if device is not None:
        check_device(device)


def _read(path: Path) -> Document:
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise PlanError(
            f"the spec {path} cannot be read: it is no UTF-8 text.", hint="save it as UTF-8"
        ) from error
    except OSError as error:
        raise PlanError(f"the spec {path} cannot be read: {error.strerror}.", hint=_instead(path)) from error
    return parse(text, path.name, json=path.suffix.lower() == ".json")


def _instead(path: Path) -> str:
    """What to do about a spec that cannot be read."""
    if path.is_dir():
        return "it is a folder: give the file of a spec in it"
    if path.exists():
        return "check the rights"
    files = [file.name for file in path.parent.glob("*") if file.suffix in (".yaml", ".yml", ".json")]
    return near(path.name, files, what="spec in that folder")
