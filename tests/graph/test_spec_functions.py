"""Functions of a spec: imported by name, from allowed modules only, and found again by their name."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dataflow.errors import PlanError
from dataflow.graph.functions import find_function, function_reference

CODE = """
import os
import subprocess
from json import dumps

class Maker:
    @staticmethod
    def make(row):
        return row

    def __call__(self, row):
        return row

def keep(row):
    return True

made = Maker()
number = 3
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spec_package").mkdir()
    (tmp_path / "spec_package" / "__init__.py").write_text("from spec_package.inner import keep\n")
    (tmp_path / "spec_package" / "inner.py").write_text(CODE)
    (tmp_path / "spec_package_2.py").write_text("raise OSError('no licence')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("spec_package", "spec_package.inner", "spec_package_2"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize(
    "name",
    [
        "spec_package:keep",
        "spec_package.inner:keep",
        "spec_package.inner:Maker.make",
        "spec_package.inner:made",
    ],
)
def test_a_function_is_found_below_an_allowed_package(name: str) -> None:
    assert callable(find_function(name, ["spec_package"]))


def test_a_function_is_written_by_the_name_that_finds_it() -> None:
    for name in ("spec_package.inner:keep", "spec_package.inner:Maker.make"):
        assert function_reference(find_function(name, ["spec_package"])) == name
    assert function_reference(json.dumps) == "json:dumps"


@pytest.mark.parametrize(
    "name",
    [
        "spec_package_2:keep",  # only begins like the allowed one
        "os:system",
        "spec_package.inner:dumps",  # what a module has imported is not its own
        "spec_package.inner:os.system",
        "spec_package.inner:subprocess.run",
        "spec_package.inner:keep.__globals__",
        "spec_package.inner:Maker.__class__",
        "spec_package.inner:number",
        "spec_package.inner:missing",
        "spec_package.missing:keep",
        "spec_package.inner",
        "spec_package.inner:keep()",
        "spec_package.inner:",
        ":keep",
        "spec_package.inner:made.",
    ],
)
def test_nothing_else_is_given_away(name: str) -> None:
    with pytest.raises(PlanError) as caught:
        find_function(name, ["spec_package"])
    assert caught.value.hint


def test_a_module_that_is_not_allowed_is_not_even_imported() -> None:
    with pytest.raises(PlanError, match="not allowed") as caught:
        find_function("spec_package.inner:keep", ["spec_package_2"])
    assert "--allow spec_package.inner" in caught.value.hint
    assert "spec_package" not in sys.modules


def test_a_module_that_fails_at_import_says_why() -> None:
    with pytest.raises(PlanError, match="OSError: no licence") as caught:
        find_function("spec_package_2:keep", ["spec_package_2"])
    assert isinstance(caught.value.__cause__, OSError)
    assert "PYTHONPATH" in caught.value.hint
