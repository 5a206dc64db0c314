"""Imports point one way and stand at the top of the file."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("dataflow", "connectors", "loaders", "bench")

# A file imports from its own layer or from one above it in this list. A name stands for the module and all
# that lies in it, except for the facade: `dataflow` is its `__init__.py` alone, so that a new folder in it
# must be given a place here.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("dataflow.errors", "dataflow.wording", "dataflow.parts"),
    ("dataflow.given",),
    ("connectors",),
    ("dataflow.byte_sizes", "dataflow.cores", "dataflow.options"),
    ("dataflow.index",),
    ("dataflow.order",),
    ("dataflow.graph",),
    ("dataflow.ops",),
    ("dataflow.optimize",),
    ("dataflow.execute",),
    ("dataflow.step",),
    ("loaders",),
    (
        "dataflow.image_verbs",
        "dataflow.fluent",
        "dataflow.beginnings",
        "dataflow.recipes",
        "dataflow.spec",
        "dataflow",
    ),
    ("bench",),
    ("dataflow.cli", "dataflow.__main__"),
)

# The facade loads its names on demand, which keeps `import dataflow` fast; `loaders.make` its framework.
FACADE = ("dataflow", "dataflow.fluent", "loaders.make")

# Optional, or too slow for `import dataflow` to pay for: a function may import them where it needs them.
ON_DEMAND = (
    "PIL",
    "cv2",
    "dataflow.ops.images.pixels",
    "dask",
    "distributed",
    "nvidia",
    "pandas",
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.dataset",
    "pyarrow.json",
    "pyarrow.parquet",
    "pydantic",
    "rich",
    "s3fs",
    "simplejpeg",
    "sklearn",
    "torch",
    "typer",
)


class Import(NamedTuple):
    module: str
    line: int
    at_top: bool


def within(module: str, name: str) -> bool:
    return module == name or module.startswith(name + ".")


def layer_of(module: str) -> int | None:
    for number, names in enumerate(LAYERS):
        if any(module == name or (name != "dataflow" and within(module, name)) for name in names):
            return number
    return None


def modules_of(root: Path) -> dict[str, Path]:
    """Every module of the packages in `root`, by its dotted name."""
    files = (file for package in PACKAGES for file in sorted((root / package).rglob("*.py")))
    return {
        ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): file
        for file in files
    }


def targets_of(node: ast.AST, package: str, modules: Mapping[str, Path]) -> list[str]:
    """The modules that this one node imports: a statement, or `import_module` of a literal name."""
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            parents = package.split(".")[: len(package.split(".")) - level + 1] if level else []
            source = ".".join([*parents, *([module] if module else [])])
            inside = [f"{source}.{alias.name}" for alias in names]
            return [name if name in modules else source for name in inside]
        case ast.Call(
            func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"), args=[first, *_]
        ):
            return [first.value] if isinstance(first, ast.Constant) and isinstance(first.value, str) else []
    return []


def imports_of(tree: ast.Module, package: str, modules: Mapping[str, Path]) -> Iterator[Import]:
    def walk(nodes: Iterable[ast.AST], at_top: bool) -> Iterator[Import]:
        for node in nodes:
            # `import_module` is a call: it loads on demand, wherever it stands.
            placed = at_top or isinstance(node, ast.Call)
            for target in targets_of(node, package, modules):
                yield Import(target, getattr(node, "lineno", 0), placed)
            match node:
                case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=orelse) if at_top:
                    yield from walk(body, True)
                    yield from walk(orelse, False)
                case _:
                    yield from walk(ast.iter_child_nodes(node), False)

    return walk(tree.body, True)


def violations(root: Path) -> list[str]:
    """One line for each import in `root` that points the wrong way or stands in the wrong place."""
    modules = modules_of(root)
    found: list[str] = []
    for module, file in modules.items():
        layer = layer_of(module)
        where = file.relative_to(root)
        if layer is None:
            found.append(f"{where}: belongs to no layer")
            continue
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        for target, line, at_top in imports_of(ast.parse(file.read_text("utf-8")), package, modules):
            below = layer_of(target)
            if target.split(".")[0] in PACKAGES and (below is None or below > layer):
                found.append(f"{where}:{line}: imports {target}, which is not in its layer or above")
            if not at_top and module not in FACADE and not any(within(target, name) for name in ON_DEMAND):
                found.append(f"{where}:{line}: imports {target} below the top of the file")
    return found


def plant(root: Path, files: Mapping[str, str]) -> None:
    for name, source in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source)


def test_every_file_imports_from_its_own_layer_or_above_and_at_the_top() -> None:
    assert len(modules_of(ROOT)) > len(PACKAGES)
    assert violations(ROOT) == []


@pytest.mark.parametrize(
    ("name", "source", "complaint"),
    [
        ("dataflow/errors.py", "import connectors", "imports connectors, which"),
        ("connectors/tar.py", "from dataflow.options import Limits", "imports dataflow.options, which"),
        ("connectors/tar.py", "from dataflow import options", "imports dataflow.options, which"),
        ("connectors/tar.py", "import dataflow as flow", "imports dataflow, which"),
        ("dataflow/order/lane.py", "from dataflow.graph import node", "imports dataflow.graph, which"),
        ("dataflow/order/lane.py", "from ..graph import node", "imports dataflow.graph, which"),
        ("dataflow/order/__init__.py", "from .. import options, ops", "imports dataflow.ops, which"),
        (
            "dataflow/ops/take.py",
            "from importlib import import_module\nimport_module('loaders.torch')",
            ":2: ",
        ),
        ("dataflow/ops/take.py", "if TYPE_CHECKING:\n    import loaders", "imports loaders, which"),
        ("dataflow/ops/take.py", "def load():\n    import loaders", "imports loaders, which"),
        ("loaders/torch.py", "from dataflow import read", "imports dataflow, which"),
        ("dataflow/fluent.py", "def load():\n    import bench", "imports bench, which"),
        ("bench/case.py", "import dataflow.cli", "imports dataflow.cli, which"),
        ("dataflow/order/lane.py", "import dataflow.missing", "imports dataflow.missing, which"),
        ("dataflow/order/lane.py", "def f():\n    import json", ":2: imports json below the top"),
        (
            "dataflow/order/lane.py",
            "class A:\n    from dataflow import errors",
            ":2: imports dataflow.errors below",
        ),
        (
            "dataflow/order/lane.py",
            "try:\n    import fast\nexcept ImportError:\n    pass",
            "imports fast below",
        ),
        ("dataflow/order/lane.py", "def f():\n    import pyarrow", "imports pyarrow below"),
        (
            "dataflow/order/lane.py",
            "if TYPE_CHECKING:\n    pass\nelse:\n    import json",
            "imports json below",
        ),
        ("dataflow/misc.py", "", "dataflow/misc.py: belongs to no layer"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, name: str, source: str, complaint: str) -> None:
    plant(tmp_path, {f"dataflow/{folder}/__init__.py": "" for folder in ("graph", "order", "ops")})
    plant(tmp_path, {"dataflow/options.py": "", "dataflow/errors.py": "", name: source})
    found = violations(tmp_path)
    assert any(line.startswith(name) and complaint in line for line in found), found


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("dataflow/order/lane.py", "from dataflow.order.window import Window"),
        ("dataflow/order/lane.py", "from .window import Window"),
        ("dataflow/order/lane.py", "from dataflow import errors"),
        (
            "dataflow/order/lane.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import dataflow.errors",
        ),
        ("dataflow/order/lane.py", "def f():\n    import torch.distributed as dist"),
        ("dataflow/order/lane.py", "try:\n    import cv2\nexcept ImportError:\n    pass"),
        ("dataflow/fluent.py", "def loader():\n    from loaders.torch import Loader"),
        ("dataflow/__init__.py", "def __getattr__(name):\n    import dataflow.fluent"),
        ("dataflow/execute/run.py", "def f():\n    importlib.import_module('dataflow.execute.dask')"),
        ("bench/case.py", "import dataflow as flow"),
        ("dataflow/cli/bench.py", "from bench import case"),
    ],
)
def test_an_import_that_keeps_the_rules_is_let_through(tmp_path: Path, name: str, source: str) -> None:
    plant(tmp_path, {"dataflow/errors.py": "", "dataflow/order/window.py": "", name: source})
    assert violations(tmp_path) == []
