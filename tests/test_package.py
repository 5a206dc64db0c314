"""What the installed packages promise: types, names, and an import that loads little."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import dataflow

ROOT = Path(__file__).parents[1]
PACKAGES = ("dataflow", "connectors", "loaders", "bench")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
# Its files are found by themselves, and none has to be named anywhere.
NOT_LISTED = {ROOT / "bench" / "cases"}
NOT_AT_IMPORT = {"torch", "pandas", "dask", "distributed", "PIL", "sklearn", "nvidia", "cv2", "s3fs", "typer"}


def python_files() -> list[Path]:
    return [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def declared_names(tree: ast.Module) -> list[str] | None:
    """The literal `__all__` of a module, None where it has none."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return list(ast.literal_eval(value))
            case ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value):
                return list(ast.literal_eval(value))
    return None


def requirements(lines: Iterable[str]) -> list[Requirement]:
    return [r for r in map(Requirement, lines) if r.name != PROJECT["project"]["name"]]


def test_every_extra_that_an_error_names_can_be_installed() -> None:
    calls = [
        node
        for file in python_files()
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "MissingExtraError"
    ]
    extras = {
        ast.literal_eval(keyword.value)
        for call in calls
        for keyword in call.keywords
        if keyword.arg == "extra"
    }
    assert extras
    assert extras <= set(PROJECT["project"]["optional-dependencies"])
    for extra in extras:
        hint = dataflow.MissingExtraError("it is not installed.", extra=extra).hint
        assert hint == f"pip install '{PROJECT['project']['name']}[{extra}]'"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_ships_its_types(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__file__ is not None
    assert Path(module.__file__).with_name("py.typed").is_file()
    assert "py.typed" in PROJECT["tool"]["setuptools"]["package-data"][package]


def test_every_folder_of_code_is_a_package_that_says_what_is_in_it() -> None:
    folders = {file.parent for file in python_files()}
    silent = [
        str(folder.relative_to(ROOT))
        for folder in sorted(folders)
        if not (init := folder / "__init__.py").is_file()
        or not ast.get_docstring(ast.parse(init.read_text("utf-8")))
    ]
    assert silent == []


def test_what_the_facade_declares_is_what_can_be_imported() -> None:
    missing = [name for name in dataflow.__all__ if not hasattr(dataflow, name)]
    assert missing == []
    assert len(set(dataflow.__all__)) == len(dataflow.__all__)
    # What the file binds is public unless it comes from elsewhere, as `annotations` and submodules do.
    ours = {
        name
        for name, value in vars(dataflow).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and getattr(value, "__module__", "").split(".")[0] in PACKAGES
    }
    assert ours <= set(dataflow.__all__)
    assert {name for name in dir(dataflow) if not name.startswith("_")} <= set(dataflow.__all__)


@pytest.mark.parametrize("file", python_files(), ids=relative)
def test_every_module_declares_the_names_that_it_offers(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    defined = [
        n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    public = {name for name in defined if not name.startswith("_")}
    # A public name that is missing is either added to `__all__` or given an underscore.
    assert public - set(declared_names(tree) or []) == set()


def test_importing_dataflow_loads_no_heavy_library() -> None:
    code = "import json, sys, dataflow; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in json.loads(done.stdout)}
    assert "dataflow" in loaded
    assert loaded & NOT_AT_IMPORT == set()


def test_the_command_and_the_extras_are_those_that_are_promised() -> None:
    project = PROJECT["project"]
    assert project["scripts"] == {"dataflow": "dataflow.__main__:main"}
    extras = project["optional-dependencies"]
    assert {"image", "dali", "dask", "s3", "all", "dev"} <= set(extras)
    in_all = Requirement(extras["all"][0]).extras
    assert in_all == set(extras) - {"all", "dev"}


def test_every_dependency_that_is_tested_is_pinned_within_its_bounds() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = dict(re.split("==", line) for line in lines if line and not line.startswith("#"))
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = requirements(PROJECT["project"]["dependencies"])
    wanted += requirements([*extras["image"], *extras["demo"], *extras["dev"]])
    unpinned = [str(r) for r in wanted if pins.get(canonicalize_name(r.name), "0") not in r.specifier]
    assert unpinned == []
    assert pins["torch"] == "2.13.0"


@pytest.mark.parametrize(
    "folder", sorted({file.parent for file in python_files()} - NOT_LISTED), ids=relative
)
def test_the_map_of_a_folder_names_all_its_files_and_folders_and_no_others(folder: Path) -> None:
    tree = ast.parse((folder / "__init__.py").read_text("utf-8"))
    said = ast.get_docstring(tree) or ""
    files = {file.name for file in folder.glob("*.py")} - {"__init__.py"}
    # A name with a folder in front of it is a path from the root, to something elsewhere.
    elsewhere = set(re.findall(r"\w+(?:/\w+)+\.\w+", said))
    assert [path for path in sorted(elsewhere) if not (ROOT / path).exists()] == []
    named = set(re.findall(r"(?<![\w/])\w+\.py\b", said))
    listed = {f"{name}.py" for name in declared_names(tree) or ()} & files
    assert named | listed == files
    folders = {file.parent.name for file in folder.glob("*/__init__.py")}
    assert folders - set(re.findall(r"(\w+)/", said)) == set()
