"""A module of the user's that has the name of a package of ours is named, and what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dataflow.parts import load_part


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python in a folder whose modules it finds first."""
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("names", [["loaders.py"], ["connectors/__init__.py", "connectors/contract.py"]])
def test_a_module_that_hides_a_package_of_ours_is_named(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    done = run(tmp_path, "-c", "import dataflow as flow; flow.read('x')")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {tmp_path / names[0].partition('/')[0]} hides the package")
    assert last.endswith("Rename it, or start Python in another folder.")


def test_a_folder_that_is_no_package_hides_none(tmp_path: Path) -> None:
    (tmp_path / "loaders").mkdir()
    (tmp_path / "loaders" / "mine.py").write_text("")
    done = run(tmp_path, "-c", "import dataflow as flow; print(flow.from_columns({'x': [1]}).count())")
    assert done.stdout == "1\n", done.stderr


def test_the_command_says_so_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "connectors.py").write_text("")
    (tmp_path / "bench.py").write_text("")
    done = run(tmp_path, "-m", "dataflow", "--version")
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"error: {tmp_path}/connectors.py hides the package 'connectors' of Dataflow"
    )
    (tmp_path / "connectors.py").unlink()
    done = run(tmp_path, "-m", "dataflow", "bench", "list")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path}/bench.py hides the package 'bench' of Dataflow")


def test_what_is_missing_for_another_reason_is_said_as_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"dataflow\.nothing"):
        load_part("dataflow.nothing")
